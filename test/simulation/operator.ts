// Those who use the engine from outside: they start runs, again if they got no answer, wait for results, steer runs and
// write to them. What they were answered is kept, because it must be true at the end.

import { isHoldfastError } from '../../src/core/errors/error.ts'
import type { RunHandle } from '../../src/client/run-handle.ts'
import type { Holdfast } from '../../src/holdfast.ts'
import type { StartOptions } from '../../src/client/start/start-options.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import type { Checker, Known } from './checker.ts'
import { epoch, type SimProcess } from './process.ts'
import { isOfInstances } from './instance-journal.ts'
import { stepsOf } from './interpreter.ts'
import { topics, type TopicName } from './node.ts'
import type { Operation, Scenario, StartPlan } from './scenario.ts'
import type { World } from './world.ts'

type Start = Extract<Operation, { kind: 'start' }>
type Steering = Exclude<Operation, { kind: 'start' | 'signal' | 'broadcast' }>

/** What a caller was answered about a run. */
export interface Answered {
  readonly runId: string
  readonly result:
    { readonly status: 'succeeded'; readonly value: unknown } | { readonly status: 'failed' | 'cancelled' }
}

export class Operator {
  /** Ids that a start was answered with, by program. */
  readonly acknowledged: { readonly plan: StartPlan; readonly runId: string }[] = []
  /** Results that a caller was given. */
  readonly results: Answered[] = []
  /** What was asked of runs, whether or not it was answered. */
  readonly controlled = new Map<string, Set<string>>()
  /** Signals that were accepted. */
  readonly accepted: { readonly runId: string; readonly id: string }[] = []
  private answers = 0
  private readonly scenario: Scenario
  private readonly world: World
  private readonly processes: readonly SimProcess[]
  private readonly checker: Checker
  private readonly unanswered = new Set<Start>()
  private isHealing = false

  constructor(scenario: Scenario, world: World, processes: readonly SimProcess[], checker: Checker) {
    this.scenario = scenario
    this.world = world
    this.processes = processes
    this.checker = checker
  }

  /** Every start was answered. */
  get isDone(): boolean {
    return this.unanswered.size === 0
  }

  schedule(): void {
    for (const operation of this.scenario.operations) {
      if (operation.kind === 'start') this.unanswered.add(operation)
      this.world.after(operation.at, null, operation.kind, () => this.perform(operation))
    }
  }

  /** From now on every caller gets an answer, and nobody stops runs any more. */
  heal(): void {
    this.isHealing = true
    this.watch()
  }

  /**
   * Starts what was never answered, resumes what is paused, and answers who waits. Where no process has ever died, nobody resumes
   * a run that is paused for crashes: those who were counted as dead must say so, or the run never ends.
   */
  private watch(): void {
    for (const start of this.unanswered) if (start.at <= this.world.now) this.perform(start)
    const nobodyDies = isBloodless(this.scenario)
    for (const known of this.checker.runs.values()) {
      const { run } = known
      if (isOfInstances(run.type) && run.status !== 'paused') continue
      if (nobodyDies && isBlamed(known)) continue
      if (run.status === 'paused') this.up(0)?.resume(run.id).catch(this.expected)
      else if (run.status === 'waiting' && run.readiness === 'idle') this.answer(known)
    }
    this.world.after(700, null, 'watch', () => this.watch())
  }

  private up(first: number): Holdfast | null {
    const { processes } = this
    for (let offset = 0; offset < processes.length; offset += 1) {
      const { holdfast, current } = processes[(first + offset) % processes.length] as SimProcess
      if (holdfast !== null && (current?.standsStillUntil ?? 0) <= this.world.now) return holdfast
    }
    return null
  }

  private perform(operation: Operation): void {
    const holdfast = this.up(operation.by)
    if (holdfast === null) {
      // Starts are repeated until they are answered; anything else may be given up.
      if (operation.kind === 'start' && !this.isHealing) {
        this.world.after(150, null, 'again', () => this.perform(operation))
      }
      return
    }
    if (operation.kind === 'start') return this.start(holdfast, operation)
    if (this.isHealing && operation.kind !== 'retry') return
    if (operation.kind === 'broadcast') return this.broadcast(holdfast, operation.topic, operation.id)
    const runId = this.acknowledged.findLast(({ plan }) => plan.program === operation.program)?.runId
    if (runId === undefined) return
    if (operation.kind === 'signal') return this.signal(holdfast, runId, operation.name, operation.id)
    this.control(holdfast, runId, operation)
  }

