import { describe, expect, it } from 'vitest'
import type { Duration } from '../../../src/core/definition/duration.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../support/function-rig.ts'

async function namesOf(body: Parameters<typeof workflow<unknown>>[1]): Promise<readonly (string | null)[]> {
  const rig = new FunctionRig()
  const held = await (await rig.start(workflow<unknown>('test.names', body as never))).begin()
  return (await held.journal()).slice(1, -1).map(({ name }) => name)
}

describe('the identity of a call', () => {
  it('of waits in nested ctx.all and ctx.race is the same if every wait is replayed from the journal', async () => {
    const flow = workflow('test.nested', async (ctx) => {
      const inner = (first: Duration, second: Duration): Promise<unknown> =>
        ctx.all([
          ctx.sleep(first),
          ctx.race({ b: ctx.sleep(second), c: ctx.race({ d: ctx.sleep('9h'), e: ctx.receive('e') }) }),
        ])
      const outer = [inner('3h', '1h'), inner('1h', '3h'), ctx.all({ d: ctx.sleep('2h'), e: ctx.sleep('2h') })]
      await Promise.all(outer)
      return inner('1h', '2h')
    })
    const storyOf = async (how: 'in memory' | 'replayed'): Promise<readonly string[]> => {
      const rig = new FunctionRig()
      const held = await (await rig.start(flow)).begin()
      while ((await held.status()) === 'waiting') await held.goOn(how)
      expect(await held.status()).toBe('succeeded')
      return (await held.journal()).map(({ kind, name }) => `${kind} ${name}`)
    }
    const story = await storyOf('in memory')
    const registered = story.filter((line) => line.startsWith('waiting'))
    // Three times a sleep and a race, which takes in the race inside of it, and two sleeps.
    expect(registered).toHaveLength(8)
    expect(new Set(registered).size).toBe(registered.length)
    expect(await storyOf('replayed')).toEqual(story)
  })

  it('PQ-A6 counts the calls of one name in call order', async () => {
    const names = await namesOf(async (ctx) => {
      await ctx.step('charge', () => 1)
      await ctx.step('refund', () => 1)
      await ctx.step('charge', () => 1)
      await ctx.step('charge', () => 1)
    })
    expect(names).toEqual(['charge', 'refund', 'charge#2', 'charge#3'])
  })

  it('PQ-A6 is counted the same for many names', async () => {
    const all = Array.from({ length: 20 }, (_, n) => `charge ${n}`)
    const names = await namesOf(async (ctx) => {
      for (const name of all) await ctx.step(name, () => 1)
      for (const name of all) await ctx.step(name, () => 1)
    })
    expect(names).toEqual([...all, ...all.map((name) => `${name}#2`)])
  })

  it('is not shared by a name that looks like the identity of another call', async () => {
    const names = await namesOf(async (ctx) => {
      await ctx.step('charge#2', () => 1)
      await ctx.step('charge', () => 1)
      await ctx.step('charge', () => 1)
      await ctx.step('charge%232', () => 1)
      await ctx.step('eu/charge', () => 1)
      await ctx.branch('eu', (inner) => inner.step('charge', () => 1))
      await ctx.step('eu%2Fcharge', () => 1)
    })
    expect(new Set(names).size).toBe(7)
    expect(names).toContain('charge#2')
    expect(names).toContain('eu/charge')
  })

  it('stays what it is in a branch, whatever happens beside it', async () => {
    const names = await namesOf(async (ctx) => {
      await Promise.all([
        ctx.branch('eu', async (inner) => {
          await inner.step('charge', () => 1)
          await inner.step('charge', () => 1)
        }),
        ctx.branch('us', (inner) => inner.step('charge', () => 1)),
        ctx.branch('eu', (inner) => inner.branch('eu', (deeper) => deeper.step('charge', () => 1))),
        ctx.step('charge', () => 1),
      ])
    })
    expect(new Set(names)).toEqual(new Set(['charge', 'eu#2/eu/charge', 'eu/charge', 'eu/charge#2', 'us/charge']))
    expect(names).toHaveLength(5)
  })

  it('counts steps, waits, values and notes apart', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.kinds', async (ctx) => {
      ctx.now()
      await ctx.step('now', () => 1)
      ctx.log('a line')
      await ctx.step('log', () => 1)
      await ctx.step('sleep', () => 1)
      await ctx.sleep('1 day')
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.story()).toEqual([
      'started',
      'recorded now',
      'step-succeeded now',
      'logged log',
      'step-succeeded log',
      'step-succeeded sleep',
      'waiting sleep',
    ])
    await held.goOn('replayed')
    expect((await rig.run(held.runId)).status).toBe('succeeded')
  })

  it.each(['', '\n', 'a\u0000', '\ud800', 'x'.repeat(201)])('refuses the name %j', async (name) => {
    const rig = new FunctionRig()
    const flow = workflow('test.name', { retry: 'none' }, (ctx) => ctx.step(name, () => 1))
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { code: 'INVALID_NAME' } })
  })

  it('gives each step a key that every attempt, also after a replay, finds again', async () => {
    const rig = new FunctionRig()
    const keys: string[] = []
    const flow = workflow('test.key', async (ctx) => {
      await ctx.step(
        'charge #1 / eu',
        (tools) => {
          keys.push(tools.idempotencyKey)
          if (tools.attempt < 4) throw new Error('not yet')
        },
        { retry: { maxAttempts: 4, initial: '1h', kind: 'constant', jitter: { mode: 'none' } } },
      )
      await ctx.step('charge', (tools) => keys.push(tools.idempotencyKey))
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn('in memory')
    await held.goOn('replayed')
    await held.goOn('replayed')
    expect((await rig.run(held.runId)).status).toBe('succeeded')
    expect(keys).toHaveLength(5)
    expect(new Set(keys.slice(0, 4)).size).toBe(1)
    expect(keys[4]).not.toBe(keys[0])
    expect(keys[0]).toMatch(/^[\w.%:!~*'()-]+$/)
  })
})
