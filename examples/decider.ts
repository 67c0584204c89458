// An order as a decider: run it with `npx tsx examples/decider.ts`. It is created, confirmed by mail, paid for and shipped; a
// second one is never paid for and expires.

import { createHoldfast, decider, decision, reject } from '../src/index.ts'

type OrderInput =
  | { readonly type: 'Create'; readonly orderId: string; readonly to: string }
  | { readonly type: 'Pay'; readonly orderId: string; readonly amount: number }
  | { readonly type: 'MailSent' | 'Shipped' | 'Expire' }

type OrderEvent =
  | { readonly type: 'Created' | 'Confirmed' | 'Shipped' | 'Expired' }
  | { readonly type: 'Paid'; readonly amount: number }

interface Order {
  readonly status: 'new' | 'open' | 'paid' | 'shipped' | 'expired'
  readonly isConfirmed: boolean
}

function evolve(order: Order, event: OrderEvent): Order {
  switch (event.type) {
    case 'Created':
      return { ...order, status: 'open' }
    case 'Confirmed':
      return { ...order, isConfirmed: true }
    case 'Paid':
      return { ...order, status: 'paid' }
    case 'Shipped':
      return { ...order, status: 'shipped' }
    case 'Expired':
      return { ...order, status: 'expired' }
  }
}

export const order = decider('order', {
  initial: (): Order => ({ status: 'new', isConfirmed: false }),
  evolve,
  decide: ({ status }, input: OrderInput) => {
    switch (input.type) {
      case 'Create':
        if (status !== 'new') return reject('It exists.')
        return decision({ type: 'Created' })
          .effect({ type: 'sendMail', to: input.to })
          .timer('payment', { after: '200 ms' }, { type: 'Expire' })
      case 'Pay':
        if (status !== 'open') return reject(`It is ${status}.`)
        return decision({ type: 'Paid', amount: input.amount }).effect({ type: 'ship' }).cancelTimer('payment')
      case 'MailSent':
        return decision({ type: 'Confirmed' })
      case 'Shipped':
        return decision({ type: 'Shipped' })
      case 'Expire':
        return decision({ type: 'Expired' })
    }
  },
  id: { '*': 'orderId', MailSent: null, Shipped: null, Expire: null },
  isTerminal: ({ status }) => status === 'shipped' || status === 'expired',
  effects: {
    sendMail: ({ to }, { idempotencyKey }) => {
      console.log(`mail to ${to}, ${idempotencyKey}`)
      return { type: 'MailSent' }
    },
    ship: () => ({ type: 'Shipped' }),
  },
})

const holdfast = await createHoldfast({ store: 'memory:', workflows: [order] })
await holdfast.work()
for (const orderId of ['1', '2']) await holdfast.execute(order, { type: 'Create', orderId, to: 'ada@example.com' })
const paid = await holdfast.execute(order, { type: 'Pay', orderId: '1', amount: 99 }, { commandId: 'payment-1' })
console.log('paid:', paid.outcome)
for (const orderId of ['1', '2']) {
  while (!['shipped', 'expired'].includes((await holdfast.state(order, orderId))?.status ?? '')) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const events = await holdfast.events(order, orderId)
  console.log(`order ${orderId}:`, events.map(({ type }) => type).join(', '))
}
await holdfast.close()
