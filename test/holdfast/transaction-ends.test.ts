// `ctx.transaction` when its end goes wrong: refused, in doubt, or ended by another library.

import { describe, expect, it } from 'vitest'
import { HoldfastError, workflow, type Store } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { withFaults, type FaultKind, type FaultPlan } from 'holdfast/testing'
import type { SqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { Committed, TransactionStore } from '../../src/store.ts'
import { systemClock } from '../../src/system.ts'
import { gate, settled, until } from './gate.ts'
import { keepLines } from './open.ts'
import { insertOrder, kinds, ownTables, quickly, soundness, type Db } from './own-tables.ts'

/** The store, with transactions that end otherwise than it says. */
function transacting(store: SqliteStore, transact: SqliteStore['transact']): Store {
  return new Proxy(store, {
    get(target, key) {
      if (key === 'transact') return transact
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** One fault, at the first transaction. */
function atFirst(kind: FaultKind): FaultPlan {
  let isOver = false
  return {
    next(called) {
      if (isOver || called !== 'transact') return null
      isOver = true
      return kind
    },
    error: unavailable,
    delayMs: () => 1,
  }
}

describe('a transaction whose end goes wrong', () => {
  const book = (calls: number[]): ReturnType<typeof workflow<string, number>> =>
    workflow('book', (ctx, id: string) =>
      ctx.transaction('insert', (tx: Db, step) => {
        calls.push(step.attempt)
        insertOrder(tx, id)
        return calls.length
      }),
    )

  it('is not repeated when the answer to its COMMIT is lost: the journal decides', async () => {
    const { open, orders, store } = await ownTables()
    const calls: number[] = []
    const flow = book(calls)
    const logger = keepLines()
    const lost = transacting(store, async (work) => {
      const answer = await store.transact(work)
      if (calls.length === 1) throw unavailable()
      return answer
    })
    const holdfast = await open({ store: lost, workflows: [flow], logger })
    await holdfast.work()
    const run = await holdfast.start(flow, 'a')
    expect(await run.result()).toBe(1)
    expect(calls).toEqual([1])
    expect(orders()).toEqual(['a'])
    expect(logger.lines.map(({ message }) => message)).toContainEqual(expect.stringContaining('is given back'))
    expect(await soundness(holdfast)).toEqual([])
  })

  it('is repeated when COMMIT never happened, and nothing of the first time is left', async () => {
    const { open, orders, store } = await ownTables()
    const calls: number[] = []
    const flow = book(calls)
    const torn = transacting(store, (work) =>
      store.transact(async (handle, within) => {
        const answer = await work(handle, within)
        if (calls.length === 1) throw unavailable()
        return answer
      }),
    )
    const holdfast = await open({ store: torn, workflows: [flow] })
    await holdfast.work()
    const run = await holdfast.start(flow, 'a')
    expect(await run.result()).toBe(2)
    expect(calls).toEqual([1, 1])
    expect(orders()).toEqual(['a'])
    expect(await kinds(holdfast, run.id)).toEqual(['started', 'step-succeeded', 'succeeded'])
  })

  it.each(['lease-lost', 'stale'] as const)('is rolled back when the store refuses its entry: %s', async (reason) => {
    const { open, orders, store } = await ownTables()
    const calls: number[] = []
    const flow = book(calls)
    const logger = keepLines()
    const refusing = transacting(store, (work) =>
      store.transact((handle, within) => {
        const refuse = async (): Promise<readonly Committed[]> => [{ outcome: 'refused', reason }]
        return work(handle, calls.length === 0 ? changedWithin(within, { commit: refuse }) : within)
      }),
    )
    const holdfast = await open({ store: refusing, workflows: [flow], logger })
    await holdfast.work()
    const run = await holdfast.start(flow, 'a')
    await until(() => logger.lines.some(({ message }) => message.includes(run.id)))
    expect(orders()).toEqual([])
    expect(await run.status()).toBe('running')
    expect(calls).toEqual([1])
  })

  it('is an attempt that failed when its entry cannot be written, or the database refuses to commit', async () => {
    const { db, open, orders, store } = await ownTables()
    db.exec('create table lines (order_id text references orders (id) deferrable initially deferred)')
    const flow = workflow('flow', (ctx) =>
      ctx.transaction(
        'insert',
        async (tx: Db, step) => {
          tx.exec(`insert into lines values ('${step.attempt < 3 ? 'nobody' : 'a'}')`)
          if (step.attempt === 3) insertOrder(tx, 'a')
          return step.attempt
        },
        quickly,
      ),
    )
    let times = 0
    const refusing = transacting(store, (work) =>
      store.transact((handle, within) => {
        ;(handle as Db).exec('pragma defer_foreign_keys = on')
        times += 1
        const fail = (): Promise<never> => Promise.reject(new Error('The entry could not be written'))
        return work(handle, times === 2 ? changedWithin(within, { commit: fail }) : within)
      }),
    )
    const handle = (store as unknown as { db: { exec(sql: string): void } }).db
    handle.exec('pragma foreign_keys = on')
    const holdfast = await open({ store: refusing, workflows: [flow] })
    await holdfast.work()
    const run = await holdfast.start(flow)
    expect(await run.result()).toBe(3)
    expect(orders()).toEqual(['a'])
    expect(await kinds(holdfast, run.id)).toEqual([
      'started',
      'attempt-failed',
      'attempt-failed',
      'step-succeeded',
      'succeeded',
    ])
    expect(await soundness(holdfast)).toEqual([])
  })

  it.each(['committed', 'rolled back'] as const)(
    'leaves every entry at its place, those of others beside it, too: %s',
    async (end) => {
      const { open, orders, store } = await ownTables()
      const carried = gate()
      let bodies = 0
      const flow = workflow('flow', quickly, async (ctx) => {
        bodies += 1
        const order: string[] = []
        const seen = await Promise.all([
          ctx.transaction('write', (tx: Db, step) => {
            insertOrder(tx, `order ${step.attempt}`)
            return step.attempt
          }),
          ctx.step('beside', () => carried.passed.then(() => 'beside')).finally(() => order.push('beside')),
          ctx.step('before', () => 'before'),
        ]).finally(() => order.push('all'))
        if (bodies < 3) throw new Error('again')
        return [...seen, ...order]
      })
      let times = 0
      const slow = transacting(store, (work) =>
        store.transact((handle, within) => {
          times += 1
          const commit = async (transitions: readonly Transition[]): Promise<readonly Committed[]> => {
            carried.open()
            // Meanwhile the other step ends, and its entry gets the place behind.
            await settled()
            if (end === 'rolled back' && times === 1) throw new Error('The entry could not be written')
            return within.commit(transitions)
          }
          return work(handle, changedWithin(within, { commit }))
        }),
      )
      // Each payload is bound to its place: one that stands elsewhere could not be read.
      const codec = encryptingCodec({ keys: { only: Buffer.alloc(32, 7) }, current: 'only' })
      const holdfast = await open({ store: slow, workflows: [flow], codec })
      await holdfast.work()
      const run = await holdfast.start(flow)
      const attempt = end === 'committed' ? 1 : 2
      expect(await run.result()).toEqual([attempt, 'beside', 'before', 'beside', 'all'])
      expect(orders()).toEqual([`order ${attempt}`])
      const names = (await holdfast.journal(run)).map(({ kind, name }) => `${kind} ${name ?? ''}`.trim())
      const first = end === 'committed' ? 'step-succeeded write' : 'attempt-failed write'
      expect(names.indexOf(first)).toBeLessThan(names.indexOf('step-succeeded beside'))
      expect(await soundness(holdfast)).toEqual([])
    },
  )

  it('that finds no row of its run is rolled back and fails its step, and is not begun for ever', async () => {
    const { open, orders } = await ownTables()
    const calls: number[] = []
    const flow = workflow('flow', (ctx) =>
      ctx.transaction(
        'insert',
        (tx: Db, step) => {
          calls.push(step.attempt)
          insertOrder(tx, 'a')
          tx.prepare('delete from runs where id = ?').run([ctx.run.id])
        },
        quickly,
      ),
    )
    const holdfast = await open({ workflows: [flow] })
    await holdfast.work()
    const run = await holdfast.start(flow)
    await expect(run.result()).rejects.toMatchObject({ cause: { code: 'INVALID_OPTION', details: { step: 'insert' } } })
    expect(calls).toEqual([1])
    expect(orders()).toEqual([])
    expect(await kinds(holdfast, run.id)).toEqual(['started', 'step-failed', 'failed'])
    expect(await soundness(holdfast)).toEqual([])
  })

  it('is begun again when the store was away before it began', async () => {
    const { open, orders, store } = await ownTables()
    const calls: number[] = []
    const flow = book(calls)
    let times = 0
    const away = transacting(store, (work) => {
      times += 1
      return times < 3 ? Promise.reject(unavailable()) : store.transact(work)
    })
    const holdfast = await open({ store: away, workflows: [flow] })
    await holdfast.work()
    expect(await (await holdfast.start(flow, 'a')).result()).toBe(1)
    expect(orders()).toEqual(['a'])
    expect(times).toBe(3)
  })

  it('passes through the faults of holdfast/testing', async () => {
    const { open, orders, store } = await ownTables()
    const calls: number[] = []
    const flow = book(calls)
    const faulty = withFaults(store, atFirst('after'), { clock: systemClock })
    const holdfast = await open({ store: faulty, workflows: [flow] })
    await holdfast.work()
    expect(await (await holdfast.start(flow, 'a')).result()).toBe(1)
    expect(calls).toEqual([1])
    expect(orders()).toEqual(['a'])
  })
})

describe("a transaction of the user's own library", () => {
  it('is committed by that library, with the entry in it', async () => {
    const { open, orders, connect } = await ownTables()
    const seen: string[] = []
    const double = workflow('double', (ctx, n: number) => ctx.step('double', () => n * 2))
    const flow = workflow('flow', async (ctx, id: string) => {
      const first = await ctx.transaction(
        'insert',
        async (tx: Db, step) => {
          insertOrder(tx, `${id} ${step.attempt}`)
          await new Promise((resolve) => setTimeout(resolve, 100))
          if (step.attempt === 1) throw new Error('not yet')
          return step.attempt
        },
        quickly,
      )
      return [first, await ctx.step('after', () => 'done')]
    })
    const db = connect()
    const holdfast = await open({
      workflows: [flow, double],
      transaction: async (work: (tx: Db) => Promise<unknown>) => {
        db.exec('begin immediate')
        try {
          await work(db)
          db.exec('commit')
          seen.push('committed')
        } catch (error) {
          db.exec('rollback')
          seen.push('rolled back')
          throw error
        }
      },
    })
    await holdfast.work()
    const run = await holdfast.start(flow, 'a')
    // What others do meanwhile waits for it, and does not end it.
    const others = [1, 2, 3].map(async (n) => (await holdfast.start(double, n)).result())
    expect(await run.result()).toEqual([2, 'done'])
    expect(await Promise.all(others)).toEqual([2, 4, 6])
    expect(seen).toEqual(['rolled back', 'committed'])
    expect(orders()).toEqual(['a 2'])
  })
})

function unavailable(): Error {
  return new HoldfastError('STORE_UNAVAILABLE', 'The line is dead')
}

function changedWithin(within: TransactionStore, changes: Partial<TransactionStore>): TransactionStore {
  return {
    start: (runs) => within.start(runs),
    commit: (transitions) => within.commit(transitions),
    deliver: (messages) => within.deliver(messages),
    control: (requests) => within.control(requests),
    load: (requests) => within.load(requests),
    ...changes,
  }
}
