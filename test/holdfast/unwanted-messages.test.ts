// Messages that no wait asks for: they lie in the mailbox, and the run neither wakes nor commits because of them.

import { describe, expect, test } from 'vitest'
import { workflow, type Store } from 'holdfast'
import type { Transition } from '../../src/core/model/transition.ts'
import { gate, settled } from './gate.ts'
import { changed, kindsOf, virtualWorld } from './virtual-world.ts'

const stays = [
  { how: 'parked in memory', cachedRuns: 100 },
  { how: 'replayed', cachedRuns: 0 },
]

/** The store, and every transition that reaches it. */
function counted(store: Store): { readonly store: Store; readonly commits: Transition[] } {
  const commits: Transition[] = []
  return {
    commits,
    store: changed(store, {
      commit: (transitions) => {
        commits.push(...transitions)
        return store.commit(transitions)
      },
    }),
  }
}

const unwanted = 403

describe.each(stays)('a run that is $how', ({ cachedRuns }) => {
  test('sleeps through hundreds of signals that it does not wait for', async () => {
    const { open, store, clock, after } = virtualWorld()
    const world = counted(store)
    const sleeper = workflow('sleeper', async (ctx) => {
      await ctx.sleep('1h')
      return ctx.all(Array.from({ length: unwanted }, () => ctx.receive<number>('noise')))
    })
    const holdfast = await open({ store: world.store, workflows: [sleeper] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(sleeper)
    for (let payload = 0; payload < unwanted; payload += 1) {
      const { outcome } = await holdfast.signal(run, 'noise', payload)
      if (payload > 0) expect(outcome).toBe('queued')
      if (payload % 50 === 0) await clock.advance('1s')
    }
    await clock.advance('1 min')
    expect((await holdfast.get(run)).status).toBe('waiting')
    expect(world.commits.length).toBeLessThanOrEqual(2)
    expect(await after(run.result())).toEqual(Array.from({ length: unwanted }, (_, payload) => payload))
  })

  test('sleeps through them also when they come before it rests', async () => {
    const { open, store, clock } = virtualWorld()
    const world = counted(store)
    const { passed, open: letGo } = gate()
    const busy = workflow('busy', async (ctx) => {
      await ctx.step('work', () => passed)
      await ctx.sleep('1h')
    })
    const holdfast = await open({ store: world.store, workflows: [busy] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(busy)
    await settled()
    await holdfast.signals(Array.from({ length: unwanted }, () => ({ to: run, name: 'noise' })))
    letGo()
    await clock.advance('1 min')
    expect((await holdfast.get(run)).status).toBe('waiting')
    expect(world.commits.length).toBeLessThanOrEqual(2)
  })

  test('is woken by the one that it waits for', async () => {
    const { open, store, clock, after } = virtualWorld()
    const world = counted(store)
    const picky = workflow('picky', (ctx) => ctx.receive<string>('a'))
    const holdfast = await open({ store: world.store, workflows: [picky] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(picky)
    await clock.advance('1s')
    await holdfast.signals(Array.from({ length: unwanted }, () => ({ to: run, name: 'b' })))
    await clock.advance('1 min')
    const { status } = await holdfast.get(run)
    expect([status, world.commits.length]).toEqual(['waiting', 1])
    expect(await holdfast.signal(run, 'a', 'at last')).toMatchObject({ outcome: 'delivered' })
    expect(await after(run.result())).toBe('at last')
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'waiting', 'woken', 'succeeded'])
    expect((await holdfast.doctor()).flatMap(({ offenders }) => offenders)).toEqual([])
  })
})
