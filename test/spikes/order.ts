// The decider of the tests: an order that is created, confirmed by mail, paid for in time or not, and shipped.

import type { StepTools } from '../../src/core/runtime/attempt.ts'
import type { Definition } from '../../src/core/definition/definition.ts'
import type { Duration } from '../../src/core/definition/duration.ts'
import { decider, decision, reject, type DeciderOptions } from './decider.ts'

export type OrderInput =
  | { readonly type: 'Create'; readonly to: string }
  | { readonly type: 'MailSent' | 'MailLost' | 'Extend' | 'Forgive' | 'Late' | 'Abandon' | 'Shipped' }
  | { readonly type: 'Pay'; readonly amount: number }
  | { readonly type: 'Note'; readonly text: string }

export type OrderEvent =
  | { readonly type: 'Created' | 'Confirmed' | 'Unconfirmed' | 'Extended' | 'Forgiven' | 'Expired' | 'Shipped' }
  | { readonly type: 'Paid'; readonly amount: number }
  | { readonly type: 'Noted'; readonly text: string }

export type OrderEffect = { readonly type: 'sendMail'; readonly to: string } | { readonly type: 'ship' }

export interface OrderState {
  readonly status: 'new' | 'open' | 'paid' | 'shipped' | 'expired'
  readonly isConfirmed: boolean
  readonly notes: readonly string[]
}

type Options = DeciderOptions<OrderState, OrderInput, OrderEvent, OrderEffect>

const statuses = { Created: 'open', Paid: 'paid', Expired: 'expired', Shipped: 'shipped' } as const

export const evolve: Options['evolve'] = (state, event) => {
  if (event.type === 'Noted') return { ...state, notes: [...state.notes, event.text] }
  if (event.type === 'Confirmed') return { ...state, isConfirmed: true }
  return event.type in statuses ? { ...state, status: statuses[event.type as keyof typeof statuses] } : state
}

function decide(state: OrderState, input: OrderInput, within: Duration): ReturnType<Options['decide']> {
  if (state.status === 'new' && input.type !== 'Create') return reject('There is no such order.')
  switch (input.type) {
    case 'Create':
      if (state.status !== 'new') return reject('It exists.')
      return decision<OrderEvent>({ type: 'Created' })
        .effect({ type: 'sendMail', to: input.to })
        .timer('payment', { after: within }, { type: 'Late' })
    case 'MailSent':
      return decision({ type: 'Confirmed' })
    case 'MailLost':
      return decision({ type: 'Unconfirmed' })
    case 'Extend':
      return decision<OrderEvent>({ type: 'Extended' }).timer('payment', { after: '3h' }, { type: 'Late' })
    case 'Forgive':
      return decision<OrderEvent>({ type: 'Forgiven' }).cancelTimer('payment')
    case 'Pay':
      if (state.status !== 'open') return reject(`It is ${state.status}.`)
      if (input.amount < 0) throw new TypeError('An amount cannot be negative')
      return decision<OrderEvent>({ type: 'Paid', amount: input.amount })
        .effect({ type: 'ship' })
        .cancelTimer('payment')
    case 'Note':
      return decision({ type: 'Noted', text: input.text })
    case 'Abandon':
      return decision<OrderEvent>({ type: 'Expired' }).effect({ type: 'ship' })
    case 'Late':
      return decision({ type: 'Expired' })
    case 'Shipped':
      return decision({ type: 'Shipped' })
  }
}

/** What really happened: the keys of all attempts of effects, in the order in which they began. */
export interface Performed {
  readonly effect: string
  readonly key: string
  readonly attempt: number
}

export interface OrderWorld {
  readonly performed: Performed[]
  /** How often an event was folded. */
  readonly folds: { count: number }
  readonly order: Definition
}

export interface OrderHooks {
  readonly sendMail?: (tools: StepTools) => void | Promise<void>
  readonly ship?: (tools: StepTools) => void | Promise<void>
  readonly options?: Pick<Options, 'retry' | 'onGivenUp'>
  /** @default 1 hour */
  readonly payWithin?: Duration
}

export function orderWorld({ sendMail, ship, options, payWithin = '1h' }: OrderHooks = {}): OrderWorld {
  const performed: Performed[] = []
  const folds = { count: 0 }
  const note = (effect: string, { idempotencyKey: key, attempt }: StepTools): void =>
    void performed.push({ effect, key, attempt })
  const order = decider<OrderState, OrderInput, OrderEvent, OrderEffect>('order', {
    initial: () => ({ status: 'new', isConfirmed: false, notes: [] }),
    evolve: (state, event) => {
      folds.count += 1
      return evolve(state, event)
    },
    decide: (state, input) => decide(state, input, payWithin),
    isTerminal: ({ status }) => status === 'shipped' || status === 'expired',
    effects: {
      sendMail: async (_effect, tools) => {
        note('sendMail', tools)
        await sendMail?.(tools)
        return { type: 'MailSent' }
      },
      ship: async (_effect, tools) => {
        note('ship', tools)
        await ship?.(tools)
        return { type: 'Shipped' }
      },
    },
    ...options,
  })
  return { performed, folds, order }
}
