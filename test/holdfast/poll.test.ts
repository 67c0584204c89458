// How long a process waits before it looks by itself, for work and for the ends of runs, is its owner's to say.

import { expect, it } from 'vitest'
import { createHoldfast, createMemoryStore, workflow } from '../../src/index.ts'
import type { Duration } from '../../src/core/definition/duration.ts'
import type { Store } from '../../src/store.ts'
import { createVirtualClock, silentLogger } from '../../src/testing/index.ts'

/** Runs two minutes in which nobody tells anything, and counts how often the store was asked. */
async function looksIn2Minutes(poll: Duration | undefined): Promise<{ claims: number; looks: number }> {
  const clock = createVirtualClock()
  const store = createMemoryStore(clock)
  const counts = { claims: 0, looks: 0 }
  const deaf: Store = new Proxy(store, {
    get(target, name): unknown {
      if (name === 'listen') return () => Promise.resolve(() => undefined)
      if (name === 'claim') counts.claims += 1
      if (name === 'get') counts.looks += 1
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
  const forever = workflow('forever', {}, async (ctx) => ctx.receive('never'))
  const options = { store: deaf, workflows: [forever], logger: silentLogger, ports: { clock } }
  const holdfast = await createHoldfast(poll === undefined ? options : { ...options, poll })
  await holdfast.work({ lease: '10 days', signals: false })
  const result = (await holdfast.start(forever)).result()
  await clock.advance('2 min')
  const closing = holdfast.close()
  await expect(result).rejects.toMatchObject({ code: 'CLOSED' })
  await closing
  return counts
}

it('looks every few seconds by default', async () => {
  const { claims, looks } = await looksIn2Minutes(undefined)
  expect(claims).toBeGreaterThan(20)
  expect(looks).toBeGreaterThan(60)
})

it('looks as seldom as it is told to', async () => {
  const { claims, looks } = await looksIn2Minutes('1h')
  expect(claims).toBeLessThan(10)
  expect(looks).toBeLessThan(10)
})
