// What the compiler makes of projections: which event a handler gets, and which handlers there are none for. Never run.

import {
  memoryProjection,
  projection,
  subscription,
  tableProjection,
  type AnyEvent,
  type RunningMemoryProjection,
} from 'holdfast'
import type { Holdfast } from 'holdfast'
import { decider, decision } from '../../src/deciders/index.ts'
import { expectType, type Equal } from './expect-type.ts'

type OrderEvent = { type: 'Created'; to: string } | { type: 'Paid'; amount: number }
type OldEvent = { type: 'Made' }

const order = decider('order', {
  initial: () => 0,
  evolve: (count, _event: OrderEvent) => count + 1,
  decide: (_count, _input: { type: 'Pay'; id: string }) => decision({ type: 'Paid', amount: 1 }),
  id: 'id',
  version: 2,
})

const oldOrder = decider('order', {
  initial: () => 0,
  evolve: (count, _event: OldEvent) => count + 1,
  decide: (_count, _input: { type: 'Pay'; id: string }) => decision({ type: 'Made' }),
  id: 'id',
})

/** IF-O7: a handler gets the event of its type, of any version that is named. */
export const paid = projection('paid', {
  from: [order, oldOrder],
  handlers: {
    Paid: (event, { id, isRebuild }) => {
      expectType<Equal<typeof event, { type: 'Paid'; amount: number }>>(true)
      expectType<Equal<typeof id, string>>(true)
      expectType<Equal<typeof isRebuild, boolean>>(true)
    },
    Made: (event) => expectType<Equal<typeof event, OldEvent>>(true),
  },
})

/** By the type of a decider alone, an event is any event. */
export const raw = subscription('raw', {
  from: ['order', 'parcel'],
  handlers: { Sent: (event) => expectType<Equal<typeof event, AnyEvent>>(true) },
})
export const all = subscription('all', {
  from: order,
  handle: (event) => expectType<Equal<typeof event, OrderEvent>>(true),
})

export const wrong = projection('wrong', {
  from: order,
  // @ts-expect-error no version of the decider has this event
  handlers: { Payd: () => undefined },
})

const counts = memoryProjection('counts', {
  from: order,
  init: () => ({ paid: 0 }),
  handlers: { Paid: (model, { amount }) => ({ paid: model.paid + amount }) },
})

/** Columns have types, both ways. */
const table = { from: order, table: 'orders', columns: { to: 'text', paid: 'number', isOpen: 'boolean' } } as const
export const orders = tableProjection('orders', {
  ...table,
  handlers: {
    Created: (row, { to }) => {
      expectType<
        Equal<typeof row, { readonly to: string | null; readonly paid: number | null; readonly isOpen: boolean | null }>
      >(true)
      return { to, isOpen: true }
    },
    Paid: ({ paid }, { amount }) => ({ paid: (paid ?? 0) + amount }),
  },
})
export const wrongColumn = tableProjection('orders', {
  ...table,
  // @ts-expect-error the column holds numbers
  handlers: { Paid: () => ({ paid: 'all' }) },
})

export async function project(holdfast: Holdfast): Promise<void> {
  const running = await holdfast.project(counts)
  expectType<Equal<typeof running, RunningMemoryProjection<{ paid: number }>>>(true)
  await holdfast.execute(order, { type: 'Pay', id: '1' }, { waitFor: counts })
}
