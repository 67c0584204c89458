// Tests of a decider without a store: the events that happened, an input, and what is expected to follow. Only the author's
// functions are called. The input goes through the same code as in production, so what could not be recorded fails here, too.

import assert from 'node:assert/strict'
import type { Answer, Decided, DeciderModel } from '../../core/definition/decider-model.ts'
import type { Draft } from '../../core/model/entry.ts'
import { jsonCodec } from '../../core/payload/codec.ts'
import { Payloads } from '../../core/payload/payload.ts'
import type { DeciderTypes } from '../../core/definition/decider-model.ts'
import type { Decider } from '../../deciders/decider.ts'
import { systemDigest } from '../../system.ts'
import { journalOf, testRunId as runId, type KeptEvent, type KnownPast } from './past-journal.ts'

/** A timer that is expected: `after` in milliseconds, or `at` as the time in milliseconds since 1970. */
export interface ExpectedTimer<Input> {
  readonly key?: string
  readonly after?: number
  readonly at?: number
  readonly input: Input
}

/** What follows from an accepted input. What is left out is expected to be empty. */
export interface Expected<Types extends DeciderTypes> {
  readonly events: readonly Types['event'][]
  readonly effects?: readonly Types['effect'][]
  readonly timers?: readonly ExpectedTimer<Types['anyInput']>[]
  /** The keys of the timers that are cancelled. */
  readonly cancelled?: readonly string[]
}

/** Some events have happened. */
export interface Given<Types extends DeciderTypes> {
  /**
   * Decides an input at a time, which is 0 unless it is given. The input is what `decide` gets, and so no schema for callers
   * checks it. Throws INVALID_INPUT if it names no instance and does not come from timers and effects only.
   */
  when(input: Types['anyInput'], options?: { readonly now?: Date | number }): When<Types>
}

/** An input was decided. Each method throws an AssertionError with the difference if it was decided otherwise. */
export interface When<Types extends DeciderTypes> {
  then(expected: Expected<Types>): When<Types>
  thenRejected(rejection: Types['rejection']): When<Types>
  /** The state after it, also after a rejection. */
  thenState(state: Types['state']): When<Types>
  /** The instance is over: nothing was decided. */
  thenAlreadyCompleted(): When<Types>
}

export interface GivenOptions {
  /** The keys of timers that are set and not due: only such a timer can be cancelled. @default none */
  readonly timers?: readonly string[]
}

type Tested<Types extends DeciderTypes> = Pick<Decider<Types>, 'model' | 'rules' | 'type' | 'types'>

/**
 * Begins a test of a decider: these events have happened to an instance. An event that older code wrote is given with its version:
 * `{ version: 1, event: { type: 'Paid', cents: 500 } }`.
 *
 * @example
 * given(order, [{ type: 'Created' }])
 *   .when({ type: 'Pay', orderId: '1' })
 *   .then({ events: [{ type: 'Paid' }], effects: [{ type: 'ship' }] })
 *   .thenState({ status: 'paid' })
 */
export function given<Types extends DeciderTypes>(
  decider: Tested<Types>,
  events: readonly (Types['event'] | KeptEvent)[] = [],
  { timers = [] }: GivenOptions = {},
): Given<Types> {
  return { when: (input, { now = 0 } = {}) => decided(decider, { events, timers }, input, Number(now)) }
}

function decided<Types extends DeciderTypes>(
  { model, rules, type }: Tested<Types>,
  past: KnownPast,
  input: unknown,
  now: number,
): When<Types> {
  if (!rules.isInternal(input)) model.idOf(input)
  const payloads = new Payloads(jsonCodec())
  const instance = openInstance(model, payloads)
  if (past.events.length + past.timers.length > 0) instance.apply(journalOf(past, rules, { payloads, at: now }))
  const { seq } = instance
  const result = instance.decide([{ kind: 'call', input, command: null }], { now })
  const [answer] = result.answers
  if (answer === undefined) throw new Error(`Decider "${type}" did not decide the input.`)
  const read = (draft: Draft, at: number): unknown => valueOf(payloads, draft, seq + at + 1)
  const test: When<Types> = {
    // The word of every such kit. Nothing here is a promise, and this says so to `await`.
    // oxlint-disable-next-line unicorn/no-thenable
    then: (expected) => {
      if (typeof expected === 'function') throw new Error('given(…).when(…) is no promise: do not await it.')
      assertAnswer(answer, 'accepted')
      assert.deepStrictEqual(
        followed(result, read),
        expectation(expected),
        `What follows from the input is not expected`,
      )
      return test
    },
    thenRejected: (rejection) => {
      assertAnswer(answer, 'rejected')
      assert.deepStrictEqual(answer.outcome === 'rejected' ? answer.rejection : null, rejection)
      return test
    },
    thenState: (state) => {
      if (answer.outcome === 'failed') throw answer.error
      assert.deepStrictEqual(instance.state, state)
      return test
    },
    thenAlreadyCompleted: () => {
      assertAnswer(answer, 'already-completed')
      return test
    },
  }
  return test
}

function openInstance(model: DeciderModel, payloads: Payloads) {
  const ports = { digest: systemDigest, random: { uint32: () => 0 } }
  return model.open({ runId, id: 'test', payloads, ports })
}

function assertAnswer(answer: Answer, outcome: Answer['outcome']): void {
  if (answer.outcome === outcome) return
  if (answer.outcome === 'failed') throw answer.error
  const rejection = answer.outcome === 'rejected' ? ` with ${JSON.stringify(answer.rejection)}` : ''
  assert.fail(`The input was expected to be ${outcome}, and it is ${answer.outcome}${rejection}.`)
}

function followed(
  { append, answers: [answer] }: Decided,
  read: (draft: Draft, at: number) => unknown,
): Required<Expected<DeciderTypes>> {
  const of = <Kind extends Draft['kind'], Value>(
    kind: Kind,
    make: (draft: Extract<Draft, { kind: Kind }>, at: number) => Value,
  ) => append.flatMap((draft, at) => (draft.kind === kind ? [make(draft as Extract<Draft, { kind: Kind }>, at)] : []))
  return {
    events: answer?.outcome === 'accepted' ? answer.events : [],
    effects: of('effect', read),
    timers: of('timer', (draft, at) => {
      const { name, meta } = draft
      return {
        ...(name.startsWith('#') ? {} : { key: name }),
        ...(meta.at === null ? { after: meta.afterMs ?? 0 } : { at: meta.at }),
        input: read(draft, at),
      }
    }),
    cancelled: of('timer-cancelled', ({ name }) => name),
  }
}

function expectation({ events, effects = [], timers = [], cancelled = [] }: Expected<DeciderTypes>) {
  const named = timers.map(({ key, after, at, input }) => ({
    ...(key === undefined ? {} : { key }),
    ...(at === undefined ? { after: after ?? 0 } : { at }),
    input,
  }))
  return { events, effects, timers: named, cancelled }
}

function valueOf(payloads: Payloads, { kind, name, data }: Draft, seq: number): unknown {
  return data === null ? undefined : payloads.decode(data, payloads.place(runId, seq, kind, name))
}
