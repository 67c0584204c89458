// Inputs that a schema checks and changes: any library that follows the Standard Schema convention.

import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { workflow } from 'holdfast'
import { open, openWorking } from './open.ts'

const withZod = workflow(
  'with.zod',
  {
    input: z.object({
      orderId: z.string().min(1),
      total: z.coerce.number().positive(),
      lines: z.array(z.object({ sku: z.string() })).default([]),
    }),
  },
  (_ctx, order) => ({ ...order, kind: typeof order.total }),
)

const withValibot = workflow(
  'with.valibot',
  {
    input: v.object({
      orderId: v.pipe(v.string(), v.minLength(1)),
      total: v.pipe(v.string(), v.transform(Number), v.number()),
      lines: v.optional(v.array(v.object({ sku: v.string() })), []),
    }),
  },
  (_ctx, order) => ({ ...order, kind: typeof order.total }),
)

describe('an input schema', () => {
  it('of zod changes what the body gets', async () => {
    const holdfast = await openWorking([withZod])
    const run = await holdfast.start(withZod, { orderId: '42', total: '99.5' })
    expect(await run.result()).toEqual({ orderId: '42', total: 99.5, lines: [], kind: 'number' })
  })

  it('of valibot changes what the body gets', async () => {
    const holdfast = await openWorking([withValibot])
    const run = await holdfast.start(withValibot, { orderId: '42', total: '99.5' })
    expect(await run.result()).toEqual({ orderId: '42', total: 99.5, lines: [], kind: 'number' })
  })

  it('is applied once, when the run is started: what it made is what is stored', async () => {
    let checks = 0
    const counted = workflow(
      'counted',
      { input: z.string().transform((text) => `${text} ${(checks += 1)}`) },
      async (ctx, text) => {
        await ctx.sleep(1)
        return text
      },
    )
    const holdfast = await open({ workflows: [counted] })
    await holdfast.work({ cachedRuns: 0 })
    const run = await holdfast.start(counted, 'check')
    expect(await run.result()).toBe('check 1')
    expect((await holdfast.journal(run))[0]?.data).toBe('check 1')
  })

  it.each(['with.zod', 'with.valibot'])(
    '%s reports every issue with its path, and nothing is started',
    async (type) => {
      const holdfast = await open({ workflows: [withZod, withValibot] })
      const wrong = { orderId: '', total: '5', lines: [{ sku: 'a' }, { sku: 7 }] }
      const error = await holdfast.start(type, wrong).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringMatching(
          new RegExp(`^The input of workflow "${type}".*\\$\\.orderId: .*\\$\\.lines\\[1\\]\\.sku: `, 's'),
        ) as string,
        details: { issues: [{ path: '$.orderId' }, { path: '$.lines[1].sku' }] },
      })
    },
  )

  it('may be asynchronous', async () => {
    const lookUp = z.string().refine((id) => Promise.resolve(id === 'known'), 'No such customer')
    const asked = workflow('asked', { input: lookUp }, (_ctx, id) => id)
    const holdfast = await openWorking([asked])
    expect(await (await holdfast.start(asked, 'known')).result()).toBe('known')
    await expect(holdfast.start(asked, 'stranger')).rejects.toThrow('$: No such customer')
  })

  it('that is no schema is refused where the workflow is defined', () => {
    const input = { orderId: 'string' } as never
    expect(() => workflow('wrong', { input }, () => 1)).toThrow(/schema/i)
  })
})
