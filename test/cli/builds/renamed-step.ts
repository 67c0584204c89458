// A build in which a step of a live run has another name.

import { workflow } from '../../../src/index.ts'

export const sleepy = workflow('demo.sleepy', async (ctx) => {
  await ctx.step('renamed', () => 'ready')
  await ctx.sleep('1ms')
})
