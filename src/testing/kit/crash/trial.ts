// One trial: a separate world, in which the run is started, `during` acts from outside, the process dies where the plan
// says, and time passes until the run has ended or only an outside call can move it. The caller judges the result.

import type { Definition, TypedDefinition } from '../../../core/definition/definition.ts'
import type { Duration } from '../../../core/definition/duration.ts'
import type { Transition } from '../../../core/model/transition.ts'
import { isTerminal, type Run } from '../../../core/model/run.ts'
import { lastEntryRequests, loadEntries } from '../../../engine/store/journal-pages.ts'
import type { RunView } from '../../../client/read/run-view.ts'
import type { RunHandle } from '../../../client/run-handle.ts'
import type { StartOptions } from '../../../client/start/start-options.ts'
import type { StepAttempt } from '../attempts.ts'
import type { BodyChecks, BodyFinding } from '../body-watch.ts'
import { testOf, type TestOptions, type WorkflowTest } from '../create-test.ts'
import { replayAll, type ReplayFinding } from './replays.ts'
import type { Choice, TrialPlan } from './trial-plan.ts'
import type { WaitingRun } from '../waiting-run.ts'
import type { Death } from '../worker-process.ts'
import { World } from '../world.ts'

/** The options of a test that apply to a trial, too. */
export type KitOption =
  'store' | 'transaction' | 'transactions' | 'codec' | 'offload' | 'patience' | 'untilInterval' | 'logger'

/** The subject of every trial. */
export interface Subject<Output, Services> {
  readonly workflow: TypedDefinition<never, Output>
  readonly workflows: readonly Definition[]
  readonly input: unknown
  readonly start: StartOptions
  readonly services: () => Services
  readonly during: (t: WorkflowTest, run: RunHandle<Output>) => unknown
  readonly seed: number
  readonly atMost: Duration
  readonly replays: number
  /** A run that commits more often than this does not come to its end. */
  readonly mostCommits: () => number
  readonly kit: Pick<TestOptions, KitOption>
  readonly bodyChecks: BodyChecks
}

/** A commit of the process, or one at which it died. */
export interface CommitNote {
  readonly transitions: readonly Transition[]
  readonly death: Death
}

export interface Trial<Services> {
  readonly plan: TrialPlan
  readonly t: WorkflowTest
  readonly services: Services
  readonly view: RunView
  /** How the run ended, so that two can be compared; null if it has not. */
  readonly end: string | null
  readonly commits: readonly CommitNote[]
  readonly choices: readonly Choice[]
  /** The steps in the order in which they finished. */
  readonly finished: readonly string[]
  readonly attempts: readonly StepAttempt[]
  readonly waiting: readonly WaitingRun[]
  /** How often a run continued as new under its id. */
  readonly continuations: number
  /** The error of `during`. */
  readonly thrown: { readonly error: unknown } | null
  readonly replay: ReplayFinding | null
  /** The findings in bodies. */
  readonly findings: readonly BodyFinding[]
}

/** The most crashes of a trial: a run that loses its process after each commit does not need many more commits. */
const mostDeaths = 1_000

/** Performs the plan, and calls `judge` with the result before the world ends. */
export async function performTrial<Output, Services, Judged>(
  subject: Subject<Output, Services>,
  plan: TrialPlan,
  judge: (trial: Trial<Services>) => Promise<Judged>,
): Promise<Judged> {
  const services = subject.services()
  const [commits, choices]: [CommitNote[], Choice[]] = [[], []]
  const world = await World.open({
    ...subject.kit,
    workflows: subject.workflows,
    services,
    bodyChecks: subject.bodyChecks === 'off' ? 'off' : 'keep',
    seed: plan.seed ?? subject.seed,
    ...(plan.replayed === true ? { cachedRuns: 0 } : {}),
    onCommit(transitions) {
      const death = deathOf(plan, commits.length + 1)
      commits.push({ transitions, death })
      return death
    },
    choose(done) {
      const wanted = plan.order?.[choices.length] ?? 0
      const taken = Math.min(wanted, done.length - 1)
      choices.push({ taken, of: done.length })
      return taken
    },
  })
  try {
    const t = testOf(world)
    const run = (await world.driver.start(subject.workflow.type, subject.input, subject.start)) as RunHandle<Output>
    const thrown = await attempted(async () => world.watch.inVirtualTime(() => subject.during(t, run)))
    const waiting = await world.drainTime(subject.atMost, () => commits.length > subject.mostCommits())
    const rows = await allRuns(world)
    const row = rows.find(({ id }) => id === run.id) as Run
    const trial: Trial<Services> = {
      plan,
      t,
      services,
      view: await world.driver.get(run),
      end: await endOf(world, row),
      commits,
      choices,
      finished: world.attempts.finished,
      attempts: world.attempts.list(),
      waiting,
      continuations: await countContinuations(world),
      thrown,
      findings: world.watch.findings,
      replay: await replayAll(world, rows, { definitions: subject.workflows, services, times: subject.replays }),
    }
    const judged = await world.watch.inVirtualTime(() => judge(trial))
    world.attempts.assertReached()
    return judged
  } finally {
    await world.close()
  }
}

function deathOf({ crash }: TrialPlan, commit: number): Death {
  if (crash === undefined) return null
  if (crash === 'every-commit') return commit <= mostDeaths ? 'after' : null
  return crash.commit === commit ? crash.when : null
}

async function attempted(work: () => Promise<unknown>): Promise<Trial<unknown>['thrown']> {
  try {
    await work()
    return null
  } catch (error) {
    return { error }
  }
}

async function allRuns({ store }: World): Promise<readonly Run[]> {
  return store.find({}, { limit: 1_000 })
}

/** The same text for the same end. Of errors only the names and messages count: where they were made does not. */
async function endOf({ store, payloads }: World, run: Run): Promise<string | null> {
  if (!isTerminal(run.status)) return null
  const [page] = await store.load(lastEntryRequests([run]))
  const last = page?.entries[0]
  const text = last?.data === undefined || last.data === null ? '' : await payloads.fetch(last.data)
  if (run.status !== 'failed') return `${run.status} ${text}`
  const error: unknown = payloads.decode(text, payloads.place(run.id, last?.seq ?? run.seq, 'failed', null))
  return `failed ${error instanceof Error ? `${error.name}: ${error.message}` : text}`
}

async function countContinuations(world: World): Promise<number> {
  const anew = (await allRuns(world)).filter(({ base }) => base > 1)
  const journals = await Promise.all(anew.map(({ id }) => loadEntries(world.store, id)))
  return journals.flat().filter(({ kind }) => kind === 'continued').length
}
