// What the compiler makes of deciders: what it infers, and what it refuses. Never run.

import { z } from 'zod'
import type { Holdfast } from 'holdfast'
import { checkLaws, given } from 'holdfast/testing'
import { decider, decision, reject, type Decider, type Outcome } from '../../src/deciders/index.ts'
import { expectType, type Equal } from './expect-type.ts'

type Input =
  | { type: 'Create'; orderId: string; items: string[] }
  | { type: 'Cancel'; orderId: string; why: 'late' | 'lost' }
  | { type: 'Timeout'; orderId: string }
  | { type: 'Sent'; orderId: string }
type Event = { type: 'Created'; items: string[]; how: 'web' | 'shop' } | { type: 'Closed' }
type State = { status: 'new' | 'open' | 'closed'; place?: [number, number] }

/** IF-A1 IF-A4 IF-A6 IF-A9 IF-A13: all four types, and the rejections, from the functions alone. */
const order = decider('order', {
  initial: (): State => ({ status: 'new' }),
  evolve: (state, event: Event) =>
    event.type === 'Created' ? { status: 'open', place: [1, 2] } : { ...state, status: 'closed' },
  decide: (state, input: Input, { now }) => {
    expectType<Equal<typeof state, State>>(true)
    expectType<Equal<typeof now, number>>(true)
    if (state.status === 'closed') return reject({ code: 'closed', at: now })
    if (input.type === 'Cancel') return reject(input.why)
    if (input.type !== 'Create') return decision({ type: 'Closed' }).cancelTimer('close')
    return decision({ type: 'Created', items: ['a', ...input.items], how: 'web' }, { type: 'Closed' })
      .effect({ type: 'send', to: input.orderId, tags: ['x'] })
      .effect({ type: 'log' })
      .timer('close', { after: '1h' }, { type: 'Timeout', orderId: input.orderId })
      .timer({ at: new Date(0) }, { type: 'Cancel', orderId: input.orderId, why: 'late' })
  },
  id: (input) => {
    expectType<Equal<typeof input, Input>>(true)
    return input.orderId
  },
  isTerminal: (state) => state.status === 'closed',
  uniqueKey: (input) => (input.type === 'Create' ? (input.items[0] ?? null) : null),
  effects: {
    send: async (effect, tools) => {
      expectType<Equal<typeof effect.type, 'send'>>(true)
      expectType<Equal<typeof effect.to, string>>(true)
      expectType<Equal<typeof tools.idempotencyKey, string>>(true)
      return { type: 'Sent', orderId: effect.to }
    },
    log: { perform: () => undefined, retry: 'quick', timeout: '5s', orderBy: (effect) => effect.type },
  },
  onDeadLetter: (effect, error) => {
    expectType<Equal<typeof effect.type, 'send' | 'log'>>(true)
    expectType<Equal<typeof error, unknown>>(true)
    return effect.type === 'send' ? { type: 'Cancel', orderId: effect.to, why: 'lost' } : undefined
  },
  onDeadTimer: ({ input }) => {
    expectType<Equal<typeof input, Input>>(true)
  },
})
type Types = NonNullable<(typeof order)['types']>
expectType<Equal<Types['state'], State>>(true)
expectType<Equal<Types['input'], Input>>(true)
expectType<Equal<Types['event'], Event>>(true)
expectType<Equal<Types['effect']['type'], 'send' | 'log'>>(true)
expectType<Equal<Types['rejection'], { readonly code: 'closed'; readonly at: number } | 'late' | 'lost'>>(true)
const anyDecider: Decider = order
void anyDecider

/** Schemas say what nobody annotates. */
const checked = decider('checked', {
  input: z.object({ type: z.literal('Add'), id: z.string(), by: z.number() }),
  event: z.object({ type: z.literal('Added'), by: z.number() }),
  initial: () => 0,
  evolve: (count, event) => count + event.by,
  decide: (_count, input) => decision({ type: 'Added', by: input.by }),
  id: 'id',
})
expectType<Equal<NonNullable<(typeof checked)['types']>['input'], { type: 'Add'; id: string; by: number }>>(true)
expectType<Equal<NonNullable<(typeof checked)['types']>['rejection'], never>>(true)

const base = {
  initial: (): State => ({ status: 'new' }),
  evolve: (state: State, event: Event): State => (event.type === 'Closed' ? { ...state, status: 'closed' } : state),
}
const close = (_state: State, _input: Input) => decision({ type: 'Closed' })

