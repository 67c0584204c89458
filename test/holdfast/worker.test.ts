// What makes runs move, seen from outside: slots, order, stopping, and going on elsewhere.

import { describe, expect, it } from 'vitest'
import { workflow, type HoldfastError } from 'holdfast'
import { gate, settled, until } from './gate.ts'
import { keepLines, memoryStore, open, openWorking } from './open.ts'

describe('a worker', () => {
  it('moves no more runs at once than it has slots', async () => {
    let [moving, most] = [0, 0]
    const busy = workflow('busy', (ctx) =>
      ctx.step('work', async () => {
        most = Math.max(most, (moving += 1))
        await settled()
        moving -= 1
      }),
    )
    const holdfast = await open({ workflows: [busy] })
    const early = await Promise.all(Array.from({ length: 10 }, () => holdfast.start(busy)))
    await holdfast.work({ concurrency: 3 })
    const late = await Promise.all(Array.from({ length: 10 }, () => holdfast.start(busy)))
    await Promise.all([...early, ...late].map((run) => run.result()))
    expect(most).toBe(3)
  })

  it('with one slot finishes one run while another one sleeps', async () => {
    const sleeper = workflow('sleeper', async (ctx) => void (await ctx.sleep('1h')))
    const quick = workflow('quick', (ctx) => ctx.step('go', () => 'done'))
    const holdfast = await open({ workflows: [sleeper, quick] })
    await holdfast.work({ concurrency: 1 })
    const asleep = await holdfast.start(sleeper)
    expect(await (await holdfast.start(quick)).result()).toBe('done')
    expect(await asleep.status()).toBe('waiting')
  })

  it('with one slot finishes one run while another one waits for its next attempt', async () => {
    const unlucky = workflow('unlucky', { retry: { initial: '1h', max: '1h' } }, (ctx) =>
      ctx.step('fail', () => Promise.reject(new Error('Not today'))),
    )
    const quick = workflow('quick', () => 'done')
    const holdfast = await open({ workflows: [unlucky, quick] })
    await holdfast.work({ concurrency: 1 })
    const waiting = await holdfast.start(unlucky)
    expect(await (await holdfast.start(quick)).result()).toBe('done')
    expect(['waiting', 'pending']).toContain(await waiting.status())
  })

  it('takes a thousand runs at once', async () => {
    const three = workflow('three', async (ctx, n: number) => {
      const a = await ctx.step('a', () => n + 1)
      const [b, c] = await Promise.all([ctx.step('b', () => a + 1), ctx.step('c', () => a + 2)])
      return b + c
    })
    const holdfast = await openWorking([three])
    const runs = await Promise.all(Array.from({ length: 1_000 }, (_, n) => holdfast.start(three, n)))
    const results = await Promise.all(runs.map((run) => run.result()))
    expect(results).toEqual(Array.from({ length: 1_000 }, (_, n) => 2 * n + 5))
  })

  it('takes the highest priority first when slots are scarce', async () => {
    const { passed, open: letGo } = gate()
    const order: string[] = []
    const blocker = workflow('blocker', (ctx) => ctx.step('block', () => passed))
    const ranked = workflow('ranked', (ctx, name: string) => ctx.step('note', () => void order.push(name)))
    const holdfast = await open({ workflows: [blocker, ranked] })
    await holdfast.work({ concurrency: 1 })
    await holdfast.start(blocker)
    const runs = [
      await holdfast.start(ranked, 'low', { priority: -5 }),
      await holdfast.start(ranked, 'first of default'),
      await holdfast.start(ranked, 'second of default'),
      await holdfast.start(ranked, 'high', { priority: 10 }),
    ]
    letGo()
    await Promise.all(runs.map((run) => run.result()))
    expect(order).toEqual(['high', 'first of default', 'second of default', 'low'])
  })

  it('gives the same result and journal whether a run starts at once or comes through the queue', async () => {
    const trip = workflow('trip', async (ctx, n: number) => {
      const first = await ctx.step('first', () => n * 2)
      await ctx.sleep(1)
      return ctx.branch('leg', (leg) => leg.step('second', () => first + 1))
    })
    const holdfast = await open({ workflows: [trip] })
    const queued = await holdfast.start(trip, 4)
    await holdfast.work()
    expect(await queued.result()).toBe(9)
    const eager = await holdfast.start(trip, 4)
    expect(await eager.result()).toBe(9)
    const [one, other] = await Promise.all(
      [queued, eager].map(async (run) => {
        const journal = await holdfast.journal(run)
        return journal.map(({ seq, kind, name, data }) => ({ seq, kind, name, data }))
      }),
    )
    expect(one).toEqual(other)
  })

  it('that keeps no frames in memory replays the body and performs no step twice', async () => {
    const seen = { bodies: 0, steps: 0 }
    const nap = workflow('nap', async (ctx) => {
      seen.bodies += 1
      const before = { at: ctx.now(), id: ctx.uuid(), chance: ctx.random() }
      const first = await ctx.step('first', () => (seen.steps += 1))
      await ctx.sleep(1)
      const second = await ctx.step('second', () => (seen.steps += 1))
      await ctx.sleep(1)
      return { before, first, second }
    })
    const holdfast = await open({ workflows: [nap] })
    await holdfast.work({ cachedRuns: 0 })
    const run = await holdfast.start(nap)
    const { before, ...steps } = await run.result()
    expect(steps).toEqual({ first: 1, second: 2 })
    expect(seen).toEqual({ bodies: 3, steps: 2 })
    const recorded = (await holdfast.journal(run)).filter((entry) => entry.kind === 'recorded')
    expect(recorded.map((entry) => entry.data)).toEqual([before.at.getTime(), before.id, before.chance])
  })

  it('replays a journal that is longer than what is read at once', async () => {
    let performed = 0
    const long = workflow('long', async (ctx) => {
      let sum = 0
      for (let step = 0; step < 1_200; step += 1) sum += await ctx.step('add', () => (performed += 1) && 1)
      await ctx.sleep(1)
      return sum
    })
    const holdfast = await open({ workflows: [long] })
    await holdfast.work({ cachedRuns: 0 })
    const run = await holdfast.start(long)
    expect(await run.result()).toBe(1_200)
    expect(performed).toBe(1_200)
    const journal = await holdfast.journal(run)
    expect(journal.map((entry) => entry.seq)).toEqual(Array.from({ length: 1_204 }, (_, index) => index + 1))
  })

  it('needs no replay for a run that waited in memory', async () => {
    let bodies = 0
    const nap = workflow('nap', async (ctx) => {
      bodies += 1
      await ctx.sleep(1)
      return ctx.step('after', () => 'rested')
    })
    const holdfast = await openWorking([nap])
    expect(await (await holdfast.start(nap)).result()).toBe('rested')
    expect(bodies).toBe(1)
  })
})

