// The decider of these tests: an order that is created, confirmed by mail, paid for in time or not, and shipped.

import { decider, decision, reject, type EffectTools } from 'holdfast'

export type OrderInput =
  | { readonly type: 'Create'; readonly orderId: string; readonly to?: string }
  | { readonly type: 'Pay'; readonly orderId: string; readonly amount: number }
  | { readonly type: 'Note'; readonly orderId: string; readonly text: string }
  | { readonly type: 'Abandon' | 'Extend' | 'Forgive'; readonly orderId: string }
  | { readonly type: 'MailSent' | 'MailLost' | 'Late' | 'Shipped' }

/** What callers may send. */
export type OrderCall = Exclude<OrderInput, { readonly type: 'MailSent' | 'MailLost' | 'Late' | 'Shipped' }>

export type OrderEvent =
  | { readonly type: 'Created' | 'Confirmed' | 'Unconfirmed' | 'Extended' | 'Forgiven' | 'Expired' | 'Shipped' }
  | { readonly type: 'Paid'; readonly amount: number }
  | { readonly type: 'Noted'; readonly text: string }

export interface Order {
  readonly status: 'new' | 'open' | 'paid' | 'shipped' | 'expired'
  readonly isConfirmed: boolean
  readonly notes: readonly string[]
}

export interface OrderWorld {
  /** Sends the mail of an order. */
  mail?(to: string, tools: EffectTools): Promise<void> | void
  ship?(tools: EffectTools): Promise<void> | void
  /** How long an order may be unpaid. @default an hour */
  readonly patienceMs?: number
  /** Between two attempts to send mail. @default none */
  readonly pauseMs?: number
}

function evolve(state: Order, event: OrderEvent): Order {
  switch (event.type) {
    case 'Noted':
      return { ...state, notes: [...state.notes, event.text] }
    case 'Confirmed':
      return { ...state, isConfirmed: true }
    case 'Created':
      return { ...state, status: 'open' }
    case 'Paid':
      return { ...state, status: 'paid' }
    case 'Expired':
      return { ...state, status: 'expired' }
    case 'Shipped':
      return { ...state, status: 'shipped' }
    case 'Unconfirmed':
    case 'Extended':
    case 'Forgiven':
      return state
  }
}

export function orderOf(world: OrderWorld = {}) {
  const { patienceMs = 3_600_000, pauseMs = 0 } = world
  return decider('order', {
    initial: (): Order => ({ status: 'new', isConfirmed: false, notes: [] }),
    evolve,
    decide: (state, input: OrderInput) => {
      if (state.status === 'new' && input.type !== 'Create') return reject({ reason: 'There is no such order.' })
      switch (input.type) {
        case 'Create': {
          if (state.status !== 'new') return reject({ reason: 'It exists.' })
          const created = decision({ type: 'Created' }).timer('payment', { after: patienceMs }, { type: 'Late' })
          return input.to === undefined ? created : created.effect({ type: 'sendMail', to: input.to })
        }
        case 'MailSent':
          return decision({ type: 'Confirmed' })
        case 'MailLost':
          return decision({ type: 'Unconfirmed' })
        case 'Extend':
          return decision({ type: 'Extended' }).timer('payment', { after: 3 * patienceMs }, { type: 'Late' })
        case 'Forgive':
          return decision({ type: 'Forgiven' }).cancelTimer('payment')
        case 'Pay':
          if (state.status !== 'open') return reject({ reason: `It is ${state.status}.` })
          if (input.amount < 0) throw new TypeError('An amount cannot be negative')
          return decision({ type: 'Paid', amount: input.amount }).effect({ type: 'ship' }).cancelTimer('payment')
        case 'Note':
          return decision({ type: 'Noted', text: input.text })
        case 'Abandon':
        case 'Late':
          return decision({ type: 'Expired' })
        case 'Shipped':
          return decision({ type: 'Shipped' })
      }
    },
    id: { '*': 'orderId', MailSent: null, MailLost: null, Late: null, Shipped: null },
    isTerminal: ({ status }) => status === 'shipped' || status === 'expired',
    uniqueKey: (input) => (input.type === 'Create' ? (input.to ?? null) : null),
    effects: {
      sendMail: {
        perform: async ({ to }, tools) => {
          await world.mail?.(to, tools)
          return { type: 'MailSent' }
        },
        retry: { maxAttempts: 2, kind: 'constant', initial: pauseMs },
      },
      ship: async (_effect, tools) => {
        await world.ship?.(tools)
        return { type: 'Shipped' }
      },
    },
    onDeadLetter: ({ type }) => (type === 'sendMail' ? { type: 'MailLost' } : undefined),
  })
}
