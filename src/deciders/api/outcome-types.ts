// What the compiler reads from the results of `decide`: the events, the effects, the inputs of timers, and the rejections.

import type { Decision, Rejected, Typed } from './decision.ts'

/** Whatever `decide` may return. Its name stands in errors where something else is returned: it says what to call. */
export type DecisionOrReject = Decision<Typed, Typed, Typed> | Rejected

/** The events that it returns. */
export type EventOf<Outcome> = Outcome extends Decision<infer Event, Typed, Typed> ? Event : never

/** The inputs of the timers that it sets. */
export type TimerInputOf<Outcome> = Outcome extends Decision<Typed, Typed, infer Input> ? Input : never

/** The effects that are asked for. */
export type EffectOf<Outcome> = Outcome extends Decision<Typed, infer Effect, Typed> ? Effect : never

/** What inputs are rejected with; never if none is. */
export type RejectionOf<Outcome> = Outcome extends Rejected<infer Rejection> ? Rejection : never

/**
 * No value has this type. In a union with what a function returns it makes the compiler keep the texts, numbers and tuples of
 * that function's results as they are written, before it knows what they are for: `{ status: 'open' }` is not
 * `{ status: string }`. `What` says in errors what was expected.
 */
export type Literal<What extends string> = { readonly [Expected in What]: never } & {
  readonly [field: string]: Written
}

type Written = '' | 0 | true | null | [] | readonly Written[] | { readonly [field: string]: Written }

/** In the results of functions that return an input. */
export type InputLiteral = Literal<'an input that decide takes'>

/** In the results of functions that return a state. */
export type StateLiteral = Literal<'a state as initial returns it'>
