// A build whose body awaits something outside of steps.

import { workflow } from '../../../src/index.ts'

/** The runs whose bodies hang. */
export const hanging: string[] = []

export const order = workflow('shop.order', (ctx) => {
  hanging.push(ctx.run.id)
  return new Promise(() => undefined)
})
