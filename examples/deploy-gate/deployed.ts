// What is live: an order is charged, and shipped three days later. Many runs sleep in between.

import { workflow } from '../../src/index.ts'

export interface Order {
  readonly id: string
  readonly total: number
}

export const order = workflow('shop.order', async (ctx, { id, total }: Order) => {
  const receipt = await ctx.step('charge', () => `receipt-${id}`)
  await ctx.sleep('3 days')
  const parcel = await ctx.step('ship', () => `parcel-${id}`)
  return { receipt, parcel, total }
})
