// A module as an application has it: workflows, and other things that it also exports.

import { workflow } from 'holdfast'

export const currency = 'EUR'

export function round(amount: number): number {
  return Math.round(amount)
}

export const charge = workflow('billing.charge', (ctx, amount: number) =>
  ctx.step('pay', () => `charged ${round(amount)} ${currency}`),
)

export const refund = workflow('billing.refund', (ctx, amount: number) =>
  ctx.step('pay', () => `refunded ${round(amount)} ${currency}`),
)
