// The same change as a developer makes it who has forgotten the runs that are live: those that were charged would be asked to
// reserve first.

import { workflow } from '../../src/index.ts'
import type { Order } from './deployed.ts'

export const order = workflow('shop.order', async (ctx, { id, total }: Order) => {
  await ctx.step('reserve', () => `shelf-${id}`)
  const receipt = await ctx.step('charge', () => `receipt-${id}`)
  await ctx.sleep('3 days')
  const parcel = await ctx.step('ship', () => `parcel-${id}`)
  return { receipt, parcel, total }
})
