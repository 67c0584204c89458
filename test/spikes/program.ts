// What a style says about one of its runs, to the frame that moves it (drainer.ts): how the journal is folded, and what
// follows when something happens. It is pure but for the functions that it wants performed: it writes nothing and knows no
// store, so that the frame can fold the same entries again after any crash.

import type { Attempt, StepTools } from '../../src/core/runtime/attempt.ts'
import type { AttemptMeta, Draft } from '../../src/core/model/entry.ts'
import type { Message } from '../../src/core/model/message.ts'
import type { RetryPolicy } from '../../src/core/definition/retry.ts'
import { dueAt, type Due } from '../../src/core/model/due.ts'

/** When something was committed; null until it is. The entries of one transition share it. */
export interface Moment {
  at: number | null
}

/** A time that counts from the moment at which it was asked for. */
export interface Timer {
  readonly due: Due
  readonly since: Moment
}

/** The point in time that a timer means; null while what it counts from is not durable. */
export function timeOf({ due, since }: Timer): number | null {
  return since.at === null ? null : dueAt(due, since.at)
}

/** The points in time that are known. */
export function timesOf(timers: Iterable<Timer>): readonly number[] {
  return [...timers].map(timeOf).filter((time) => time !== null)
}

/** When a run that waits for these is next due: what is appended together with parking counts from that commit. */
export function parkedDue(timers: Iterable<Timer>): Due {
  const all = [...timers]
  const open = all.filter(({ since }) => since.at === null).map(({ due }) => due)
  return {
    at: least([...timesOf(all), ...open.map(({ at }) => at)]),
    afterMs: least(open.map(({ afterMs }) => afterMs)),
  }
}

function least(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** Something to perform, at least once: an effect of a decider, a step of a graph. */
export interface Work {
  /** Its identity within the run: the same on every attempt, and so is its idempotency key. */
  readonly name: string
  readonly perform: (tools: StepTools) => unknown
  failures: number
  /** When the next attempt may begin; null for at once. */
  retry: Timer | null
  /** `queued`: it begins as soon as everything before it is durable. */
  state: 'idle' | 'queued' | 'running'
  attempt: Attempt | null
}

export function newWork(name: string, perform: Work['perform']): Work {
  return { name, perform, failures: 0, retry: null, state: 'idle', attempt: null }
}

type WithoutData<Each> = Each extends Draft ? Omit<Each, 'data'> : never

/** An entry that has no place yet: its payload, a value or an error, is not yet a text. */
export type Proposal = WithoutData<Draft> & { readonly value?: unknown; readonly error?: unknown }

/** An entry of the journal with its payload read. */
export type Applied = WithoutData<Draft> & {
  readonly seq: number
  readonly value: unknown
  readonly since: Moment
}

/** What may happen to a run. */
export type Occasion =
  /** It has just begun. */
  | { readonly kind: 'start' }
  /** There is a message. `read` throws if that is impossible. */
  | { readonly kind: 'message'; readonly message: Message; readonly read: () => unknown }
  | { readonly kind: 'timer'; readonly name: string; readonly dueAt: number }
  | { readonly kind: 'performed'; readonly work: Work; readonly meta: AttemptMeta; readonly value: unknown }
  | { readonly kind: 'gave-up'; readonly work: Work; readonly meta: AttemptMeta; readonly error: unknown }

/** The timer that came due first; null if none has. */
export function firstDue(timers: Program['timers'], now: number): Extract<Occasion, { kind: 'timer' }> | null {
  let first: Extract<Occasion, { kind: 'timer' }> | null = null
  for (const [name, timer] of timers) {
    const time = timeOf(timer)
    if (time === null || time > now || (first !== null && first.dueAt <= time)) continue
    first = { kind: 'timer', name, dueAt: time }
  }
  return first
}

export type Outcome =
  | { readonly output: unknown }
  | { readonly failure: unknown; /** The entry that records it. */ readonly cause: number | null }

export interface Program {
  /** How failed attempts of its work are repeated. */
  readonly policy: RetryPolicy
  /** It has not yet been notified that it begins. */
  readonly isNew: boolean
  /** What is to be performed and has no outcome. */
  readonly work: ReadonlyMap<string, Work>
  readonly timers: ReadonlyMap<string, Timer>
  /** How the run ends; null while it goes on. */
  readonly outcome: Outcome | null
  /** Folds an entry: one that is read again, or one that was just appended. */
  apply(entry: Applied): void
  /** What follows from it, all in one transition. Null if a message is not for now: it stays in the mailbox. */
  decide(occasion: Occasion, now: number): readonly Proposal[] | null
  /** What is recorded of it instead, when deciding threw or gave what cannot be stored. */
  refuse(occasion: Occasion, error: unknown): readonly Proposal[]
}
