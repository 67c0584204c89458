// A backlog of one workflow delays no other on the same worker. Counted in runs that begin: in a time that the test owns, and
// from end to end on every store.

import { describe, expect, it } from 'vitest'
import { workflow, type Holdfast } from 'holdfast'
import { everyStore } from './stores.ts'
import { virtualWorld } from './virtual-world.ts'

const backlog = 2_000

async function crowded(concurrency: number) {
  const { open, pause, until } = virtualWorld()
  const begun: string[] = []
  const named = (type: string) =>
    workflow(type, (ctx, n: number) =>
      ctx.step('work', () => {
        begun.push(`${type} ${n}`)
        return pause(100)
      }),
    )
  const [many, few, rare] = [named('many'), named('few'), named('rare')]
  const workflows = [many, few, rare]
  const starter: Holdfast = await open({ workflows })
  for (let n = 0; n < backlog; n += 1) await starter.start(many, n)
  const worker: Holdfast = await open({ workflows })
  await worker.work({ concurrency })
  return { begun, until, starter, worker, few, rare }
}

describe('a run of one type behind 2,000 of another', () => {
  it.each([1, 4, 20])('begins after a handful of them, on a worker of %d slots', async (concurrency) => {
    const { begun, until, starter, few } = await crowded(concurrency)
    await until(() => begun.length >= 3 * concurrency)
    const before = begun.length
    await starter.start(few, 0)
    await until(() => begun.includes('few 0'))
    // What was under way, and what the worker had claimed already.
    expect(begun.length - before).toBeLessThanOrEqual(3 * concurrency + 1)
    expect(begun.length).toBeLessThan(backlog / 10)
  })

  it('also if it is started by the worker itself, which begins nothing at its start while others wait', async () => {
    const { begun, until, worker, few } = await crowded(2)
    await until(() => begun.length >= 6)
    const before = begun.length
    await worker.start(few, 0)
    await until(() => begun.includes('few 0'))
    expect(begun.length - before).toBeLessThanOrEqual(7)
  })

  it('takes turns with them if there are many of both, and each type keeps its order', async () => {
    const { begun, until, starter, few, rare } = await crowded(1)
    await until(() => begun.length >= 3)
    for (let n = 0; n < 10; n += 1) await starter.start(few, n)
    await starter.start(rare, 0)
    await until(() => begun.includes('few 9'))
    const first = begun.indexOf('few 0')
    expect(begun.indexOf('rare 0') - first).toBeLessThanOrEqual(2)
    // One of the others for each of them, and not one more.
    const types = begun.slice(first).flatMap((one) => (one === 'rare 0' ? [] : one.replace(/ .*/, '')))
    expect(types).toEqual(Array.from({ length: 19 }, (_, turn) => (turn % 2 === 0 ? 'few' : 'many')))
    for (const type of ['few', 'many']) {
      const numbers = begun.flatMap((one) => (one.startsWith(type) ? Number(one.split(' ')[1]) : []))
      expect(numbers).toEqual(numbers.map((_, n) => n))
    }
  })

  it('waits for all of them if its priority is lower', async () => {
    const { begun, until, starter, few } = await crowded(20)
    await starter.start(few, 0, { priority: -1 })
    await until(() => begun.includes('few 0'))
    expect(begun.length).toBeGreaterThan(backlog - 20)
  })
})

describe.each(everyStore)('on the $name store, from end to end', ({ make }) => {
  it('2,000 older runs of type a do not starve one of type b', async () => {
    const concurrency = 4
    const begun: string[] = []
    const named = (type: string) =>
      workflow(type, (ctx, n: number) => ctx.step('work', () => begun.push(`${type} ${n}`)))
    const [a, b] = [named('a'), named('b')]
    const { open } = await make()
    const starter = await open({ workflows: [a, b] })
    const started = await starter.startMany(Array.from({ length: backlog }, (_, n) => ({ workflow: a, input: n })))
    expect(started.every(({ ok }) => ok)).toBe(true)
    const run = await starter.start(b, 0)
    const worker = await open({ workflows: [a, b] })
    await worker.work({ concurrency })
    await run.result()
    // No more of the others than one claim takes, and the next one.
    expect(begun.indexOf('b 0')).toBeLessThanOrEqual(2 * concurrency)
  })
})
