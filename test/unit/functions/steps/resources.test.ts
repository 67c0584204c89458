import { describe, expect, it } from 'vitest'
import type { Context } from '../../../../src/functions/api/context.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../../support/function-rig.ts'

class Pool {
  readonly story: string[] = []
  private made = 0

  lend<Result>(ctx: Context, name: string, use: (resource: string) => Promise<Result>): Promise<Result> {
    return ctx.withResource(
      () => {
        const resource = `${name}${(this.made += 1)}`
        this.story.push(`+${resource}`)
        return resource
      },
      (resource) => this.story.push(`-${resource}`),
      use,
    )
  }
}

describe('WC-A6 a resource', () => {
  it('is not acquired by a call of the context, which could not settle: that is refused, and a long wait is logged', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.acquire', { retry: 'none' }, (ctx) =>
      ctx.withResource(
        () => ctx.step('connect', () => 1),
        () => undefined,
        async () => 1,
      ),
    )
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { code: 'INVALID_OPTION' } })
    const later = workflow('test.acquire.later', { retry: 'none' }, (ctx) =>
      ctx.withResource(
        async () => {
          await Promise.resolve()
          return ctx.step('connect', () => 1)
        },
        () => undefined,
        async () => 1,
      ),
    )
    await (await rig.start(later)).begin()
    await rig.pass(10_000)
    expect(rig.lines.filter(({ message }) => message.includes('has not been acquired after 10 s'))).toHaveLength(1)
  })

  it('is released, last first, when its block succeeds and when it fails', async () => {
    for (const fails of [false, true]) {
      const rig = new FunctionRig()
      const pool = new Pool()
      const flow = workflow('test.blocks', { retry: 'none' }, (ctx) =>
        pool.lend(ctx, 'outer', () =>
          pool.lend(ctx, 'inner', () =>
            ctx.step('a', () => {
              if (fails) throw new Error('bad')
            }),
          ),
        ),
      )
      const held = await (await rig.start(flow)).begin()
      expect((await rig.run(held.runId)).status).toBe(fails ? 'failed' : 'succeeded')
      expect(pool.story).toEqual(['+outer1', '+inner2', '-inner2', '-outer1'])
    }
  })

  it('is released, last first, when the run is parked, and is fresh when it goes on', async () => {
    const rig = new FunctionRig()
    const pool = new Pool()
    const flow = workflow('test.parked', (ctx) =>
      pool.lend(ctx, 'outer', (outer) =>
        pool.lend(ctx, 'inner', async (inner) => {
          await ctx.step('a', () => 1)
          await ctx.sleep('1 day')
          return [outer, inner]
        }),
      ),
    )
    const held = await (await rig.start(flow)).begin()
    expect(held.departure).toEqual({ kind: 'parked' })
    expect(held.frame.seq).toBeNull()
    expect(pool.story).toEqual(['+outer1', '+inner2', '-inner2', '-outer1'])
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['outer3', 'inner4'] })
    expect(pool.story.slice(4)).toEqual(['+outer3', '+inner4', '-inner4', '-outer3'])
  })

  it('is released when the lease is lost, and when the body ends beside it', async () => {
    const rig = new FunctionRig()
    const pool = new Pool()
    const lost = workflow('test.lost', (ctx) => pool.lend(ctx, 'r', () => ctx.step('a', rig.gated)))
    const held = await (await rig.start(lost)).begin()
    held.frame.abort(new Error('gone'))
    await rig.quiet()
    expect(pool.story).toEqual(['+r1', '-r1'])

    const beside = workflow('test.beside', (ctx) =>
      Promise.race([pool.lend(ctx, 'r', () => ctx.step('a', rig.gated)), ctx.step('b', rig.gated)]),
    )
    await (await rig.start(beside)).begin()
    await rig.succeed('b', 1)
    await rig.succeed('a', 1)
    expect(pool.story.slice(2)).toEqual(['+r2', '-r2'])
  })

  it('that cannot be acquired throws into the body; one that cannot be released is logged and nothing else', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.broken', async (ctx) => {
      const caught = await ctx
        .withResource(
          () => Promise.reject(new Error('no connection')),
          () => undefined,
          async () => 'used',
        )
        .catch((error: unknown) => (error as Error).message)
      const used = await ctx.withResource(
        () => 1,
        () => Promise.reject(new Error('stuck')),
        () => ctx.step('a', () => 'used'),
      )
      return [caught, used]
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['no connection', 'used'] })
    expect(rig.lines.filter(({ level }) => level === 'error')).toHaveLength(1)
  })

  it('that is slow to acquire delays what the body sees, live and replayed', async () => {
    const orders: string[][] = []
    const acquirings: (() => void)[] = []
    const rig = new FunctionRig()
    const flow = workflow('test.slow', async (ctx) => {
      const order: string[] = []
      orders.push(order)
      await Promise.all([
        ctx.step('a', rig.gated).then(() => order.push('a')),
        ctx.withResource(
          () => new Promise<void>((resolve) => acquirings.push(resolve)),
          () => undefined,
          async () => {
            order.push('acquired')
            await ctx.step('b', () => 1)
            order.push('b')
          },
        ),
      ])
      await ctx.sleep('1 day')
    })
    const held = await (await rig.start(flow)).begin()
    await rig.succeed('a')
    acquirings[0]?.()
    await rig.quiet()
    const replayed = held.goOn('replayed')
    await replayed
    acquirings[1]?.()
    await rig.quiet()
    expect((await rig.run(held.runId)).status).toBe('succeeded')
    expect(orders).toEqual([
      ['acquired', 'a', 'b'],
      ['acquired', 'a', 'b'],
    ])
  })
})
