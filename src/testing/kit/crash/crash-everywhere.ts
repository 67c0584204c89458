// `crashEverywhere`: crashes the process that performs a workflow at every point at which that could make a difference, lets
// parallel steps finish in every order, and expects the same end each time.
//
// A process affects others only by its commits. So it dies at every commit twice: just before it takes effect, when the work
// that led to it has happened without a record; and just after, when its answer is lost. The simplest trials come first, so
// that the first failure is the one to show.

import type { Definition, TypedDefinition } from '../../../core/definition/definition.ts'
import type { Duration } from '../../../core/definition/duration.ts'
import { HoldfastError, isHoldfastError } from '../../../core/errors/error.ts'
import type { RunStatus, TerminalStatus } from '../../../core/model/run.ts'
import { checkOptions, shown } from '../../../core/text/suggest.ts'
import type { RunHandle } from '../../../client/run-handle.ts'
import type { StartOptions } from '../../../client/start/start-options.ts'
import type { Holdfast, HoldfastOptions } from '../../../holdfast.ts'
import { holdAmbient } from '../ambient.ts'
import type { StepAttempt } from '../attempts.ts'
import { checkBodyChecks, findingText, warnOf, type BodyChecks, type BodyFinding } from '../body-watch.ts'
import { unsafe, type Fault } from './crash-advice.ts'
import { keysThatChanged, repeatedIn, storyOf } from './crash-story.ts'
import type { TestOptions, WorkflowTest } from '../create-test.ts'
import { checkPlan, crashesOf, nextOrder, type Choice, type TrialPlan } from './trial-plan.ts'
import { performTrial, type KitOption, type Subject, type Trial } from './trial.ts'

type Services = NonNullable<HoldfastOptions['services']>

/** How a trial ended. */
export interface CrashOutcome<Output, World> {
  readonly status: RunStatus
  /** The output of the run, if it succeeded. */
  readonly output: Output | undefined
  /** The error of the run, if it failed. */
  readonly error: unknown
  /** The result of `services` for this trial. */
  readonly services: World
  readonly attempts: readonly StepAttempt[]
  /** What was different in this trial, in words. */
  readonly story: string
  readonly holdfast: Holdfast
}

export interface CrashEverywhereOptions<Output, World> extends Pick<TestOptions, KitOption> {
  /** The services of the workflow, created again for every trial: fakes that record their calls. */
  readonly services?: () => World
  /** Events from outside during the run: signals, completions, time. Called in every trial. */
  readonly during?: (t: WorkflowTest, run: RunHandle<Output>) => unknown
  /** Checks the result of every trial; fails it by throwing. @default only the end is compared */
  readonly check?: (outcome: CrashOutcome<Output, World>) => unknown
  /** Other workflows that take part, as children for example. */
  readonly workflows?: readonly Definition[]
  /** How the run is started. */
  readonly start?: StartOptions
  /** How the run is to end. @default 'succeeded' */
  readonly ends?: TerminalStatus
  /** Whether every trial must end with the same output. @default true */
  readonly sameOutput?: boolean
  /** The most trials; the report says if there would be more. @default 2,000 */
  readonly most?: number
  /** How much time may pass in a trial. @default '1000 days' */
  readonly atMost?: Duration
  /** How often the journals of a trial are replayed against their bodies. @default 4 */
  readonly replays?: number
  /** The random seed. @default 1 */
  readonly seed?: number
  /**
   * The reaction to a body that does something that a replay could not repeat, even if every trial comes to the same end; as
   * in `createTest`.
   * @default 'error'
   */
  readonly bodyChecks?: BodyChecks
  /** This trial alone, as an error has named it. */
  readonly only?: TrialPlan
}

export interface CrashReport {
  readonly trials: number
  /** How many commits the run takes: the process died at each, before it took effect and after. */
  readonly boundaries: number
  /** In how many orders parallel steps finished. */
  readonly orders: number
  /** The trials that were left out because of `most`, in words; null if none. */
  readonly cut: string | null
  /** Steps that did their work again after a crash without ever reading their idempotency key. */
  readonly withoutKey: readonly string[]
}

const optionNames = [
  'services',
  'during',
  'check',
  'workflows',
  'start',
  'ends',
  'sameOutput',
  'most',
  'atMost',
  'replays',
  'seed',
  'only',
  'bodyChecks',
  'store',
  'transaction',
  'transactions',
  'codec',
  'offload',
  'patience',
  'untilInterval',
  'logger',
]

