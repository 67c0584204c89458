// How a run reads its mailbox: large ones, slow ones, and payloads that lie elsewhere or are encrypted. And what it says of it
// when it ends.

import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { HoldfastError, workflow, type Offload, type Store } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { settled, until } from './gate.ts'
import { changed, kindsOf, virtualWorld } from './virtual-world.ts'

const stays = [
  { how: 'parked in memory', cachedRuns: 100 },
  { how: 'replayed', cachedRuns: 0 },
]

const patient = workflow('patient', async (ctx, names: readonly string[]) => {
  const got: unknown[] = []
  for (const name of names) got.push(await ctx.receive(name))
  return got
})

describe.each(stays)('a run that is $how', ({ cachedRuns }) => {
  test('finds a signal behind more than it reads at once, and others in their order', async () => {
    const { open, after } = virtualWorld()
    const holdfast = await open({ workflows: [patient] })
    const run = await holdfast.start(patient, ['last', 'noise', 'noise', 'late'])
    const noise = Array.from({ length: 1_500 }, (_, payload) => ({ to: run, name: 'noise', payload }))
    await holdfast.signals([...noise, { to: run, name: 'last', payload: 'found' }])
    await holdfast.work({ cachedRuns })
    await after(until(async () => (await holdfast.get(run)).status === 'waiting'))
    await holdfast.signal(run, 'late', 'came')
    expect(await after(run.result())).toEqual(['found', 0, 1, 'came'])
  })

  test('takes more of one name than it reads at once', async () => {
    const { open, after } = virtualWorld()
    const counting = workflow('counting', async (ctx) => {
      let sum = 0
      for (let count = 0; count < 2_500; count += 1) sum += await ctx.receive<number>('number')
      await ctx.sleep('1 s')
      return sum
    })
    const holdfast = await open({ workflows: [counting] })
    const run = await holdfast.start(counting)
    await holdfast.signals(Array.from({ length: 2_500 }, () => ({ to: run, name: 'number', payload: 1 })))
    await holdfast.work({ cachedRuns })
    expect(await after(run.result())).toBe(2_500)
  })

  test('waits for three hundred children at once', async () => {
    const { open, after } = virtualWorld()
    const echo = workflow('echo', async (ctx, value: number) => {
      await ctx.sleep(value)
      return value
    })
    const parent = workflow('parent', async (ctx) => {
      const values = await ctx.all(Array.from({ length: 300 }, (_, value) => ctx.child(echo, value)))
      return values.every((value, at) => value === at)
    })
    const holdfast = await open({ workflows: [parent, echo] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    expect(await after(run.result())).toBe(true)
  })

  test('reads payloads that lie elsewhere, and such that are encrypted for the place that they came from', async () => {
    const { open, after } = virtualWorld()
    const kept = new Map<string, string>()
    const offload: Offload = {
      thresholdBytes: 100,
      put: async (text) => {
        kept.set(`kept-${kept.size}`, text)
        return `kept-${kept.size - 1}`
      },
      get: async (reference) => kept.get(reference) as string,
    }
    const large = 'x'.repeat(1_000)
    const child = workflow('child', () => large)
    const parent = workflow('parent', async (ctx) => {
      const token = ctx.token()
      ctx.expose('token', token.token)
      const small = await ctx.receive('small')
      const first = await ctx.receive('large')
      await ctx.sleep('1 s')
      return [small, first, await ctx.child(child), await token]
    })
    const codec = encryptingCodec({ keys: { only: randomBytes(32) }, current: 'only' })
    const holdfast = await open({ workflows: [parent, child], codec, offload })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    await holdfast.signal(run, 'large', large)
    await holdfast.signal(run, 'small', 1)
    await after(until(async () => (await holdfast.query(run, 'token')) !== undefined))
    await holdfast.complete((await holdfast.query(run, 'token')) as string, large)
    expect(await after(run.result())).toEqual([1, large, large, large])
    const woken = (await holdfast.journal(run)).filter(({ kind }) => kind === 'woken')
    expect(woken.map(({ data }) => data)).toEqual([1, large, undefined, large, large])
  })

  test('whose branches wait apart is resumed where the signal belongs, and the other goes on waiting (HE-E6, HE-E7)', async () => {
    const { open, after, clock } = virtualWorld()
    const steps: string[] = []
    const branching = workflow('branching', async (ctx) => {
      const branch = (name: string) =>
        ctx.branch(name, async (inner) => {
          await inner.step('before', () => void steps.push(`before ${name}`))
          const got = await inner.receive(name)
          await inner.step('after', () => void steps.push(`after ${name}`))
          return got
        })
      return Promise.all([branch('a'), branch('b')])
    })
    const holdfast = await open({ workflows: [branching] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(branching)
    await clock.advance('1 s')
    await holdfast.signal(run, 'b', 2)
    await clock.advance('1 s')
    expect(steps).toEqual(['before a', 'before b', 'after b'])
    await holdfast.signal(run, 'a', 1)
    expect(await after(run.result())).toEqual([1, 2])
    expect(steps).toEqual(['before a', 'before b', 'after b', 'after a'])
  })

  test('that gets what it does not wait for goes on waiting, and has it later (HE-E8)', async () => {
    const { open, after, clock } = virtualWorld()
    const holdfast = await open({ workflows: [patient] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(patient, ['first', 'second'])
    await clock.advance('1 s')
    await holdfast.signal(run, 'second', 2)
    await clock.advance('1 min')
    expect((await holdfast.get(run)).status).toBe('waiting')
    await holdfast.signal(run, 'first', 1)
    expect(await after(run.result())).toEqual([1, 2])
  })

  test('that was paused finds what came meanwhile', async () => {
    const { open, after, clock } = virtualWorld()
    const holdfast = await open({ workflows: [patient] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(patient, ['go'])
    await clock.advance('1 s')
    await holdfast.pause(run)
    expect(await holdfast.signal(run, 'go', 1)).toMatchObject({ outcome: 'queued' })
    await clock.advance('1 min')
    expect((await holdfast.get(run)).status).toBe('paused')
    await holdfast.resume(run)
    expect(await after(run.result())).toEqual([1])
  })
})

test('a mailbox that cannot be read for a while is read later, and the run is not given up', async () => {
  const { open, after, store, pause } = virtualWorld()
  let failures = 0
  const flaky: Store = changed(store, {
    load: (requests) => {
      failures += 1
      if (failures <= 3) throw new HoldfastError('STORE_UNAVAILABLE', 'Not now')
      return store.load(requests)
    },
  })
  const busy = workflow('busy', async (ctx) => {
    const work = ctx.step('work', () => pause(1_000))
    const got = await ctx.receive('go')
    await work
    return got
  })
  const holdfast = await open({ store: flaky, workflows: [busy] })
  await holdfast.work()
  const run = await holdfast.start(busy)
  await settled()
  await holdfast.signal(run, 'go', 1)
  const result = await after(run.result())
  expect(result).toBe(1)
  expect(await kindsOf(holdfast, run)).not.toContain('crashed')
})

test('an end says that nothing is unread if that is known, and nothing if it is not', async () => {
  const { open, after, store } = virtualWorld()
  const ends: (number | undefined)[] = []
  const noting: Store = changed(store, {
    commit: (transitions) => {
      for (const { status, emptyAt } of transitions) if (status === 'succeeded') ends.push(emptyAt)
      return store.commit(transitions)
    },
  })
  const holdfast = await open({ store: noting, workflows: [patient] })
  const all = await holdfast.start(patient, ['a', 'a'])
  const some = await holdfast.start(patient, ['a'])
  const none = await holdfast.start(patient, [])
  for (const run of [all, some]) await holdfast.signals([1, 2].map((payload) => ({ to: run, name: 'a', payload })))
  await holdfast.work({ concurrency: 1 })
  await after(Promise.all([all, some, none].map((run) => run.result())))
  expect(ends).toHaveLength(3)
  expect(new Set(ends)).toEqual(new Set([undefined, 0, 2]))
})

test('what a body asks of others inside of a step is refused, because a replay would miss it', async () => {
  const { open, after } = virtualWorld()
  const wrong = workflow('wrong', { retry: 'none' }, async (ctx, what: string) =>
    ctx.step('inside', async () => {
      if (what === 'token') return ctx.token().token
      return what === 'signal' ? ctx.receive('go') : ctx.start(patient, [])
    }),
  )
  const holdfast = await open({ workflows: [wrong, patient] })
  await holdfast.work()
  for (const what of ['signal', 'start', 'token']) {
    const run = await holdfast.start(wrong, what)
    await expect(after(run.result())).rejects.toMatchObject({ cause: { code: 'INVALID_OPTION' } })
  }
})
