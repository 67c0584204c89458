// What users hold they also log, and answer requests with. Nothing of the engine behind it may be in there: it knows the key that
// tokens are made with, and the way to the database.

import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { everyStore } from './stores.ts'

const tokenKey = 'a key of completion tokens that nobody must see in a log'

describe.each(everyStore)('on the $name store', ({ make }) => {
  it('a handle, a context, the tools of a step and a wait show what they are about, and no secret', async () => {
    const { open } = await make()
    const held: unknown[] = []
    const flow = workflow('shown', async (ctx) => {
      await ctx.step('look', (step) => void held.push(step))
      const wait = ctx.sleep(1)
      held.push(ctx, wait)
      await wait
    })
    const holdfast = await open({ workflows: [flow], tokenKey })
    const worker = await holdfast.work()
    const run = await holdfast.start(flow, undefined, { key: 'k' })
    await run.result()
    held.push(run, holdfast, worker)
    for (const one of held) {
      const texts = [inspect(one, { depth: Infinity, showHidden: false }), JSON.stringify(one)]
      for (const text of texts) {
        expect(text).not.toContain(tokenKey)
        expect(text.length).toBeLessThan(4_000)
      }
    }
    expect(JSON.parse(JSON.stringify(run))).toEqual({ id: run.id, created: true, key: 'k' })
    expect(held.slice(0, 3).map((one) => JSON.parse(JSON.stringify(one)) as unknown)).toEqual([
      { idempotencyKey: `${run.id}:1:look`, attempt: 1, isRetry: false },
      { run: { id: run.id, type: 'shown', version: 1 } },
      { waitsFor: ['delay'] },
    ])
  })
})