/**
 * Performs a workflow repeatedly, and crashes its process at every commit; rejects with CRASH_UNSAFE, and with a remedy, if
 * it does not always come to the same end.
 *
 * @example
 * await crashEverywhere(checkout, { total: 99 }, {
 *   services: () => ({ bank: new FakeBank() }),
 *   check: ({ services }) => assert.equal(services.bank.charges.length, 1),
 * })
 */
export async function crashEverywhere<Input, Output, World extends Services = Services>(
  workflow: TypedDefinition<Input, Output>,
  input: NoInfer<Input>,
  options: CrashEverywhereOptions<Output, World> = {},
): Promise<CrashReport> {
  checkOptions(options, optionNames, 'crashEverywhere()')
  return new Exploration(workflow as TypedDefinition<never, Output>, input, options).explore()
}

/** A run without a crash that commits more often than this is assumed not to end. */
const mostCommits = 10_000

/** The result of a trial after its world has ended. */
interface Tried {
  readonly end: string
  readonly choices: readonly Choice[]
  readonly commits: number
}

class Exploration<Output, World extends Services> {
  private readonly subject: Subject<Output, World>
  private readonly options: CrashEverywhereOptions<Output, World>
  private readonly most: number
  private readonly withoutKey = new Set<string>()
  private readonly warned = new Set<string>()
  private trials = 0
  /** The run without a crash; null before it was performed. */
  private usual: Tried | null = null

  constructor(
    workflow: TypedDefinition<never, Output>,
    input: unknown,
    options: CrashEverywhereOptions<Output, World>,
  ) {
    const { store, transaction, transactions, codec, offload, patience, untilInterval, logger } = options
    const kit = { store, transaction, transactions, codec, offload, patience, untilInterval, logger }
    const { bodyChecks = 'error' } = options
    checkBodyChecks(bodyChecks, 'crashEverywhere')
    this.options = options
    this.most = countOf('most', options.most ?? 2_000)
    this.subject = {
      workflow,
      workflows: [...new Set([workflow, ...(options.workflows ?? [])])],
      input,
      start: options.start ?? {},
      services: options.services ?? (() => ({}) as World),
      during: options.during ?? (() => undefined),
      seed: options.seed ?? 1,
      atMost: options.atMost ?? '1000 days',
      mostCommits: () => (this.usual === null ? mostCommits : 20 * this.usual.commits + 200),
      replays: countOf('replays', options.replays ?? 4),
      bodyChecks,
      kit: Object.fromEntries(Object.entries(kit).filter(([, given]) => given !== undefined)),
    }
  }

  async explore(): Promise<CrashReport> {
    // Once for all trials: replaced globals are restored when the last user releases them.
    const release = holdAmbient()
    try {
      return await this.tryEverything()
    } finally {
      release()
    }
  }

  private async tryEverything(): Promise<CrashReport> {
    const usual = await this.try({})
    this.usual = usual
    const { only } = this.options
    if (only !== undefined) {
      await this.try(checkPlan(only))
      return this.report(usual, 1, null)
    }
    await this.tryAgain(usual)
    let left = await this.tryAll([...crashesOf(usual.commits, []), { replayed: true }, { crash: 'every-commit' }])
    const orders = await this.tryOrders(usual)
    left += await this.tryAll(orders.tried.flatMap(({ order, commits }) => crashesOf(commits, order)))
    return this.report(usual, 1 + orders.tried.length, this.cutOf(orders, left))
  }

  /** The end must not depend on randomness, or trials could not be compared. */
  private async tryAgain(usual: Tried): Promise<void> {
    const plan = { seed: this.subject.seed + 1 }
    const { end } = await this.try(plan, null)
    if (end === usual.end || this.options.sameOutput === false) return
    throw new HoldfastError(
      'CRASH_UNSAFE',
      [
        `Workflow "${this.subject.workflow.type}" ends otherwise from one run to the next, though no process died.`,
        `Once: ${usual.end}`,
        `Then: ${end}`,
        'What to change: let the fakes in `services` answer the same in every trial. If the output holds a random value, ' +
          'such as an id or a result of ctx.random() or ctx.uuid(), leave it out, or pass sameOutput: false, and say in ' +
          '`check` what must hold.',
      ].join('\n'),
      { details: { fault: 'chance', only: plan, expected: usual.end, got: end } },
    )
  }

