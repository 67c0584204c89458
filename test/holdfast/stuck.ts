// A workflow that hangs where a test can watch it.

import { workflow } from 'holdfast'
import { gate } from './gate.ts'

/** A workflow whose second step hangs at a gate the first time, and notes the signal of each time. */
export function stuckOnce(options: { readonly lease?: '1min' } = {}) {
  const { passed, open: letGo } = gate()
  const signals: AbortSignal[] = []
  const stuck = workflow('stuck', options, async (ctx) => {
    const before = await ctx.step('before', () => 'kept')
    const after = await ctx.step('hang', async ({ abortSignal }) => {
      const time = signals.push(abortSignal)
      if (time === 1) await passed
      return `at time ${time}`
    })
    return [before, after]
  })
  return { stuck, signals, letGo }
}
