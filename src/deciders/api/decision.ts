// What `decide` returns: a decision, which has at least one event, or a rejection. Both are values; nothing happens when one
// is made. A decision keeps what it asks for in the order in which it was asked: that is the order of the journal.
//
// Events, effects and inputs are inferred as they are written: `{ type: 'Paid' }` has the type 'Paid' and no mere text, also
// in a chain of calls, where the compiler knows nothing of what the decider expects.

import type { Definition, TypedDefinition } from '../../core/definition/definition.ts'
import type { Duration } from '../../core/definition/duration.ts'
import type { Thawed } from './thawed.ts'

/** What inputs, events and effects have in common. */
export interface Typed {
  readonly type: string
}

/** When a timer is due: at a point in time, or this long after the commit of the decision. */
export type TimerTime =
  { readonly after: Duration; readonly at?: never } | { readonly at: Date; readonly after?: never }

/** The run that a signal is sent to: its id, or a workflow and the business key of its live run. */
export type SignalTarget =
  string | { readonly id: string } | { readonly workflow: Definition | string; readonly key: string }

/** The options of a run that a decision starts. */
export interface StartOptions {
  readonly key?: string
  readonly idempotencyKey?: string
  readonly tags?: readonly string[]
  readonly priority?: number
}

/** One thing that a decision asks for besides its events. */
export type Request =
  | { readonly kind: 'effect'; readonly effect: Typed }
  | { readonly kind: 'timer'; readonly key: string | null; readonly when: TimerTime; readonly input: Typed }
  | { readonly kind: 'cancel-timer'; readonly key: string }
  | {
      readonly kind: 'start'
      readonly workflow: Definition | string
      readonly input: unknown
      readonly options: StartOptions
    }
  | { readonly kind: 'signal'; readonly to: SignalTarget; readonly name: string; readonly payload: unknown }

/** The input is accepted: its events happened, and what it asks for follows. */
export class Decision<Event extends Typed = Typed, Effect extends Typed = never, Input extends Typed = never> {
  readonly events: readonly [Event, ...Event[]]
  readonly requests: readonly Request[]
  /** Only for the compiler; there is no such value. */
  declare readonly types: { readonly effect: Effect; readonly input: Input } | undefined

  constructor(events: readonly [Event, ...Event[]], requests: readonly Request[]) {
    this.events = events
    this.requests = requests
  }

  /** Asks for a side effect. It is performed after the commit, at least once. */
  effect<const More extends Typed>(effect: More): Decision<Event, Effect | Thawed<More>, Input> {
    return this.with({ kind: 'effect', effect })
  }

  /**
   * Lets an input come later, unless the instance is over by then. With a key it replaces the timer of that key, and its time
   * begins anew; timers without a key accumulate. One in the past fires at once.
   */
  timer<const More extends Typed>(when: TimerTime, input: More): Decision<Event, Effect, Input | Thawed<More>>
  timer<const More extends Typed>(
    key: string,
    when: TimerTime,
    input: More,
  ): Decision<Event, Effect, Input | Thawed<More>>
  timer(...given: readonly [TimerTime, Typed] | readonly [string, TimerTime, Typed]): Decision<Event, Effect> {
    const [key, when, input] = given.length === 2 ? [null, ...given] : given
    return this.with({ kind: 'timer', key, when, input })
  }

  /** The timer of that key will not fire. Nothing happens if there is none. */
  cancelTimer(key: string): Decision<Event, Effect, Input> {
    return this.with({ kind: 'cancel-timer', key })
  }

  /** Starts a run of another workflow with the same commit. */
  start<Given>(
    workflow: TypedDefinition<Given, unknown> | string,
    input: NoInfer<Given>,
    options: StartOptions = {},
  ): Decision<Event, Effect, Input> {
    return this.with({ kind: 'start', workflow, input, options })
  }

  /** Sends a signal to another run with the same commit. */
  signal(to: SignalTarget, name: string, payload: unknown = null): Decision<Event, Effect, Input> {
    return this.with({ kind: 'signal', to, name, payload })
  }

  private with<MoreEffect extends Typed, MoreInput extends Typed>(
    request: Request,
  ): Decision<Event, MoreEffect, MoreInput> {
    return new Decision<Event, MoreEffect, MoreInput>(this.events, [...this.requests, request])
  }
}

/** The input is rejected: nothing happened, and the caller gets `value`. What is asked for after it is passed over. */
export class Rejected<Rejection = unknown> {
  readonly value: Rejection

  constructor(value: Rejection) {
    this.value = value
  }

  effect(_effect: Typed): this {
    return this
  }

  timer(..._timer: readonly unknown[]): this {
    return this
  }

  cancelTimer(_key: string): this {
    return this
  }

  start(..._start: readonly unknown[]): this {
    return this
  }

  signal(..._signal: readonly unknown[]): this {
    return this
  }
}

/**
 * What `decide` returns, to write it down: with it the compiler says at each `decision` and `reject` what does not fit.
 *
 * @example
 * decide: (state, input: OrderInput): Outcome<OrderEvent, OrderEffect, OrderInput, 'sold-out'> => …
 */
export type Outcome<Event extends Typed, Effect extends Typed = never, Input extends Typed = never, Rejection = never> =
  Decision<Event, Effect, Input> | Rejected<Rejection>

/**
 * The input is accepted, and this happened.
 *
 * @example
 * decision({ type: 'Paid', amount }).effect({ type: 'ship' }).cancelTimer('payment')
 */
export function decision<const Event extends Typed>(event: Event, ...more: readonly Event[]): Decision<Thawed<Event>> {
  return new Decision<Thawed<Event>>([event, ...more] as unknown as [Thawed<Event>], [])
}

/** The input is rejected, and nothing happened: the caller gets this value, and so does a repetition of the command. */
export function reject<const Rejection>(value: Rejection): Rejected<Thawed<Rejection>> {
  return new Rejected(value as Thawed<Rejection>)
}