  private start(holdfast: Holdfast, operation: Start): void {
    const program = this.scenario.programs[operation.program]
    if (program === undefined) return
    const again = (): void => void this.world.after(100, null, 'again', () => this.perform(operation))
    holdfast
      .start(`sim.${program.type}`, { program: operation.program, round: 0 }, startOptions(operation))
      .then((handle) => {
        this.unanswered.delete(operation)
        this.acknowledged.push({ plan: operation, runId: handle.id })
        if (operation.waits) this.wait(handle)
      })
      .catch((error: unknown) => {
        if (isHoldfastError(error, 'RUN_EXISTS')) this.unanswered.delete(operation)
        else if (isHoldfastError(error, 'STORE_UNAVAILABLE') || isHoldfastError(error, 'CLOSED')) again()
        else this.expected(error)
      })
  }

  private wait(handle: RunHandle<unknown>): void {
    const runId = handle.id
    handle.result().then(
      (value) => void this.results.push({ runId, result: { status: 'succeeded', value } }),
      (error: unknown) => {
        if (isHoldfastError(error, 'RUN_FAILED')) this.results.push({ runId, result: { status: 'failed' } })
        else if (isHoldfastError(error, 'RUN_CANCELLED')) this.results.push({ runId, result: { status: 'cancelled' } })
        else this.expected(error)
      },
    )
  }

  private control(holdfast: Holdfast, runId: string, operation: Steering): void {
    const asked = this.controlled.get(runId) ?? new Set()
    this.controlled.set(runId, asked.add(operation.kind))
    if (operation.kind === 'cancel') {
      asked.add(operation.mode)
      holdfast.cancel(runId, { mode: operation.mode, reason: 'operator' }).catch(this.expected)
    } else holdfast[operation.kind](runId).catch(this.expected)
  }

  private signal(holdfast: Holdfast, runId: string, name: string, id: string): void {
    holdfast.signal(runId, name, { sent: id }, { id }).then(({ outcome }) => {
      if (outcome === 'delivered' || outcome === 'queued') this.accepted.push({ runId, id })
    }, this.expected)
  }

  private broadcast(holdfast: Holdfast, topic: TopicName, id: string): void {
    holdfast.broadcast(topics[topic], { sent: id }, { id }).catch(this.expected)
  }

  /** A run that waits for something that nobody has sent gets it now. */
  private answer({ run, entries }: Known): void {
    const holdfast = this.up(0)
    if (holdfast === null) return
    this.answers += 1
    for (const name of awaited(entries.slice(run.base - 1))) this.signal(holdfast, run.id, name, `h${this.answers}`)
  }

  private readonly expected = (error: unknown): void => {
    if (isHoldfastError(error) && error.code !== 'BUG' && error.code !== 'INPUT_CONFLICT') return
    this.checker.report({ name: 'callers_get_known_errors', runId: null, message: String(error) })
  }
}

/** Processes stand still, and that is all that happens to them. */
function isBloodless({ blows, programs }: Scenario): boolean {
  const kills = programs.flatMap(({ nodes }) => stepsOf(nodes)).some((step) => step.kills > 0)
  return !kills && blows.every(({ kind }) => kind === 'stand-still')
}

function isBlamed({ run, entries }: Known): boolean {
  const last = entries.at(-1)
  return run.status === 'paused' && last?.kind === 'paused' && last.meta.reason === 'crashes'
}

/** The names of the signals that a run waits for. */
function awaited(entries: readonly Entry[]): readonly string[] {
  const over = new Set(entries.flatMap(({ kind, name }) => (kind === 'woken' ? [name] : [])))
  const open = entries.filter((entry) => entry.kind === 'waiting' && !over.has(entry.name))
  return open.flatMap((entry) =>
    entry.kind !== 'waiting'
      ? []
      : entry.meta.conditions.flatMap((condition) => (condition.kind === 'signal' ? [condition.name] : [])),
  )
}

function startOptions(plan: StartPlan): StartOptions {
  const { program, how, timeoutMs, expiresInMs, runAtMs, priority } = plan
  return {
    priority,
    ...(how === 'id' ? { id: idOf(program) } : {}),
    ...(how === 'idempotency-key' ? { idempotencyKey: `once-${program}` } : {}),
    ...(how === 'key' || how === 'key-return' ? { key: `key-${program}` } : {}),
    ...(how === 'key-return' ? { onConflict: 'return' as const } : {}),
    ...(timeoutMs === null ? {} : { timeout: timeoutMs }),
    ...(expiresInMs === null ? {} : { expiresIn: expiresInMs }),
    ...(runAtMs === null ? {} : { delay: runAtMs }),
  }
}

/** A run id that a caller made. */
function idOf(program: number): string {
  const time = epoch.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${program.toString(16).padStart(12, 'e')}`
}
