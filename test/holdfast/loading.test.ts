// What a worker reads at once for the runs that it has claimed, however many and however large they are.

import { expect, test } from 'vitest'
import { workflow, type Store } from 'holdfast'
import type { Loaded } from '../../src/store.ts'
import { open } from './open.ts'
import { everyStore } from './stores.ts'
import { changed, virtualWorld } from './virtual-world.ts'

const mebi = 1024 * 1024
const bound = 16 * mebi

/** The store, and how many bytes of entries and of messages each load, and each claim, has handed out. */
function weighed(store: Store): { readonly store: Store; readonly loads: (readonly [number, number])[] } {
  const loads: (readonly [number, number])[] = []
  const sum = (all: readonly { readonly data: string | null }[]): number =>
    all.reduce((bytes, { data }) => bytes + (data?.length ?? 0), 0)
  const note = (loaded: readonly Loaded[]): readonly Loaded[] => {
    loads.push([sum(loaded.flatMap(({ entries }) => entries)), sum(loaded.flatMap(({ messages }) => messages))])
    return loaded
  }
  const load: Store['load'] = async (requests, mostBytes) => note(await store.load(requests, mostBytes))
  const claim: Store['claim'] = async (request) => {
    const claimed = await store.claim(request)
    note([{ entries: (claimed.fresh ?? []).map(({ entry }) => entry), messages: [] }])
    return claimed
  }
  return { loads, store: changed(store, { load, claim }) }
}

test.each(everyStore)(
  'runs with large payloads that are claimed together are read in several bounded loads: $name',
  async ({ make }) => {
    const { store } = await make()
    const world = weighed(store)
    const large = 'x'.repeat(900_000)
    const echo = workflow('echo', async (ctx, input: string) => {
      await ctx.step('work', () => 1)
      return input.length
    })
    const holdfast = await open({ store: world.store, workflows: [echo] })
    const runs = await Promise.all(Array.from({ length: 40 }, () => holdfast.start(echo, large)))
    await holdfast.work({ concurrency: 100 })
    for (const run of runs) expect(await run.result()).toBe(large.length)
    const full = world.loads.filter(([entries]) => entries > 0)
    expect(full.length).toBeGreaterThan(1)
    expect(Math.max(...full.map(([entries]) => entries))).toBeLessThan(bound + mebi)
  },
)

test('a long journal and a large mailbox are read in parts, and nothing of either is missed', async () => {
  const { open, store, clock, after } = virtualWorld()
  const world = weighed(store)
  const large = 'x'.repeat(900_000)
  const collector = workflow('collector', async (ctx) => {
    let sum = 0
    for (let count = 0; count < 25; count += 1) sum += (await ctx.receive<string>('part')).length
    return sum
  })
  const holdfast = await open({ store: world.store, workflows: [collector] })
  const run = await holdfast.start(collector)
  for (let part = 0; part < 20; part += 1) await holdfast.signal(run, 'part', large)
  await holdfast.work({ cachedRuns: 0 })
  await clock.advance('1s')
  for (let part = 0; part < 5; part += 1) await holdfast.signal(run, 'part', large)
  expect(await after(run.result())).toBe(25 * large.length)
  // A replay reads entries that are no larger than the bound at once.
  expect(Math.max(...world.loads.flat())).toBeLessThan(bound + mebi)
})

test('one name with more messages than fit into a load hides no other name, and nothing is lost', async () => {
  const { open, store, after } = virtualWorld()
  const world = weighed(store)
  const large = 'x'.repeat(900_000)
  const picky = workflow('picky', async (ctx) => {
    const first = await ctx.race({ many: ctx.receive<string>('z-many'), one: ctx.receive<string>('a-one') })
    const one = first.tag === 'one' ? first.value : await ctx.receive<string>('a-one')
    let sum = first.tag === 'many' ? first.value.length : 0
    for (let left = first.tag === 'many' ? 39 : 40; left > 0; left -= 1)
      sum += (await ctx.receive<string>('z-many')).length
    return [first.tag, one, sum]
  })
  const holdfast = await open({ store: world.store, workflows: [picky] })
  const runs = await Promise.all(Array.from({ length: 3 }, () => holdfast.start(picky)))
  for (const run of runs) {
    for (let part = 0; part < 40; part += 1) await holdfast.signal(run, 'z-many', large)
    await holdfast.signal(run, 'a-one', 'last')
  }
  await holdfast.work({ cachedRuns: 0 })
  for (const run of runs) expect(await after(run.result())).toEqual(['many', 'last', 40 * large.length])
  expect(Math.max(...world.loads.flat())).toBeLessThan(bound + mebi)
})
