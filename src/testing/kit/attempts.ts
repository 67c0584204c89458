// The attempts of steps in a test: every attempt is recorded, some fail or take long because the test says so, and the
// result of a finished one may be held back until the test chooses which one the engine gets next.
//
//   running   the function is under way, in real time
//   resting   it has settled, and takes longer in the time of the test
//   held      it is done, and waits to be chosen
//   known     the engine has its result
//
// The result of an attempt of a dead process never reaches the engine.

import { patienceBounds, toMs, type Duration } from '../../core/definition/duration.ts'
import type { StepTools } from '../../core/runtime/attempt.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import type { Clock, Effects, Performance } from '../../core/runtime/ports.ts'
import { isMisspelt, Scripts, unknownSteps } from './scripts.ts'

/** An attempt that was made. */
export interface StepAttempt extends Performance {
  readonly startedAt: Date
  /** When the engine got the result, or the attempt was over without that. */
  readonly endedAt: Date | null
  /** `died`: its process did before its result could be recorded. */
  readonly outcome: 'running' | 'succeeded' | 'failed' | 'timed-out' | 'died'
  /** The return value of its function. */
  readonly result?: unknown
  /** The error of its function. */
  readonly error?: unknown
  /** Whether its function has read its idempotency key. */
  readonly hasReadKey: boolean
}

/** Chooses the finished attempt whose result the engine gets next. */
export type Choose = (done: readonly StepAttempt[]) => number

/** Calls the function of a step as such a function is called in a test. */
export type Wrap = <Result>(work: () => Result) => Result

/** A process, as far as attempts know it. */
export interface Doer {
  readonly isAlive: boolean
}

type Changing<Type> = { -readonly [Key in keyof Type]: Type[Key] }

interface Live {
  readonly note: Changing<StepAttempt>
  readonly by: Doer
  /** Its number, from 1. */
  readonly order: number
  /** It has run for longer than `patience` in real time. */
  isOutlasted: boolean
  release: (() => void) | null
}

type Settled = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown }

export class Attempts {
  readonly scripts = new Scripts()
  /** The steps that were chosen, in order. */
  readonly finished: string[] = []
  private readonly clock: Clock
  readonly patienceMs: number
  private readonly choose: Choose | null
  private readonly wrap: Wrap
  private readonly notes: StepAttempt[] = []
  /** The attempts that are not over. */
  private readonly open = new Set<Live>()
  private readonly running = new Set<Live>()
  private readonly held = new Set<Live>()
  private readonly onChange = new Set<() => void>()

  /** With `choose`, no result reaches the engine before it is chosen. */
  constructor(clock: Clock, patience: Duration, choose: Choose | null, wrap: Wrap = (work) => work()) {
    this.clock = clock
    this.patienceMs = toMs(patience, 'createTest({ patience })', patienceBounds)
    this.choose = choose
    this.wrap = wrap
  }

  /** A function of a step is under way in real time. */
  get isBusy(): boolean {
    return this.running.size > 0
  }

  /** The test has scripted a step that did not run, while one of a similar name did. */
  get hasMisspelt(): boolean {
    return this.scripts.unknown(this.steps).some(isMisspelt)
  }

  /** Throws, once, if the test has scripted a step that no run has reached; or only if its name is misspelt. */
  assertReached({ onlyMisspelt = false } = {}): void {
    const { steps, scripts } = this
    const unknown = scripts.unknown(steps).filter((one) => !onlyMisspelt || isMisspelt(one))
    if (unknown.length === 0) return
    scripts.forget(new Set(unknown.map(({ step }) => step)))
    throw unknownSteps(unknown, steps)
  }

  private get steps(): ReadonlySet<string> {
    return new Set(this.notes.map(({ step }) => step))
  }

  list(step?: string): readonly StepAttempt[] {
    return this.notes.filter((note) => step === undefined || note.step === step).map((note) => ({ ...note }))
  }

  /** The port of one process. */
  of(by: Doer): Effects {
    return { perform: (attempt, tools, work) => this.perform(by, attempt, tools, work) }
  }

  /** All attempts of the process are lost. */
  died(by: Doer): void {
    for (const live of this.open) if (live.by === by) this.over(live, 'died')
  }

