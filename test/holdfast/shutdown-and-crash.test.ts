// How a process leaves its runs when it ends, crashes or cannot reach its file, and how the next one goes on with them.

import Database from 'libsql'
import { describe, expect, it, vi } from 'vitest'
import { createHoldfast, isHoldfastError, workflow, type HoldfastError } from 'holdfast'
import { openSqliteStore } from 'holdfast/sqlite'
import { temporaryPaths } from '../unit/stores/sqlite/folder.ts'
import { keepLines } from './open.ts'
import { machine } from './processes.ts'

const nextPath = temporaryPaths()
const never = (): Promise<never> => new Promise(() => undefined)
const hour = 3_600_000

describe('a process that ends', () => {
  it('SW-P6: waits in stop() for what is moving, and stopping again is fine', async () => {
    const { begin, clock, pause } = machine(nextPath())
    const slow = workflow('slow', (ctx) => ctx.step('work', () => pause(10_000).then(() => 'done')))
    const { holdfast } = await begin([slow])
    const worker = await holdfast.work()
    const run = await holdfast.start(slow)
    let stopped = 0
    const stops = [worker.stop(), worker.stop()].map((stop) => stop.then(() => (stopped += 1)))
    await clock.advance(9_999)
    expect(stopped).toBe(0)
    await clock.advance(1)
    await Promise.all(stops)
    expect(await run.status()).toBe('succeeded')
    await worker.stop()
  })

  it('IF-P1: claims nothing more, finishes what it has begun, and gives back what takes longer than its timeout', async () => {
    const { begin, clock, pause, after, rows } = machine(nextPath())
    const aborted: string[] = []
    let speed = 1
    const task = workflow('task', async (ctx, { name, ms }: { name: string; ms: number }) => {
      await ctx.step('first', () => name)
      return ctx.step('work', async ({ abortSignal }) => {
        abortSignal.addEventListener('abort', () => aborted.push(name))
        await pause(ms / speed)
        return name
      })
    })
    const first = await begin([task])
    await first.holdfast.work({ concurrency: 2, shutdownTimeout: '30s' })
    const quick = await first.holdfast.start(task, { name: 'quick', ms: 10_000 })
    const slow = await first.holdfast.start(task, { name: 'slow', ms: hour })
    const queued = await first.holdfast.start(task, { name: 'queued', ms: 1_000 })
    await clock.advance(1)
    const endingAt = clock.now()
    await first.end()
    expect(clock.now() - endingAt).toBe(30_000)
    expect(aborted).toEqual(['slow'])
    const state = new Map(rows('select * from runs').map((row) => [row['id'], row]))
    expect(state.get(quick.id)).toMatchObject({ status: 'succeeded' })
    expect(state.get(slow.id)).toMatchObject({ status: 'pending', session: null, crashes: 0, token: 1 })
    expect(state.get(queued.id)).toMatchObject({ status: 'pending', token: 0 })

    speed = 1_000
    const second = await begin([task])
    expect((await second.holdfast.work()).recovered).toEqual({ sessions: 0, runs: 0 })
    expect(await after(second.holdfast.run(slow).result())).toBe('slow')
    expect(await after(second.holdfast.run(queued).result())).toBe('queued')
  })

  it('WC-P4: leaves no timer behind and asks nothing of the store any more', async () => {
    const { begin, clock } = machine(nextPath())
    const sleeper = workflow('sleeper', async (ctx) => void (await ctx.sleep('1h')))
    const hung = workflow('hung', (ctx) => ctx.step('hang', never, { timeout: '1h' }))
    const flaky = workflow('flaky', { retry: { initial: '900ms' } }, (ctx) =>
      ctx.step('fail', () => Promise.reject(new Error('No'))),
    )
    const { holdfast, end, calls } = await begin([sleeper, hung, flaky])
    await holdfast.work()
    const runs = [await holdfast.start(sleeper), await holdfast.start(hung), await holdfast.start(flaky)]
    const results = runs.map((run) => run.result({ timeout: '1h' }).catch((error: HoldfastError) => error.code))
    await clock.advance('1s')
    expect(await runs[0]?.status()).toBe('waiting')
    await end()
    expect(await Promise.all(results)).toEqual(['CLOSED', 'CLOSED', 'CLOSED'])
    expect(clock.pending).toBe(0)
    const asked = calls()
    await clock.advance('2h')
    expect(calls()).toBe(asked)
  })
})

