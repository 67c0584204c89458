// A build whose body cannot read what the live runs were started with.

import { workflow } from '../../../src/index.ts'

export const order = workflow('shop.order', async (ctx, { lines }: { readonly lines: readonly string[] }) => {
  const count = lines.length
  await ctx.step('charge', () => count)
})
