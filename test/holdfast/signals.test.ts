// Signals as a body receives them: never too early, never twice, in order; and what a run that waits costs.

import { describe, expect, it, test } from 'vitest'
import { isHoldfastError, topic, workflow, type Holdfast, type Store } from 'holdfast'
import { changed, kindsOf, virtualWorld } from './virtual-world.ts'
import { everyStore } from './stores.ts'
import { gate, settled, until } from './gate.ts'

const two = workflow('two', async (ctx) => [await ctx.receive('go'), await ctx.receive('go')])

/** Waiting runs stay in memory, or are replayed when they are woken. */
const stays = [
  { how: 'parked in memory', cachedRuns: 100 },
  { how: 'replayed', cachedRuns: 0 },
]

async function isWaiting(holdfast: Holdfast, run: { readonly id: string }): Promise<boolean> {
  return (await holdfast.get(run)).status === 'waiting'
}

describe.each(stays)('a body that is $how', ({ cachedRuns }) => {
  test('finds a signal that was sent before it waited for it (WC-W1)', async () => {
    const { open, after } = virtualWorld()
    const holdfast = await open({ workflows: [two] })
    const run = await holdfast.start(two)
    expect(await holdfast.signal(run, 'go', 1)).toMatchObject({ outcome: 'queued' })
    await holdfast.work({ cachedRuns })
    await after(
      until(async () => {
        if (await isWaiting(holdfast, run)) await holdfast.signal(run, 'go', 2, { id: 'second' })
        return (await holdfast.get(run)).status === 'succeeded'
      }),
    )
    expect(await after(run.result())).toEqual([1, 2])
  })

  test('gets signals of a name in the order in which they were sent, and each once', async () => {
    const { open, after } = virtualWorld()
    const counting = workflow('counting', async (ctx) => {
      const seen: unknown[] = []
      while (seen.length < 10) {
        seen.push(await ctx.receive('count'))
        await ctx.sleep('1 s')
      }
      return seen
    })
    const holdfast = await open({ workflows: [counting] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(counting)
    for (let count = 0; count < 10; count += 1) {
      await holdfast.signal(run, 'other', count)
      await holdfast.signal(run, 'count', count, { id: `count ${count}` })
      expect(await holdfast.signal(run, 'count', 'again', { id: `count ${count}` })).toHaveProperty('outcome')
    }
    expect(await after(run.result())).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  test('gets what was sent to it before what a topic passed on', async () => {
    const { open, after, clock } = virtualWorld()
    const news = topic('news', { retain: '1 h' })
    const reader = workflow('reader', async (ctx) => {
      await ctx.sleep('1 min')
      return [await ctx.receive(news), await ctx.receive(news)]
    })
    const holdfast = await open({ workflows: [reader] })
    await holdfast.work({ cachedRuns })
    await holdfast.broadcast(news, 'to all')
    const run = await holdfast.start(reader)
    await clock.advance('1 s')
    await holdfast.signal(run, news, 'to you')
    expect(await after(run.result())).toEqual(['to you', 'to all'])
  })

  test('is woken by a signal while it waits, and replays to the same value after any crash (WC-W4, WC-P2)', async () => {
    const { open, after } = virtualWorld()
    const waiting = workflow('waiting', async (ctx) => {
      const first = await ctx.receive('first')
      const noted = await ctx.step('note', () => first)
      await ctx.sleep('1 s')
      return { first, noted, second: await ctx.receive('second') }
    })
    const holdfast = await open({ workflows: [waiting] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(waiting)
    await after(until(() => isWaiting(holdfast, run)))
    expect(await holdfast.signal(run, 'first', new Date(0))).toMatchObject({ outcome: 'delivered', runId: run.id })
    await after(holdfast.close())
    const next = await open({ workflows: [waiting] })
    await next.work({ cachedRuns })
    await next.signal(run, 'second', { at: 2 })
    const at = new Date(0)
    expect(await after(next.run(run).result())).toEqual({ first: at, noted: at, second: { at: 2 } })
  })
})

test('an invalid payload fails the wait, the same on every replay, and the next signal is received', async () => {
  const { open, after } = virtualWorld()
  const schema = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: async (value: unknown) =>
        typeof value === 'number' ? { value } : { issues: [{ message: 'is not a number' }] },
    },
  }
  const strict = workflow('strict', async (ctx) => {
    const wrong = await ctx.receive('number', { schema }).then(null, (error: unknown) => error)
    await ctx.sleep('1 s')
    return [isHoldfastError(wrong, 'INVALID_INPUT'), await ctx.receive('number', { schema })]
  })
  const holdfast = await open({ workflows: [strict] })
  await holdfast.work({ cachedRuns: 0 })
  const run = await holdfast.start(strict)
  await holdfast.signals([
    { to: run, name: 'number', payload: 'one' },
    { to: run, name: 'number', payload: 1 },
  ])
  expect(await after(run.result())).toEqual([true, 1])
})

test('what the code waits on must be what the journal says: a changed race is drift, and nothing is guessed', async () => {
  const { open, after, clock } = virtualWorld()
  const before = workflow('changing', async (ctx) => ctx.race({ yes: ctx.receive('yes'), no: ctx.receive('no') }))
  const afterwards = workflow('changing', async (ctx) => ctx.race({ yes: ctx.receive('yes'), late: ctx.sleep('1 h') }))
  const first = await open({ workflows: [before] })
  await first.work()
  const run = await first.start(before)
  await clock.advance('1 s')
  await after(first.close())
  const second = await open({ workflows: [afterwards] })
  await second.work()
  await second.signal(run, 'no')
  await after(until(async () => (await second.get(run)).status === 'paused'))
  expect(await kindsOf(second, run)).toEqual(['started', 'waiting', 'paused'])
})

test('what it costs: a run that waits only on time reads no messages, and many that are woken are read together (WC-E5)', async () => {
  const { open, after, clock, store } = virtualWorld()
  const loads: number[] = []
  const counted: Store = changed(store, {
    load: (requests) => {
      // A call that asks for a result reads an entry, too.
      if (requests.some(({ limit }) => limit === 0)) loads.push(requests.length)
      return store.load(requests)
    },
  })
  const waiting = workflow(
    'waiting',
    async (ctx, name: string) => (await ctx.race({ [name]: ctx.receive(name) })).value,
  )
  const sleeping = workflow('sleeping', async (ctx) => void (await ctx.sleep('1 min')))
  const holdfast = await open({ store: counted, workflows: [waiting, sleeping] })
  await holdfast.work({ concurrency: 500 })
  const runs = await Promise.all(Array.from({ length: 100 }, () => holdfast.start(waiting, 'go')))
  const asleep = await holdfast.start(sleeping)
  await clock.advance('1 s')
  loads.length = 0
  await holdfast.signals(runs.map((run) => ({ to: run, name: 'go', payload: run.id })))
  for (const run of runs) expect(await after(run.result())).toBe(run.id)
  expect(loads.length).toBeLessThan(10)
  expect(loads.reduce((sum, one) => sum + one, 0)).toBe(100)
  loads.length = 0
  await after(asleep.result())
  expect(loads).toEqual([])
})

test('a run that is busy elsewhere in its body learns of a signal at once, not with the next beat', async () => {
  const { open, after, pause } = virtualWorld()
  const busy = workflow('busy', async (ctx) => {
    const work = ctx.step('work', () => pause(5_000))
    const received = await ctx.receive('news')
    const at = ctx.now().getTime()
    await work
    return [received, ctx.now().getTime() - at]
  })
  const holdfast = await open({ workflows: [busy] })
  await holdfast.work()
  const run = await holdfast.start(busy)
  await settled()
  expect(await holdfast.signal(run, 'news', 'hello')).toMatchObject({ outcome: 'queued' })
  const [received, ms] = (await after(run.result())) as [string, number]
  expect(received).toBe('hello')
  expect(ms).toBeGreaterThan(4_000)
})

test('a run that is busy learns of a signal with the next beat, if the hint is lost', async () => {
  const { open, after, pause, store, clock } = virtualWorld()
  const busy = workflow('busy', async (ctx) => {
    const work = ctx.step('work', () => pause(60_000))
    const waited = ctx.receive('news').then(() => ctx.now().getTime())
    const [at] = await Promise.all([waited, work])
    return ctx.now().getTime() - at
  })
  const deaf = changed(store, { listen: async () => () => undefined })
  const holdfast = await open({ store: deaf, workflows: [busy] })
  await holdfast.work()
  const elsewhere = await open({ workflows: [busy] })
  const run = await holdfast.start(busy)
  await clock.advance('1 s')
  expect(await elsewhere.signal(run, 'news')).toMatchObject({ outcome: 'queued' })
  expect(await after(run.result())).toBeGreaterThan(40_000)
})

describe.each(everyStore)('on $name', ({ make }) => {
  it('a thousand signals are received in order, each once', async () => {
    const { open } = await make()
    const many = workflow('many', async (ctx) => {
      const seen: number[] = []
      while (seen.length < 1_000) seen.push(await ctx.receive<number>('number'))
      return seen
    })
    const holdfast = await open({ workflows: [many] })
    await holdfast.work()
    const run = await holdfast.start(many)
    const numbers = Array.from({ length: 1_000 }, (_, at) => at)
    await holdfast.signals(numbers.slice(0, 500).map((payload) => ({ to: run, name: 'number', payload })))
    await holdfast.signals(numbers.slice(500).map((payload) => ({ to: run, name: 'number', payload })))
    expect(await run.result()).toEqual(numbers)
  })
})

/** The memory store has no transactions of users. */
const transacting = everyStore.filter(({ name }) => name !== 'memory')

describe.each(transacting)('on $name', ({ make }) => {
  it('a run takes signals and starts children while a step of it is in a transaction', async () => {
    const { open } = await make()
    const gates = { begun: gate(), end: gate() }
    const child = workflow('child', () => 'child')
    const mixed = workflow('mixed', async (ctx) => {
      const booked = ctx.transaction('book', async () => {
        gates.begun.open()
        await gates.end.passed
        return 'booked'
      })
      const [received, made] = await ctx.all([ctx.receive('news'), ctx.child(child)])
      return [received, made, await booked]
    })
    const holdfast = await open({ workflows: [mixed, child] })
    await holdfast.work()
    const run = await holdfast.start(mixed)
    await gates.begun.passed
    // Where one transaction keeps all others out, this waits for its end.
    const sent = holdfast.signal(run, 'news', 1)
    await settled()
    gates.end.open()
    await sent
    expect(await run.result()).toEqual([1, 'child', 'booked'])
  })
})
