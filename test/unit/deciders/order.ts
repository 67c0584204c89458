// The decider of the tests: an order that is created, confirmed by mail, paid for in time or not, and shipped.

import { decider, decision, reject } from '../../../src/deciders/index.ts'

export type OrderInput =
  | { readonly type: 'Create'; readonly orderId: string; readonly to: string }
  | { readonly type: 'Pay'; readonly orderId: string; readonly amount: number }
  | { readonly type: 'Note'; readonly orderId: string; readonly text: string }
  | { readonly type: 'Extend' | 'Forgive' | 'Abandon' | 'Remind' | 'Misspeak' | 'Overreach'; readonly orderId: string }
  | { readonly type: 'MailSent' | 'MailLost' | 'Late' | 'Reminded' | 'Shipped' | 'TimerLost' }

export type OrderEvent =
  | {
      readonly type:
        'Created' | 'Confirmed' | 'Unconfirmed' | 'Extended' | 'Forgiven' | 'Expired' | 'Shipped' | 'Reminded'
    }
  | { readonly type: 'Paid'; readonly amount: number }
  | { readonly type: 'Noted'; readonly text: string }

export interface Order {
  readonly status: 'new' | 'open' | 'paid' | 'shipped' | 'expired'
  readonly isConfirmed: boolean
  readonly notes: readonly string[]
}

export const initial = (): Order => ({ status: 'new', isConfirmed: false, notes: [] })

const statuses = { Created: 'open', Paid: 'paid', Expired: 'expired', Shipped: 'shipped' } as const

export function evolve(state: Order, event: OrderEvent): Order {
  switch (event.type) {
    case 'Noted':
      return { ...state, notes: [...state.notes, event.text] }
    case 'Confirmed':
      return { ...state, isConfirmed: true }
    case 'Created':
    case 'Paid':
    case 'Expired':
    case 'Shipped':
      return { ...state, status: statuses[event.type] }
    case 'Unconfirmed':
    case 'Extended':
    case 'Forgiven':
    case 'Reminded':
      return state
  }
}

export const order = decider('order', {
  initial,
  evolve,
  decide: (state, input: OrderInput, { now }) => {
    if (state.status === 'new' && input.type !== 'Create') return reject({ reason: 'There is no such order.' })
    switch (input.type) {
      case 'Create':
        if (state.status !== 'new') return reject({ reason: 'It exists.' })
        return decision({ type: 'Created' })
          .effect({ type: 'sendMail', to: input.to })
          .timer('payment', { after: '1h' }, { type: 'Late' })
      case 'MailSent':
        return decision({ type: 'Confirmed' })
      case 'MailLost':
      case 'TimerLost':
        return decision({ type: 'Unconfirmed' })
      case 'Extend':
        return decision({ type: 'Extended' }).timer('payment', { after: '3h' }, { type: 'Late' })
      case 'Forgive':
        return decision({ type: 'Forgiven' }).cancelTimer('payment')
      case 'Remind':
        return decision({ type: 'Noted', text: 'remind' }).timer({ at: new Date(now - 5) }, { type: 'Reminded' })
      case 'Reminded':
        return decision({ type: 'Reminded' })
      case 'Pay':
        if (state.status !== 'open') return reject({ reason: `It is ${state.status}.` })
        if (input.amount < 0) throw new TypeError('An amount cannot be negative')
        return decision({ type: 'Paid', amount: input.amount }).effect({ type: 'ship' }).cancelTimer('payment')
      case 'Note':
        return decision({ type: 'Noted', text: input.text })
      case 'Abandon':
        return decision({ type: 'Expired' }).effect({ type: 'ship' }).timer({ after: '1h' }, { type: 'Late' })
      case 'Late':
        return decision({ type: 'Expired' })
      case 'Shipped':
        return decision({ type: 'Shipped' })
      // What the compiler would refuse, if it were not for the casts.
      case 'Misspeak':
        return decision({ type: 'Mispaid' } as unknown as OrderEvent)
      case 'Overreach':
        return decision({ type: 'Extended' }).effect({ type: 'shipp' } as unknown as { type: 'ship' })
    }
  },
  id: {
    '*': 'orderId',
    MailSent: null,
    MailLost: null,
    Late: null,
    Reminded: null,
    Shipped: null,
    TimerLost: null,
  },
  isTerminal: ({ status }) => status === 'shipped' || status === 'expired',
  uniqueKey: (input) => (input.type === 'Create' ? input.to : null),
  effects: {
    sendMail: { perform: () => ({ type: 'MailSent' }), orderBy: ({ to }) => to, retry: { maxAttempts: 2 } },
    ship: async () => ({ type: 'Shipped' }),
  },
  onDeadLetter: (effect) => (effect.type === 'sendMail' ? { type: 'MailLost' } : undefined),
  onDeadTimer: () => ({ type: 'TimerLost' }),
})

export const create: OrderInput = { type: 'Create', orderId: '1', to: 'ada' }
export const pay: OrderInput = { type: 'Pay', orderId: '1', amount: 5 }
export const note = (text: string): OrderInput => ({ type: 'Note', orderId: '1', text })
export const on = (type: 'Extend' | 'Forgive' | 'Abandon' | 'Remind' | 'Misspeak' | 'Overreach'): OrderInput => ({
  type,
  orderId: '1',
})