// IF-A2 IF-A3: the id is a field, a function, or one of these for each type of input.

decider('a', { ...base, decide: close, id: 'orderId' })
decider('a', { ...base, decide: close, id: { '*': 'orderId', Timeout: null } })
decider('a', {
  ...base,
  decide: close,
  id: { Create: 'orderId', Cancel: (input) => input.why, Timeout: null, Sent: null },
})
// @ts-expect-error -- no input has such a field
decider('a', { ...base, decide: close, id: 'orderID' })
// @ts-expect-error -- two types of input have no id
decider('a', { ...base, decide: close, id: { Create: 'orderId', Timeout: null } })
// @ts-expect-error -- there is no id at all
decider('a', { ...base, decide: close })
decider('a', {
  ...base,
  decide: (_state, _input: Input | { type: 'Stray' }) => decision({ type: 'Closed' }),
  // @ts-expect-error -- an input without that field
  id: 'orderId',
})

// IF-A5: a decision has at least one event, and evolve knows it.

// @ts-expect-error -- no event
decision()
// @ts-expect-error -- an empty list is none
decision(...([] as Event[]))
decider('a', {
  ...base,
  id: 'orderId',
  // @ts-expect-error -- an event that evolve does not take
  decide: (_state, _input: Input) => decision({ type: 'Clsed' }),
})
decider('a', {
  ...base,
  id: 'orderId',
  // @ts-expect-error -- a field of an event has another type
  decide: (_state, _input: Input) => decision({ type: 'Created', items: ['a'], how: 'fax' }),
})

// IF-A13 IF-A12: every effect has a handler, and every handler an effect; there need be none of either.

const send = (_state: State, _input: Input) => decision({ type: 'Closed' }).effect({ type: 'send' })
// @ts-expect-error -- an effect without a handler: effects are missing
decider('a', { ...base, id: 'orderId', decide: send })
// @ts-expect-error -- an effect without a handler
decider('a', { ...base, id: 'orderId', decide: send, effects: {} })
decider('a', {
  ...base,
  id: 'orderId',
  decide: send,
  // @ts-expect-error -- a handler without an effect
  effects: { send: () => undefined, sand: () => undefined },
})
decider('a', {
  ...base,
  id: 'orderId',
  decide: close,
  // @ts-expect-error -- a handler, and no effects at all
  effects: { send: () => undefined },
})
decider('a', {
  ...base,
  id: 'orderId',
  decide: send,
  // @ts-expect-error -- a handler returns an input or nothing
  effects: { send: () => ({ type: 'Sentt', orderId: '1' }) },
})

// IF-A7: a timer brings an input that decide takes, at one time.

decider('a', {
  ...base,
  id: 'orderId',
  // @ts-expect-error -- decide takes no such input
  decide: (_state, _input: Input) =>
    decision({ type: 'Closed' }).timer({ after: '1h' }, { type: 'Timeou', orderId: '1' }),
})
// @ts-expect-error -- a misspelt unit
decision({ type: 'Closed' }).timer({ after: '1 houx' }, { type: 'Timeout' })
// @ts-expect-error -- two times
decision({ type: 'Closed' }).timer({ after: '1h', at: new Date(0) }, { type: 'Timeout' })

// IF-A15: rejections are declared with the outcome; without one there are none.

decider('a', {
  ...base,
  id: 'orderId',
  decide: (_state, input: Input): Outcome<Event, never, Input, 'sold-out'> =>
    // @ts-expect-error -- another rejection
    input.type === 'Create' ? reject('sold out') : decision({ type: 'Closed' }),
})
const mayReject: Outcome<Event, never, Input, 'sold-out'> = reject('sold-out')
// After a rejection every method may still be called: it does nothing.
mayReject.cancelTimer('a')
// @ts-expect-error -- it never rejects
const never: Outcome<Event> = reject('no')
void never

// A caller passes an input as it is before the schema, and none that comes only from timers and effects.