  /** Waits for a function that is under way in real time; false if there is none, or none within `patience`. */
  async outlast(): Promise<boolean> {
    const awaited = [...this.running].filter((live) => !live.isOutlasted)
    if (awaited.length === 0) return false
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        for (const live of awaited) live.isOutlasted = true
        changed()
      }, this.patienceMs)
      const changed = (): void => {
        clearTimeout(timer)
        this.onChange.delete(changed)
        resolve()
      }
      this.onChange.add(changed)
    })
    return true
  }

  /** Releases one result that was held back; false if there is none. */
  release(): boolean {
    // By when they began: the order in which they finish in real time is arbitrary.
    const done = [...this.held].sort((one, other) => one.order - other.order)
    if (done.length === 0 || this.choose === null) return false
    const chosen = done[done.length === 1 ? 0 : this.choose(done.map(({ note }) => note))] ?? done[0]
    if (chosen === undefined) return false
    this.held.delete(chosen)
    this.finished.push(chosen.note.step)
    chosen.release?.()
    return true
  }

  private perform<Tools extends object>(
    by: Doer,
    attempt: Performance,
    tools: Tools,
    work: (tools: Tools) => unknown,
  ): unknown {
    const note: Live['note'] = {
      ...attempt,
      startedAt: new Date(this.clock.now()),
      endedAt: null,
      outcome: 'running',
      hasReadKey: false,
    }
    const live: Live = { note, by, order: this.notes.push(note), isOutlasted: false, release: null }
    this.open.add(live)
    this.running.add(live)
    this.noticeTimeout(live, tools as unknown as StepTools)
    const script = this.scripts.take(attempt)
    const begun =
      script.failsBefore === null
        ? this.wrap(() => begin(work, watched(tools, note)))
        : Promise.reject(script.failsBefore.error)
    return this.follow(live, begun, script)
  }

  private async follow(live: Live, begun: Promise<unknown>, script: ReturnType<Scripts['take']>): Promise<unknown> {
    let settled: Settled = await begun.then(
      (value): Settled => ({ ok: true, value }),
      (error: unknown): Settled => ({ ok: false, error }),
    )
    this.running.delete(live)
    this.changed()
    if (script.failsAfter !== null) settled = { ok: false, error: script.failsAfter.error }
    if (settled.ok) live.note.result = settled.value
    else live.note.error = settled.error
    if (script.slowMs > 0) await new Promise<void>((resolve) => this.clock.after(script.slowMs, resolve))
    if (this.choose !== null && live.by.isAlive && live.note.outcome === 'running') await this.hold(live)
    // A late result is dropped, and nothing is rejected for it.
    if (!live.by.isAlive) return new Promise(() => undefined)
    if (live.note.outcome === 'running') this.over(live, settled.ok ? 'succeeded' : 'failed')
    if (settled.ok) return settled.value
    throw settled.error
  }

  private changed(): void {
    for (const release of this.onChange) release()
  }

  private async hold(live: Live): Promise<void> {
    await new Promise<void>((resolve) => {
      live.release = resolve
      this.held.add(live)
    })
  }

  private over(live: Live, outcome: StepAttempt['outcome']): void {
    this.open.delete(live)
    this.running.delete(live)
    this.held.delete(live)
    live.note.outcome = outcome
    live.note.endedAt = new Date(this.clock.now())
    this.changed()
  }

  /** An attempt that was given up is over for the engine, whenever its function ends. */
  private noticeTimeout(live: Live, { abortSignal }: StepTools): void {
    const notice = (): void => {
      if (live.note.outcome === 'running' && isHoldfastError(abortSignal.reason, 'STEP_TIMEOUT')) {
        this.over(live, 'timed-out')
      }
    }
    abortSignal.addEventListener('abort', notice, { once: true })
  }
}

async function begin<Tools>(work: (tools: Tools) => unknown, tools: Tools): Promise<unknown> {
  return work(tools)
}

/** The same tools, which record that the key was read. */
function watched<Tools extends object>(tools: Tools, note: Live['note']): Tools {
  return new Proxy(tools, {
    get(target, name): unknown {
      if (name === 'idempotencyKey') note.hasReadKey = true
      return Reflect.get(target, name, target)
    },
  })
}