  /** Every order in which parallel steps can finish, for at most half of the trials. */
  private async tryOrders(usual: Tried): Promise<Orders> {
    const tried: { order: readonly number[]; commits: number }[] = []
    const most = this.trials + Math.ceil((this.most - this.trials) / 2)
    let next = nextOrder(usual.choices)
    while (next !== null && this.trials < most) {
      const { choices, commits } = await this.try({ order: next })
      tried.push({ order: next, commits })
      next = nextOrder(choices)
    }
    return { tried, isComplete: next === null }
  }

  /** How many of the plans were left out. */
  private async tryAll(plans: readonly TrialPlan[]): Promise<number> {
    for (const [at, plan] of plans.entries()) {
      if (this.trials >= this.most) return plans.length - at
      await this.try(plan)
    }
    return 0
  }

  private try(plan: TrialPlan, expected: string | null = this.usual?.end ?? null): Promise<Tried> {
    this.trials += 1
    return performTrial(this.subject, plan, async (trial) => {
      const { type } = this.subject.workflow
      const around = { type, seed: this.subject.seed, usual: this.usual?.commits ?? trial.commits.length }
      const fault = await this.faultOf(trial, expected, around.usual)
      if (fault !== null) throw unsafe(fault, trial, around)
      for (const { step, hasReadKey } of repeatedIn(trial.attempts)) if (!hasReadKey) this.withoutKey.add(step)
      return { end: trial.end ?? '', choices: trial.choices, commits: trial.commits.length }
    })
  }

  private async faultOf(trial: Trial<World>, expected: string | null, usual: number): Promise<Fault | null> {
    const { thrown, end, replay, view } = trial
    if (thrown !== null) return { kind: 'during', error: thrown.error }
    const { ends = 'succeeded' } = this.options
    // If the test lacks a workflow, its replays lack it, too: that difference is not a finding.
    const isIncomplete = isHoldfastError(view.error, 'WORKFLOW_UNKNOWN')
    if (replay !== null && !isIncomplete) return { kind: 'replay', finding: replay }
    if (trial.findings.length > 0) {
      if (this.options.bodyChecks !== 'warn') return { kind: 'body', findings: trial.findings }
      this.warnOfAll(trial.findings)
    }
    if (end === null) return { kind: 'not-ended' }
    const steps = keysThatChanged(trial.attempts, trial.continuations)
    if (steps.length > 0) return { kind: 'keys', steps }
    if (expected === null && view.status !== ends) return { kind: 'status', expected: ends, got: end }
    if (expected !== null && !this.isSameEnd(expected, end)) return { kind: 'end', expected, got: end }
    const story = storyOf(trial, usual)
    const { status, output, error } = view
    const { services, attempts } = trial
    const { holdfast } = trial.t
    try {
      await this.options.check?.({ status, output: output as Output, error, services, attempts, story, holdfast })
      return null
    } catch (failed) {
      return { kind: 'check', error: failed }
    }
  }

  /** Each finding once, over all trials. */
  private warnOfAll(findings: readonly BodyFinding[]): void {
    for (const finding of findings) {
      const text = findingText(finding)
      if (!this.warned.has(text)) warnOf(finding, this.options.logger)
      this.warned.add(text)
    }
  }

  private isSameEnd(one: string, other: string): boolean {
    return this.options.sameOutput === false ? statusIn(one) === statusIn(other) : one === other
  }

  private cutOf({ tried, isComplete }: Orders, left: number): string | null {
    const parts: string[] = []
    if (!isComplete) parts.push(`parallel steps can finish in more orders than the ${tried.length + 1} that were tried`)
    if (left > 0) parts.push(`${left} crashes were not tried`)
    if (parts.length === 0) return null
    return `Stopped after ${this.trials} trials: ${parts.join(', and ')}. Raise \`most\` to try more.`
  }

  private report(usual: Tried, orders: number, cut: string | null): CrashReport {
    return { trials: this.trials, boundaries: usual.commits, orders, cut, withoutKey: [...this.withoutKey].sort() }
  }
}

interface Orders {
  readonly tried: readonly { readonly order: readonly number[]; readonly commits: number }[]
  readonly isComplete: boolean
}

function statusIn(end: string): string {
  return end.slice(0, end.indexOf(' '))
}

function countOf(name: string, value: number): number {
  if (Number.isInteger(value) && value >= 1) return value
  throw new HoldfastError(
    'INVALID_OPTION',
    `crashEverywhere({ ${name} }) must be a whole number from 1. Got ${shown(value)}.`,
  )
}
