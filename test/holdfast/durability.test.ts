// What outlives a process: runs in a SQLite file, seen through the engine and past it. One test for each line of the
// feature checklist that speaks of it; how processes end is described in shutdown-and-crash.test.ts.

import { statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { workflow, type HoldfastError, type RunStatus } from 'holdfast'
import { temporaryPaths } from '../unit/stores/sqlite/folder.ts'
import { open } from './open.ts'
import { machine } from './processes.ts'
import { changed } from './virtual-world.ts'
import { migrations } from '../../src/stores/sqlite/schema/schema.ts'

const nextPath = temporaryPaths()
const never = (): Promise<never> => new Promise(() => undefined)
const hour = 3_600_000

describe('what is started', () => {
  it('SW-E1: needs no worker to exist: a later process performs it', async () => {
    const url = `sqlite:${nextPath()}`
    const greet = workflow('greet', (ctx, name: string) => ctx.step('greet', () => `Hello, ${name}`))
    const submitting = await open({ store: url, workflows: [greet] })
    const run = await submitting.start(greet, 'Ada')
    expect(await run.status()).toBe('pending')
    await submitting.close()

    const performing = await open({ store: url, workflows: [greet] })
    await performing.work()
    expect(await performing.run(run).result()).toBe('Hello, Ada')
  })

  it('SW-E2: has one of the known statuses at every moment, and the file says the same', async () => {
    const { begin, until, after, pause, rows } = machine(nextPath())
    const life = workflow('life', async (ctx) => {
      await ctx.step('work', () => pause(60_000))
      await ctx.sleep('1min')
    })
    const doomed = workflow('doomed', { retry: 'none' }, () => Promise.reject(new Error('No')))
    const { holdfast } = await begin([life, doomed])
    const statuses = (): unknown[] => rows('select status from runs order by type desc').map(({ status }) => status)
    const run = await holdfast.start(life)
    const other = await holdfast.start(doomed)
    const seen = [statuses()]
    await holdfast.work()
    await until(() => statuses()[0] === 'running')
    await until(() => statuses()[0] === 'waiting')
    seen.push(statuses())
    await after(run.result())
    seen.push(statuses())
    expect(seen).toEqual([
      ['pending', 'pending'],
      ['waiting', 'failed'],
      ['succeeded', 'failed'],
    ])
    expect([(await holdfast.get(run)).status, (await holdfast.get(other)).status]).toEqual(seen[2])
  })

  it('SW-E3: moves from status to status as it may, and once it is over nothing moves it', async () => {
    const { begin, after } = machine(nextPath())
    const moves: RunStatus[] = []
    const { store } = await begin()
    const note = async (id: string): Promise<void> => {
      const status = (await store.get([id]))[0]?.status
      if (status !== undefined && status !== moves.at(-1)) moves.push(status)
    }
    let attempts = 0
    const winding = workflow('winding', { retry: { initial: '1min' } }, async (ctx) => {
      await ctx.step('look', () => note(ctx.run.id))
      await ctx.sleep('1min')
      attempts += 1
      if (attempts < 2) throw new Error('Once more')
    })
    const worker = await begin([winding], (file) =>
      changed(file, {
        async commit(transitions) {
          for (const { runId } of transitions) await note(runId)
          const answers = await file.commit(transitions)
          for (const { runId } of transitions) await note(runId)
          return answers
        },
      }),
    )
    const run = await worker.holdfast.start(winding)
    await note(run.id)
    await worker.holdfast.work()
    await after(run.result())
    expect(moves).toEqual(['pending', 'running', 'waiting', 'running', 'pending', 'running', 'succeeded'])

    const [over] = await store.get([run.id])
    const lease = { session: 'another', token: over?.token ?? 0 }
    await store.beat({ session: lease.session, leaseMs: hour })
    const selectors = [{ type: 'winding', version: 1 }]
    expect((await store.claim({ session: lease.session, selectors, limit: 9 })).runs).toEqual([])
    for (const status of ['pending', 'waiting', 'failed', 'paused', 'cancelled'] as const) {
      const append = [{ kind: 'failed', name: null, meta: null, data: '1' }] as const
      const guard = { seq: over?.seq ?? 0, lease }
      const parkIf = status === 'waiting' ? { inbox: 0 } : null
      const rest = { due: null, parkIf, undo: null, continues: null, takes: [] }
      const late = { id: `late.${status}`, runId: run.id, guard, append, status, ...rest }
      expect(await store.commit([late])).toEqual([{ outcome: 'refused', reason: 'lease-lost' }])
    }
    await store.release([{ ...lease, runId: run.id }])
    expect(await store.get([run.id])).toEqual([over])
  })

  it('SW-E7: may be performed twice after a crash, and the receiver can recognize it: the idempotency key is the same', async () => {
    const { begin, until, after } = machine(nextPath())
    const charged = new Map<string, number>()
    const charge = workflow('charge', (ctx) =>
      ctx.step('charge', ({ idempotencyKey }) => {
        charged.set(idempotencyKey, (charged.get(idempotencyKey) ?? 0) + 1)
        return 'charged'
      }),
    )
    // The charge is made, and the process dies before it can say so.
    const first = await begin([charge], (file) => changed(file, { commit: never }))
    await first.holdfast.work()
    const run = await first.holdfast.start(charge)
    await until(() => charged.size === 1)
    await first.crash()

    const second = await begin([charge])
    await second.holdfast.work()
    expect(await after(second.holdfast.run(run).result())).toBe('charged')
    expect([...charged.values()]).toEqual([2])
  })

  it('SW-S1: has one row with everything that scheduling needs; input, output and errors are in its journal', async () => {
    const { begin, until, after, clock, rows, pause } = machine(nextPath())
    const work = workflow('work', (ctx, n: number) => ctx.step('double', () => pause(1_000).then(() => 2 * n)))
    const { holdfast } = await begin([work])
    const startedAt = clock.now()
    const run = await holdfast.start(work, 21, { delay: '1h', timeout: '1 day', expiresIn: '2h' })
    const row = (): Readonly<Record<string, unknown>> => rows('select * from runs')[0] ?? {}
    expect(run.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const unheld = { id: run.id, type: 'work', version: 1, priority: 0, session: null, crashes: 0 }
    expect(row()).toMatchObject({
      ...unheld,
      status: 'pending',
      due: startedAt + hour,
      timeout_at: startedAt + 24 * hour,
      expires_at: startedAt + 2 * hour,
      created_at: startedAt,
      updated_at: startedAt,
      ended_at: null,
    })
    await holdfast.work()
    await clock.advance(hour)
    await until(() => row()['status'] === 'running')
    expect(row()).toMatchObject({ due: null, expires_at: null, token: 1, session: expect.any(String) as string })
    expect(await after(run.result())).toBe(42)
    const endedAt = startedAt + hour + 1_000
    expect(row()).toMatchObject({ ...unheld, status: 'succeeded', updated_at: endedAt, ended_at: endedAt })
    const journal = (await holdfast.journal(run)).map(({ kind, data }) => [kind, data])
    expect(journal).toEqual([
      ['started', 21],
      ['step-succeeded', 42],
      ['succeeded', 42],
    ])
  })

  it('SW-S6: lives in a file in WAL mode that is migrated once, however many open it, and keeps what it has', async () => {
    const path = nextPath()
    const { begin, rows } = machine(path)
    const idle = workflow('idle', () => 'done')
    const [first] = await Promise.all([begin([idle]), begin([idle]), begin([idle])])
    const run = await first.holdfast.start(idle)
    const fourth = await begin([idle])
    expect(await fourth.holdfast.run(run).status()).toBe('pending')
    expect(rows('pragma journal_mode')).toEqual([{ journal_mode: 'wal' }])
    const once = migrations.map((_, index) => ({ version: index + 1, times: 1 }))
    expect(rows('select version, count(*) as times from migrations group by version')).toEqual(once)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('PQ-E2: is claimed by its id alone: the input is stored once, in the journal, and read from there', async () => {
    const { begin, after, rows } = machine(nextPath())
    const seen: string[] = []
    const echo = workflow('echo', { retry: { initial: '1min' } }, async (ctx, text: string) => {
      await ctx.sleep('1min')
      if (seen.push(text) === 1) throw new Error('Once more')
    })
    const { holdfast } = await begin([echo])
    const run = await holdfast.start(echo, 'a marked input')
    await holdfast.work({ cachedRuns: 0 })
    await after(run.result())
    expect(seen).toEqual(['a marked input', 'a marked input'])
    const tables = rows(`select name from sqlite_master where type = 'table'`).map(({ name }) => name as string)
    expect(tables).toContain('runs')
    const found = tables.flatMap((table) =>
      rows(`select * from ${table}`).filter((row) => JSON.stringify(row).includes('marked')),
    )
    expect(found).toEqual([expect.objectContaining({ run_id: run.id, seq: 1, kind: 'started' })])
  })

  it('PQ-S3: leaves the same journal in SQLite as in memory', async () => {
    const trip = workflow('trip', { retry: { initial: 1 } }, async (ctx, n: number) => {
      const legs = await Promise.all([ctx.step('one', () => n + 1), ctx.step('two', () => [n])])
      await ctx.sleep(1)
      return ctx.branch('leg', (leg) =>
        leg.step('flaky', ({ attempt }) => {
          if (attempt === 1) throw new RangeError('Once more')
          return { legs, at: new Date(0), big: 10n }
        }),
      )
    })
    const journals = ['memory:', `sqlite:${nextPath()}`].map(async (store) => {
      const holdfast = await open({ store, workflows: [trip] })
      await holdfast.work()
      const run = await holdfast.start(trip, 4)
      await run.result()
      return (await holdfast.journal(run)).map(({ seq, kind, name, data }) => ({ seq, kind, name, data }))
    })
    const [memory, sqlite] = await Promise.all(journals)
    expect(memory).toHaveLength(8)
    expect(sqlite).toEqual(memory)
  })
})

describe('a failure', () => {
  const minutely = { maxAttempts: 3, kind: 'constant', initial: '1min', jitter: { mode: 'none' } } as const

  it('SW-R2: gives the run back with its error, due after the delay and held by nobody; another process repeats it', async () => {
    const { begin, until, after, clock, rows } = machine(nextPath())
    const attempts: number[] = []
    const flaky = workflow('flaky', { retry: minutely }, () => {
      if (attempts.push(clock.now()) < 2) throw new Error('Not yet')
      return 'done'
    })
    const first = await begin([flaky])
    await first.holdfast.work()
    const run = await first.holdfast.start(flaky)
    await until(() => rows('select due from runs')[0]?.['due'] !== null)
    const failedAt = clock.now()
    expect(rows('select * from runs')[0]).toMatchObject({
      status: 'pending',
      due: failedAt + 60_000,
      session: null,
      deadline: null,
      crashes: 0,
    })
    const last = (await first.holdfast.journal(run)).at(-1)
    expect(last).toMatchObject({ kind: 'attempt-failed', meta: { attempt: 1, delayMs: 60_000 } })
    expect(last?.data).toEqual(new Error('Not yet'))
    await first.end()

    const second = await begin([flaky])
    await second.holdfast.work()
    expect(await after(second.holdfast.run(run).result())).toBe('done')
    expect(attempts).toEqual([failedAt, failedAt + 60_000])
  })

  it('SW-R3: after the last attempt ends the run for good: nobody tries again, then or later', async () => {
    const { begin, after, clock } = machine(nextPath())
    let attempts = 0
    const doomed = workflow('doomed', { retry: minutely }, () => {
      attempts += 1
      throw new Error(`Attempt ${attempts}`)
    })
    const first = await begin([doomed])
    await first.holdfast.work()
    const run = await first.holdfast.start(doomed)
    await expect(after(run.result())).rejects.toMatchObject({ code: 'RUN_FAILED', cause: new Error('Attempt 3') })
    await first.end()

    const second = await begin([doomed])
    await second.holdfast.work()
    await clock.advance('1h')
    expect([attempts, await second.holdfast.run(run).status()]).toEqual([3, 'failed'])
  })

  it('PQ-E8: blocks no worker while it waits for its next attempt: with one slot other runs go on', async () => {
    const { begin, after, clock } = machine(nextPath())
    const finished: string[] = []
    const flaky = workflow('flaky', { retry: minutely }, async (ctx) => {
      await ctx.step('step', ({ attempt }) => {
        if (attempt === 1) throw new Error('Not yet')
      })
      finished.push('flaky')
    })
    const quick = workflow('quick', (_ctx, n: number) => void finished.push(`quick ${n}`))
    const { holdfast } = await begin([flaky, quick])
    await holdfast.work({ concurrency: 1 })
    const waiting = await holdfast.start(flaky)
    const beganAt = clock.now()
    for (const n of [1, 2, 3]) await after((await holdfast.start(quick, n)).result())
    expect(clock.now() - beganAt).toBeLessThan(60_000)
    await after(waiting.result())
    expect(finished).toEqual(['quick 1', 'quick 2', 'quick 3', 'flaky'])
  })

  it('WC-S6: is stored as class, message and stack, and comes back as what it was in another process', async () => {
    const { begin, after, rows } = machine(nextPath())
    const broken = workflow('broken', { retry: 'none' }, (ctx) =>
      ctx.step('break', () => {
        throw new TypeError('Not a number', { cause: new RangeError('Too large') })
      }),
    )
    const first = await begin([broken])
    await first.holdfast.work()
    const run = await first.holdfast.start(broken)
    await after(run.result().catch(() => undefined))
    await first.end()

    const [row] = rows(`select data from journal where kind = 'failed'`)
    const stored = row?.['data'] as string
    for (const part of ['"TypeError"', 'Not a number', '"stack"', 'durability.test.ts']) expect(stored).toContain(part)
    const second = await begin()
    const error = await second.holdfast
      .run(run)
      .result()
      .catch((thrown: HoldfastError) => thrown.cause)
    expect(error).toBeInstanceOf(TypeError)
    expect(error).toMatchObject({ message: 'Not a number', cause: new RangeError('Too large') })
    expect((error as Error).stack).toContain('durability.test.ts')
  })
})
