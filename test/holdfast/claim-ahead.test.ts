// Under a backlog a worker claims more than it has slots for: no slot waits for the store, and nobody waits for a worker that
// does not get to what it has claimed.

import { describe, expect, it } from 'vitest'
import { workflow, type Store } from 'holdfast'
import { changed, virtualWorld } from './virtual-world.ts'

/** Quick runs with slow ones behind them, and a worker of one slot that begins with the quick ones. */
async function backlog(slow: number) {
  const { open, store, after, pause, until } = virtualWorld()
  const claims: number[] = []
  const given: string[] = []
  const begun = new Map<number, string[]>()
  const counted = changed(store, {
    claim: async (request) => {
      const claimed = await store.claim(request)
      claims.push(claimed.runs.length)
      return claimed
    },
    release: (leases) => {
      for (const { runId } of leases) given.push(runId)
      return store.release(leases)
    },
  } satisfies Partial<Store>)
  const job = (worker: string) =>
    workflow('job', (ctx, [ms, n]: [number, number]) =>
      ctx.step('work', () => {
        begun.set(n, [...(begun.get(n) ?? []), worker])
        return pause(ms)
      }),
    )
  const order = job('nobody')
  const starter = await open({ workflows: [order] })
  const lengths = [...Array.from({ length: 100 }, () => 5), ...Array.from({ length: slow }, () => 20_000)]
  const inputs = lengths.map((ms, n): [number, number] => [ms, n])
  const runs = await Promise.all(inputs.map((input) => starter.start(order, input)))
  const first = await open({ store: counted, workflows: [job('first')] })
  await first.work({ concurrency: 1 })
  const ended = (): Promise<unknown> => after(Promise.all(runs.map((run) => run.result())))
  return { claims, given, begun, first, open, job, until, after, ended }
}

describe('a worker that has a backlog', () => {
  it('with one slot makes a claim for many runs, and performs them one after the other in their order', async () => {
    const { claims, given, begun, ended } = await backlog(0)
    await ended()
    expect([...begun.keys()]).toEqual(Array.from({ length: 100 }, (_, n) => n))
    expect(claims.length).toBeLessThan(50)
    expect(given).toEqual([])
  })

  it('gives back what it does not get to, uncounted: others perform it meanwhile, and nobody twice', async () => {
    const { given, begun, open, job, until, ended } = await backlog(5)
    await until(() => begun.size > 100)
    expect([...begun.values()].flat()).toEqual(Array.from({ length: 101 }, () => 'first'))
    const second = await open({ workflows: [job('second')] })
    await second.work({ concurrency: 4 })
    await ended()
    expect(given.length).toBeGreaterThan(0)
    expect([...begun.values()].slice(101).map(([worker]) => worker)).toEqual(Array.from({ length: 4 }, () => 'second'))
    expect([...begun.values()].every((workers) => workers.length === 1)).toBe(true)
    const { runs } = await second.find({ type: 'job' })
    expect(new Set(runs.map(({ crashes }) => crashes))).toEqual(new Set([0]))
  })

  it('gives back what it claimed ahead when it stops', async () => {
    const { begun, given, first, until, after, open, job, ended } = await backlog(0)
    await until(() => begun.size > 40)
    await after(first.close())
    const count = begun.size
    expect(count).toBeLessThan(60)
    expect(given.length).toBeGreaterThan(0)
    const second = await open({ workflows: [job('second')] })
    await second.work()
    await ended()
    expect([...begun.values()].map(([worker]) => worker)).toEqual([
      ...Array.from({ length: count }, () => 'first'),
      ...Array.from({ length: 100 - count }, () => 'second'),
    ])
  })
})
