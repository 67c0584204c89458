// How long a process waits before it looks by itself, for work and for the ends of runs, is its owner's to say.

import { expect, it } from 'vitest'
import { createHoldfast, createMemoryStore, workflow } from '../../src/index.ts'
import type { Duration } from '../../src/core/definition/duration.ts'
import type { Store } from '../../src/store.ts'
import { createVirtualClock, silentLogger } from '../../src/testing/index.ts'

/** Runs two minutes in which no hint arrives, and counts how often the store was asked. */
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

it('looks as seldom as its option says', async () => {
  const { claims, looks } = await looksIn2Minutes('1h')
  expect(claims).toBeLessThan(10)
  expect(looks).toBeLessThan(10)
})

it('a caller whose time is over gets the result of a run that has ended unnoticed', async () => {
  const clock = createVirtualClock()
  const store = createMemoryStore(clock)
  const deaf: Store = new Proxy(store, {
    get(target, name): unknown {
      if (name === 'listen') return () => Promise.resolve(() => undefined)
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
  const answer = workflow('answer', {}, async (ctx) => ctx.step('think', () => 42))
  const shared = { workflows: [answer], logger: silentLogger, ports: { clock } }
  const caller = await createHoldfast({ ...shared, store: deaf, poll: '1h' })
  const worker = await createHoldfast({ ...shared, store })
  const run = await caller.start(answer)
  const result = run.result({ timeout: '10s' })
  await worker.work({ signals: false })
  await worker.run(run).result()
  await clock.advance('10s')
  expect(await result).toBe(42)
  await Promise.all([caller.close(), worker.close()])
})

it('a caller whose time is over while a failed run is retried gets that as its error, and does not wait on', async () => {
  const clock = createVirtualClock()
  const store = createMemoryStore(clock)
  let hasFailed = false
  const flaky = workflow('flaky', { retry: 'none' }, async (ctx) => {
    if (!hasFailed) throw new Error('not yet')
    return ctx.receive('never')
  })
  const shared = { workflows: [flaky], logger: silentLogger, ports: { clock } }
  const worker = await createHoldfast({ ...shared, store })
  let isRetried = false
  const deaf: Store = new Proxy(store, {
    get(target, name): unknown {
      if (name === 'listen') return () => Promise.resolve(() => undefined)
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      if (name !== 'get') return member.bind(target) as unknown
      return async (ids: readonly string[]) => {
        const found = await target.get(ids)
        // An operator retries the run as soon as it was read as failed.
        if (found[0]?.status === 'failed' && !isRetried) {
          isRetried = hasFailed = true
          await worker.retry(found[0].id)
        }
        return found
      }
    },
  })
  const caller = await createHoldfast({ ...shared, store: deaf, poll: '1h' })
  const run = await caller.start(flaky)
  const result = run.result({ timeout: '10s' }).catch((error: unknown) => error)
  await worker.work({ signals: false })
  await clock.advance('20s')
  expect(isRetried).toBe(true)
  expect(await Promise.race([result, Promise.resolve('unsettled')])).toMatchObject({ code: 'RESULT_TIMEOUT' })
  const closing = Promise.all([caller.close(), worker.close()])
  await clock.advance('1 min')
  await closing
})
