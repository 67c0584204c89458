import { describe, expect, it } from 'vitest'
import type { Draft } from '../../../src/core/model/entry.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

function dropped(seq: number): Extract<Draft, { kind: 'amended' }> {
  return { kind: 'amended', name: null, meta: { seq, dropped: true }, data: null }
}

function replaced(seq: number, name: string, value: unknown): Extract<Draft, { kind: 'amended' }> {
  return { kind: 'amended', name, meta: { seq, dropped: false }, data: JSON.stringify(value) }
}

async function causeOf(held: Held): Promise<number> {
  const last = (await held.journal()).at(-1)
  if (last?.kind !== 'failed') throw new Error('The run has not failed')
  return last.meta?.cause ?? 0
}

describe('a failed run that is retried', () => {
  it('runs the step that failed again, from its first attempt, and nothing that was recorded', async () => {
    const rig = new FunctionRig()
    const ran: string[] = []
    let isBroken = true
    const flow = workflow('repair.retry', async (ctx) => {
      await ctx.step('a', () => void ran.push('a'))
      return ctx.step(
        'b',
        ({ attempt }) => {
          ran.push(`b${attempt}`)
          if (isBroken) throw new Error('Broken')
          return 'B'
        },
        { retry: { maxAttempts: 2, initial: 0 } },
      )
    })
    const held = await (await rig.start(flow)).begin()
    await rig.pass(0)
    expect(await held.status()).toBe('failed')
    isBroken = false
    expect(await held.revive('retry', [dropped(await causeOf(held))])).toMatchObject({ outcome: 'done' })
    await held.goOn()
    expect(ran).toEqual(['a', 'b1', 'b2', 'b1'])
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'B' })
    expect((await held.story()).slice(4)).toEqual(['failed', 'amended', 'retried', 'step-succeeded b', 'succeeded'])
  })

  it('counts the attempts of its body anew', async () => {
    const rig = new FunctionRig()
    let bodies = 0
    const flow = workflow('repair.body', { retry: { maxAttempts: 2, initial: 0, jitter: { mode: 'none' } } }, () => {
      bodies += 1
      throw new Error('Broken')
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn()
    expect([await held.status(), bodies]).toEqual(['failed', 2])
    await held.revive('retry')
    await held.goOn()
    await held.goOn()
    expect([await held.status(), bodies]).toEqual(['failed', 4])
  })
})

describe('optional outcomes', () => {
  /** A journal in which `b` failed, then `c` and `d` were recorded, and `b` was dropped. */
  async function withOptionalOutcomes(rig: FunctionRig, names: readonly string[]): Promise<Held> {
    const first = new FunctionRig()
    const flow = workflow('repair.order', async (ctx) => {
      const a = ctx.step('a', first.gated)
      const b = ctx.step('b', first.gated, { retry: 'none' })
      const rest = ['c', 'd'].map((name) => ctx.step(name, first.gated))
      await Promise.all([a, ...rest])
      await b
    })
    const held = await (await first.start(flow)).begin()
    await first.succeed('a', 'A')
    await first.fail('b', new Error('Broken'))
    await first.succeed('c', 'C')
    await first.succeed('d', 'D')
    expect(await held.story()).toEqual([
      'started',
      'step-succeeded a',
      'step-failed b',
      'step-succeeded c',
      'step-succeeded d',
      'failed',
    ])
    await held.revive('retry', [dropped(3)])
    const second = workflow('repair.order', async (ctx) => {
      const seen: string[] = []
      const all = names.map(async (name) => void seen.push(String(await ctx.step(name, rig.gated))))
      await Promise.all(all)
      await ctx.step('after', rig.gated)
      seen.push(await ctx.step('d', () => 'D anew'))
      return seen
    })
    return (await rig.adopt(second, await held.journal())).begin()
  }

  it('come in their order, keep nothing that is new waiting, and show the same to every replay', async () => {
    const rig = new FunctionRig()
    const held = await withOptionalOutcomes(rig, ['b', 'c', 'a'])
    expect(rig.gates.map(({ step }) => step)).toEqual(['b'])
    await rig.succeed('b', 'B')
    await rig.succeed('after')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['A', 'C', 'B', 'D'] })
    const journal = await held.journal()
    for (let length = 8; length < journal.length; length += 1) {
      const again = new FunctionRig()
      const names = ['b', 'c', 'a']
      const flow = workflow('repair.order', async (ctx) => {
        const seen: string[] = []
        const all = names.map(async (name) => void seen.push(await ctx.step(name, () => name.toUpperCase())))
        await Promise.all(all)
        await ctx.step('after', () => undefined)
        seen.push(await ctx.step('d', () => 'D anew'))
        return seen
      })
      const other = await (await again.adopt(flow, journal.slice(0, length))).begin()
      expect(await other.outcome()).toEqual(await held.outcome())
    }
  })

  it('that nobody asks for are no drift, at the end of the run', async () => {
    const rig = new FunctionRig()
    const held = await withOptionalOutcomes(rig, ['a', 'b'])
    await rig.succeed('b', 'B')
    await rig.succeed('after')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['A', 'B', 'D'] })
  })

  it('outcomes that came before the one that was dropped are not among them', async () => {
    const rig = new FunctionRig()
    const held = await withOptionalOutcomes(rig, ['b'])
    await rig.pass(6_000)
    expect(await held.status()).toBe('paused')
  })
})