describe('a process that crashes', () => {
  it('PQ-E4: is followed by another one that goes on with the same run, and finished steps stay finished', async () => {
    const { begin, until, after, rows } = machine(nextPath())
    const performed: string[] = []
    const order = workflow('order', async (ctx) => {
      const paid = await ctx.step('pay', () => performed.push('pay'))
      await ctx.step('ship', () => (performed.push('ship') === 2 ? never() : undefined))
      return [paid, await ctx.step('thank', () => performed.push('thank'))]
    })
    const first = await begin([order])
    await first.holdfast.work()
    const run = await first.holdfast.start(order)
    await until(() => performed.length === 2)
    await first.crash()
    expect(rows('select id, status from runs')).toEqual([{ id: run.id, status: 'running' }])

    const second = await begin([order])
    await second.holdfast.work()
    expect(await after(second.holdfast.run(run).result())).toEqual([1, 4])
    expect(performed).toEqual(['pay', 'ship', 'ship', 'thank'])
    const journal = (await second.holdfast.journal(run)).map(({ kind, name }) => name ?? kind)
    expect(journal).toEqual(['started', 'pay', 'crashed', 'ship', 'thank', 'succeeded'])
    expect(rows('select id from runs')).toHaveLength(1)
  })

  it('PQ-E1: leaves a run that is pending, running, over or paused as such, and only what may move moves on', async () => {
    const { begin, until, clock, rows } = machine(nextPath())
    const quick = workflow('a-quick', () => 'done')
    const doomed = workflow('b-doomed', { retry: 'none' }, () => Promise.reject(new Error('No')))
    const before = workflow('c-changing', async (ctx) => {
      await ctx.step('charge', () => 1)
      await ctx.step('hang', never)
    })
    const after = workflow('c-changing', (ctx) => ctx.step('bill', () => 1))
    const statuses = (): unknown[] => rows('select status from runs order by type').map(({ status }) => status)
    const seen: unknown[][] = []
    const first = await begin([quick, doomed, before])
    await first.holdfast.start(quick)
    await first.holdfast.start(doomed)
    const changing = await first.holdfast.start(before)
    seen.push(statuses())
    await first.holdfast.work()
    await until(() => rows(`select 1 from journal where name = 'charge'`).length === 1)
    await clock.advance(1)
    seen.push(statuses())
    await first.crash()

    const second = await begin([quick, doomed, after])
    await second.holdfast.work()
    await until(() => statuses()[2] === 'paused')
    await clock.advance('1h')
    seen.push(statuses())
    expect(seen).toEqual([
      ['pending', 'pending', 'pending'],
      ['succeeded', 'failed', 'running'],
      ['succeeded', 'failed', 'paused'],
    ])
    expect((await second.holdfast.journal(changing)).at(-1)?.kind).toBe('paused')
  })

  it('WC-P1: leaves runs whose time came while nobody ran, and the next one resumes them where they were', async () => {
    const { begin, until, after, clock, rows } = machine(nextPath())
    const performed: string[] = []
    const nap = workflow('nap', async (ctx, ms: number) => {
      await ctx.step('before', () => performed.push(`before ${ms}`))
      const { scheduledAt, firedAt } = await ctx.sleep(ms)
      return ctx.step('after', () => [scheduledAt.getTime(), firedAt.getTime()])
    })
    const first = await begin([nap])
    await first.holdfast.work()
    const beganAt = clock.now()
    const [due, later] = [await first.holdfast.start(nap, hour), await first.holdfast.start(nap, 5 * hour)]
    await until(() => rows(`select 1 from runs where status = 'waiting'`).length === 2)
    await first.crash()
    await clock.advance('2h')

    const second = await begin([nap])
    await second.holdfast.work()
    expect(await after(second.holdfast.run(due).result())).toEqual([beganAt + hour, beganAt + 2 * hour])
    expect(await second.holdfast.run(later).status()).toBe('waiting')
    await clock.advance('3h')
    expect(await after(second.holdfast.run(later).result())).toEqual([beganAt + 5 * hour, beganAt + 5 * hour])
    expect(performed).toEqual([`before ${hour}`, `before ${5 * hour}`])
  })

  it('PQ-T1: can be played with a clock that the test owns, and every time in the journal is of that clock', async () => {
    const { begin, until, clock, rows } = machine(nextPath())
    const slow = workflow('slow', async (ctx) => {
      const from = ctx.now()
      await ctx.sleep('2 days')
      return [from, ctx.now()]
    })
    const first = await begin([slow])
    await first.holdfast.work()
    const beganAt = clock.now()
    const run = await first.holdfast.start(slow)
    await until(() => rows(`select 1 from runs where status = 'waiting'`).length === 1)
    await first.crash()
    await clock.advance(48 * hour - 60_000)
    const second = await begin([slow])
    await second.holdfast.work()
    await clock.advance('1min')
    expect(await second.holdfast.run(run).result()).toEqual([new Date(beganAt), new Date(beganAt + 48 * hour)])
    const times = (await second.holdfast.journal(run)).map(({ kind, at }) => [kind, at.getTime() - beganAt])
    expect(times).toEqual([
      ['started', 0],
      ['recorded', 0],
      ['waiting', 0],
      ['woken', 48 * hour],
      ['recorded', 48 * hour],
      ['succeeded', 48 * hour],
    ])
  })
})

describe('a store that is busy', () => {
  it('WC-S4: is given up after storageTimeout with STORE_UNAVAILABLE, and what was asked for is asked again', async () => {
    const path = nextPath()
    const greet = workflow('greet', (_ctx, name: string) => name)
    const logger = keepLines()
    const store = await openSqliteStore({ path, storageTimeout: 20 })
    const holdfast = await createHoldfast({ store, workflows: [greet], logger })
    const writer = new Database(path)
    writer.exec('begin immediate')
    const given = await holdfast.start(greet, 'Ada').catch((error: unknown) => error as HoldfastError)
    expect(given).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sent: true } })
    await vi.waitFor(() => expect(isHoldfastError(logger.lines[0]?.details['error'], 'STORE_UNAVAILABLE')).toBe(true))
    writer.exec('rollback')
    writer.close()
    const id = (given as HoldfastError).details['runId'] as string
    // A busy machine may take longer than that for any call: it is repeated by its id.
    const again = async (): Promise<string> => (await holdfast.start(greet, 'Ada', { id })).status()
    await expect.poll(() => again().catch(String)).toBe('pending')
    await holdfast.close()
    await store.close()
  })
})
