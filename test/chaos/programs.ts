// The workflows that are performed while processes die around them. Every step writes to the log of what really happened
// and returns the mark of its execution, so that a recorded result can be traced to the execution that made it.

import { setTimeout } from 'node:timers/promises'
import { workflow, type Context, type Workflow } from '../../src/index.ts'
import type { StepLog } from './step-log.ts'

export interface Programs {
  /** Five steps, the second and third side by side. The input says how long each takes, in milliseconds. */
  readonly five: Workflow<readonly number[], readonly string[]>
  /** Two steps, one after the other. */
  readonly two: Workflow<{ readonly ms: number }, string>
  /** A step, a sleep, a step. */
  readonly nap: Workflow<{ readonly ms: number }, string>
  /** A step that takes its process with it. */
  readonly poison: Workflow<undefined, void>
}

/** Makes them. Who only starts and reads runs needs no log. */
export function createPrograms(log: StepLog | null): Programs {
  const step = (ctx: Context, name: string, ms: number): Promise<string> =>
    ctx.step(name, async ({ attempt }) => {
      if (log === null) throw new Error('This process does not perform runs.')
      const { mark, end } = log.begin(ctx.run.id, name, attempt)
      await setTimeout(ms)
      end()
      return mark
    })

  return {
    five: workflow('chaos.five', async (ctx, [a = 0, b = 0, c = 0, d = 0, e = 0]: readonly number[]) => {
      const first = await step(ctx, 'a', a)
      const both = await Promise.all([step(ctx, 'b', b), step(ctx, 'c', c)])
      return [first, ...both, await step(ctx, 'd', d), await step(ctx, 'e', e)]
    }),
    two: workflow('chaos.two', async (ctx, { ms }: { readonly ms: number }) => {
      await step(ctx, 'first', ms)
      return step(ctx, 'second', ms)
    }),
    nap: workflow('chaos.nap', async (ctx, { ms }: { readonly ms: number }) => {
      await step(ctx, 'before', 0)
      await ctx.sleep(ms)
      return step(ctx, 'after', 0)
    }),
    poison: workflow('chaos.poison', async (ctx) => {
      await ctx.step('kill', ({ attempt }) => {
        log?.begin(ctx.run.id, 'kill', attempt)
        process.exit(1)
      })
    }),
  }
}