describe('stopping', () => {
  it('waits for runs that are moving', async () => {
    const { passed, open: letGo } = gate()
    const slow = workflow('slow', (ctx) => ctx.step('wait', () => passed.then(() => 'done')))
    const holdfast = await open({ workflows: [slow] })
    const worker = await holdfast.work()
    const run = await holdfast.start(slow)
    let isStopped = false
    const stopping = worker.stop().then(() => (isStopped = true))
    await settled()
    expect(isStopped).toBe(false)
    letGo()
    await stopping
    expect(await run.status()).toBe('succeeded')
  })

  it('claims nothing new, and what is started afterwards waits for the next worker', async () => {
    const quick = workflow('quick', () => 'done')
    const holdfast = await open({ workflows: [quick] })
    const worker = await holdfast.work()
    await worker.stop()
    const run = await holdfast.start(quick)
    await settled()
    expect(await run.status()).toBe('pending')
    await holdfast.work()
    expect(await run.result()).toBe('done')
  })

  it('twice, or while closing, is fine', async () => {
    const holdfast = await open()
    const worker = await holdfast.work()
    await Promise.all([worker.stop(), worker.stop(), holdfast.close()])
    await worker.stop()
    await holdfast.close()
  })

  it('gives runs back after the timeout, and another worker finishes them', async () => {
    const store = memoryStore()
    const never = gate()
    const signals: AbortSignal[] = []
    const handover = workflow('handover', async (ctx) => {
      const before = await ctx.step('before', () => 'kept')
      const after = await ctx.step('stuck', async ({ abortSignal }) => {
        if (signals.push(abortSignal) === 1) await never.passed
        return `by worker ${signals.length}`
      })
      return [before, after]
    })
    const first = await open({ store, workflows: [handover] })
    const worker = await first.work({ shutdownTimeout: 1 })
    const run = await first.start(handover)
    await until(() => signals.length === 1)
    await worker.stop()
    expect(signals[0]?.aborted).toBe(true)
    expect(await run.status()).toBe('pending')

    const second = await openWorking([handover], { store })
    expect(await second.run(run).result()).toEqual(['kept', 'by worker 2'])
    never.open()
    await settled()
    const steps = (await second.journal(run)).filter((entry) => entry.kind === 'step-succeeded')
    expect(steps.map(({ name, data }) => [name, data])).toEqual([
      ['before', 'kept'],
      ['stuck', 'by worker 2'],
    ])
  })

  it('between two attempts hands the count of attempts over', async () => {
    const store = memoryStore()
    const attempts: number[] = []
    const second = workflow('second.try', { retry: { initial: '100ms' } }, (ctx) =>
      ctx.step('try', ({ attempt }) => {
        if (attempts.push(attempt) === 1) throw new Error('Once more')
      }),
    )
    const first = await open({ store, workflows: [second] })
    const worker = await first.work({ shutdownTimeout: 0 })
    const run = await first.start(second)
    await until(async () => (await first.journal(run)).length === 2)
    await worker.stop()
    const other = await openWorking([second], { store })
    await other.run(run).result()
    expect(attempts).toEqual([1, 2])
  })

  it('while runs are being started answers every start: it is stored, or it is refused as closed', async () => {
    const store = memoryStore()
    const quick = workflow('quick', (ctx) => ctx.step('go', () => 'done'))
    const closing = await openWorking([quick], { store })
    const starts = Array.from({ length: 200 }, () => closing.start(quick).catch((error: HoldfastError) => error))
    await closing.close()
    const reader = await openWorking([quick], { store })
    const outcomes = starts.map(async (start) => {
      const answer = await start
      return 'code' in answer ? answer.code : reader.run(answer).result()
    })
    const others = (await Promise.all(outcomes)).filter((outcome) => outcome !== 'done' && outcome !== 'CLOSED')
    expect(others).toEqual([])
  })

  it('says in the log how many runs it gave back', async () => {
    const logger = keepLines()
    const stuck = workflow('stuck', (ctx) => ctx.step('stuck', () => new Promise<never>(() => undefined)))
    const holdfast = await open({ workflows: [stuck], logger })
    const worker = await holdfast.work({ shutdownTimeout: 0 })
    await holdfast.start(stuck)
    await worker.stop()
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', message: expect.stringContaining('Gave back 1 run') as string }),
    )
  })

  it('is not hindered by a run that sleeps', async () => {
    const sleeper = workflow('sleeper', async (ctx) => void (await ctx.sleep('1h')))
    const holdfast = await open({ workflows: [sleeper] })
    const worker = await holdfast.work()
    const run = await holdfast.start(sleeper)
    await until(async () => (await run.status()) === 'waiting')
    await worker.stop()
    expect(await run.status()).toBe('waiting')
  })
})