describe('a run whose journal was repaired', () => {
  it('gets the result that took the place of a failure, and of a result', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const flow = workflow('repair.amend', async (ctx) => {
      const a = await ctx.step('a', () => 'A', { undo: (value) => void undone.push(value) })
      const b = await ctx.step(
        'b',
        (): string => {
          throw new Error('Broken')
        },
        { retry: 'none' },
      )
      await ctx.sleep('1 day')
      if (b === 'fails') throw new Error('Enough')
      return [a, b]
    })
    const held = await (await rig.start(flow)).begin()
    // What was done can be undone, so that this run fails by undoing it.
    expect(undone).toEqual(['A'])
    const prefix = (await held.journal()).slice(0, 4)
    const second = new FunctionRig()
    const other = await second.adopt(flow, [
      ...prefix,
      { ...replaced(3, 'a', 'A2'), seq: 5, at: 0, transition: null },
      { ...replaced(4, 'b', 'B2'), seq: 6, at: 0, transition: null },
    ])
    await other.begin()
    await other.goOn('replayed')
    expect(await other.outcome()).toEqual({ status: 'succeeded', value: ['A2', 'B2'] })
  })

  it('undoes a step with the result that took the place of its own', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const flow = workflow('repair.undo', async (ctx) => {
      await ctx.step('a', () => 'A', { undo: (value) => void undone.push(value) })
      await ctx.step('b', rig.gated)
    })
    const held = await (await rig.start(flow)).begin()
    await held.pause()
    await rig.succeed('b')
    const whole = await held.journal()
    const second = new FunctionRig()
    const prefix = whole.slice(0, 3)
    const other = await second.adopt(flow, [...prefix, { ...replaced(3, 'a', 'A2'), seq: 4, at: 0, transition: null }])
    second.store.release(other.runId)
    await other.cancel()
    await other.goOn()
    expect(undone).toEqual(['A2'])
  })

  it('has no outcome where it was dropped, and goes on after drift with what was recorded behind it', async () => {
    const rig = new FunctionRig()
    const ran: string[] = []
    const names = { now: ['a', 'b', 'c'] }
    const flow = workflow('repair.drift', async (ctx) => {
      for (const name of names.now) await ctx.step(name, () => void ran.push(name))
      await ctx.sleep('1 day')
    })
    const held = await (await rig.start(flow)).begin()
    names.now = ['a', 'renamed', 'c']
    await held.goOn('replayed')
    await rig.pass(6_000)
    expect(await held.status()).toBe('paused')
    await held.revive('resume', [dropped(3)])
    await held.goOn()
    expect(ran).toEqual(['a', 'b', 'c', 'renamed'])
    expect(await held.status()).toBe('succeeded')
  })
})

describe('the start of a run', () => {
  it('may say how often the body is tried, in place of what its workflow says', async () => {
    const rig = new FunctionRig()
    let bodies = 0
    const flow = workflow(
      'repair.attempts',
      { retry: { maxAttempts: 5, initial: 0, jitter: { mode: 'none' } } },
      () => {
        bodies += 1
        throw new Error('Broken')
      },
    )
    const first = { kind: 'started', name: null, meta: { maxAttempts: 2 }, data: 'null' } as const
    const held = await (await rig.adopt(flow, [{ ...first, seq: 1, at: 0, transition: null }])).begin()
    await held.goOn()
    expect([await held.status(), bodies]).toEqual(['failed', 2])
  })
})
