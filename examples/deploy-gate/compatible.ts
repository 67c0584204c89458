// The next build: goods are reserved before anybody pays. Runs that have been charged go on in the old way.

import { workflow } from '../../src/index.ts'
import type { Order } from './deployed.ts'

export const order = workflow('shop.order', async (ctx, { id, total }: Order) => {
  if (ctx.patched('reserve-first')) await ctx.step('reserve', () => `shelf-${id}`)
  const receipt = await ctx.step('charge', () => `receipt-${id}`)
  await ctx.sleep('3 days')
  const parcel = await ctx.step('ship', () => `parcel-${id}`)
  return { receipt, parcel, total }
})