const metered = decider('metered', {
  input: z.object({
    type: z.literal('Add'),
    id: z.string(),
    by: z.coerce.number<string>(),
    why: z.string().default(''),
  }),
  event: z.object({ type: z.literal('Added'), by: z.number() }),
  initial: () => 0,
  evolve: (count, event) => count + event.by,
  decide: (_count, input) => decision({ type: 'Added', by: input.by + input.why.length }),
  id: 'id',
})
const ticking = decider('ticking', {
  initial: () => 0,
  evolve: (count, _event: { type: 'Ticked' }) => count + 1,
  decide: (count, _input: { type: 'Wind'; id: string } | { type: 'Tick' }) =>
    count > 9 ? reject('worn') : decision({ type: 'Ticked' }).timer({ after: '1s' }, { type: 'Tick' }),
  id: { '*': 'id', Tick: null },
})
export async function call(holdfast: Holdfast): Promise<void> {
  await holdfast.execute(metered, { type: 'Add', id: '1', by: '5' })
  // @ts-expect-error -- the schema takes a text
  await holdfast.execute(metered, { type: 'Add', id: '1', by: 5, why: '' })
  await holdfast.enqueue(ticking, { type: 'Wind', id: '1' })
  await holdfast.start(ticking, { type: 'Wind', id: '1' })
  // @ts-expect-error -- it comes from a timer
  await holdfast.execute(ticking, { type: 'Tick' })
  // @ts-expect-error -- it comes from a timer
  await holdfast.enqueue(ticking, { type: 'Tick' })
}

// IF-T2: the test kit knows the types, too, and takes what decide takes.

given(ticking, [{ type: 'Ticked' }])
  .when({ type: 'Tick' })
  .then({ events: [{ type: 'Ticked' }], timers: [{ after: 1000, input: { type: 'Tick' } }] })
  .thenState(2)
  .thenRejected('worn')
given(metered).when({ type: 'Add', id: '1', by: 5, why: '' })
checkLaws(ticking, [{ type: 'Tick' }])
// @ts-expect-error -- no such event
given(ticking, [{ type: 'Tickled' }])
// @ts-expect-error -- no such input
given(ticking).when({ type: 'Tack' })
const decided = given(ticking).when({ type: 'Tick' })
// @ts-expect-error -- no such event
decided.then({ events: [{ type: 'Tickled' }] })
// @ts-expect-error -- no such effect
decided.then({ events: [{ type: 'Ticked' }], effects: [{ type: 'ring' }] })
// @ts-expect-error -- another type of state
decided.thenState('2')
// @ts-expect-error -- no such rejection
decided.thenRejected('wron')
// @ts-expect-error -- no such input
checkLaws(ticking, [{ type: 'Tack' }])

// IF-V2: what earlier code wrote is brought to what evolve takes, step by step.

type Priced = { type: 'Priced'; amount: number; currency: 'EUR' | 'USD' } | { type: 'Dropped' }
const pricing = {
  initial: () => ({ total: 0, notes: [] as string[] }),
  evolve: (state: { total: number; notes: string[] }, event: Priced) =>
    event.type === 'Priced' ? { ...state, total: state.total + event.amount } : state,
  decide: (_state: { total: number }, _input: { type: 'Price'; id: string }) => decision({ type: 'Dropped' }),
  id: 'id',
} as const
type Priced1 = { type: 'Priced'; cents: number }
type Priced2 = { type: 'Priced'; amount: number }
decider('a', {
  ...pricing,
  upcast: {
    Priced: {
      1: (old: Priced1) => ({ type: 'Priced', amount: old.cents / 100 }),
      2: (old: Priced2) => ({ ...old, currency: 'EUR' }),
    },
    Dropped: { 1: () => ({ type: 'Dropped' }) },
  },
  renamed: { Charged: 'Priced' },
  retired: ['Noted'],
  stateVersion: 2,
  upcastState: { 1: (old: { total: number }) => ({ ...old, notes: [] }) },
})
decider('a', {
  ...pricing,
  // @ts-expect-error -- the first does not return what the second takes
  upcast: { Priced: { 1: (old: Priced1) => old, 2: (old: Priced2) => ({ ...old, currency: 'EUR' }) } },
})
// @ts-expect-error -- the last returns no event that evolve takes
decider('a', { ...pricing, upcast: { Priced: { 2: (old: Priced2) => ({ ...old, currency: 'CHF' }) } } })
// @ts-expect-error -- no event has this type now
decider('a', { ...pricing, upcast: { Pricd: { 1: (old: Priced2) => old } } })
// @ts-expect-error -- no event has the new name
decider('a', { ...pricing, renamed: { Charged: 'Pricd' } })
// @ts-expect-error -- an event of this type is still decided
decider('a', { ...pricing, retired: ['Dropped'] })
// @ts-expect-error -- a state of another form
decider('a', { ...pricing, stateVersion: 2, upcastState: { 1: (old: { total: number }) => old } })
