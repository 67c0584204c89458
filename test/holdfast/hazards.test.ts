// Hazards that befell others, and that have no better place.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import type { Transition } from '../../src/core/model/transition.ts'
import { until } from './gate.ts'
import { memoryStore, open } from './open.ts'

const orders = [
  ['a', 'b', 'c'],
  ['a', 'c', 'b'],
  ['b', 'a', 'c'],
  ['b', 'c', 'a'],
  ['c', 'a', 'b'],
  ['c', 'b', 'a'],
] as const

describe('results of parallel branches', () => {
  // Elsewhere, two replays bound one id to two steps, and their results were swapped in silence.
  it.each(orders)('are never swapped by a replay when they end in the order %s, %s, %s', async (...order) => {
    const doors = new Map<string, () => void>()
    const opened = (name: string): Promise<string> => new Promise((resolve) => doors.set(name, () => resolve(name)))
    let bodies = 0
    const fan = workflow('fan', async (ctx) => {
      bodies += 1
      const branch = (name: string): Promise<string> =>
        ctx.branch(name, async (inner) => {
          const first = await inner.step('work', () => opened(name))
          return `${first}, then ${await inner.step('more', () => `${name} again`)}`
        })
      const results = await Promise.all([branch('a'), branch('b'), branch('c')])
      await ctx.sleep('1 ms')
      return results
    })
    const holdfast = await open({ workflows: [fan] })
    await holdfast.work({ cachedRuns: 0 })
    const run = await holdfast.start(fan)
    for (const name of order) {
      await until(() => doors.has(name))
      doors.get(name)?.()
      await until(async () => (await holdfast.journal(run)).some((entry) => entry.name === `${name}/more`))
    }
    expect(await run.result()).toEqual(['a, then a again', 'b, then b again', 'c, then c again'])
    expect(bodies).toBe(2)
  })
})

describe('a step of a long run', () => {
  // Elsewhere, the time per step grew with the history.
  it('asks no more of the store than the first one: one entry, and nothing of the journal is read', async () => {
    const store = memoryStore()
    const commits: Transition[] = []
    let loads = 0
    const spying = new Proxy(store, {
      get(target, key) {
        if (key === 'load') {
          return (...request: Parameters<typeof target.load>) => {
            loads += 1
            return target.load(...request)
          }
        }
        if (key === 'commit') {
          return (transitions: readonly Transition[]) => {
            commits.push(...transitions)
            return target.commit(transitions)
          }
        }
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    const steps = 10_000
    const long = workflow('long', async (ctx) => {
      for (let step = 0; step < steps; step += 1) await ctx.step('next', () => step)
    })
    const holdfast = await open({ store: spying, workflows: [long] })
    await holdfast.work()
    await (await holdfast.start(long)).result()
    expect(loads).toBe(0)
    expect(commits).toHaveLength(steps)
    expect(commits.filter(({ append }) => append.length > 1)).toHaveLength(1)
  })
})
