// What the engine says of a transaction: never more than is certain.

import { describe, expect, it } from 'vitest'
import type { Transacted, TransactionWork } from '../../../../src/core/definition/definition.ts'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import { createTransact, createTransactions, type TransactionRunner } from '../../../../src/engine/store/transact.ts'
import { Semaphore } from '../../../../src/engine/store/semaphore.ts'
import type { Store, StoreTransactions } from '../../../../src/store.ts'
import { manualPorts, turn } from '../../../support/manual-ports.ts'

const nothing = async (): Promise<void> => undefined

/** A store whose transactions are what the case says. */
function over(
  transact: StoreTransactions['transact'],
  own?: TransactionRunner,
): (work?: TransactionWork) => Promise<Transacted> {
  const store = { transact, inTransaction: () => ({}) } as unknown as Store
  const ports = manualPorts()
  const perform = createTransact(createTransactions({ store, own, ports }), () => undefined)!
  return (work = nothing) => perform(work, { signal: new AbortController().signal, isolation: undefined })
}

const byLibrary = (own: TransactionRunner): ReturnType<typeof over> =>
  over(() => Promise.reject(new Error('not asked')), own)

const committed: StoreTransactions['transact'] = (work) => work({}, {} as never)

describe('a transaction of the store', () => {
  it('is committed when it is fulfilled', async () => {
    expect(await over(committed)()).toEqual({ outcome: 'committed' })
  })

  it('is rolled back when its work is rejected, whatever the store makes of that', async () => {
    const error = new Error('the work')
    const failing: StoreTransactions['transact'] = (work) =>
      work({}, {} as never).catch(() => Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'the rollback')))
    expect(await over(failing)(() => Promise.reject(error))).toEqual({ outcome: 'rolled-back', error })
  })

  it.each([
    ['unknown', new HoldfastError('STORE_UNAVAILABLE', 'the line is dead')],
    ['rolled-back', new Error('a deferred constraint')],
  ])('is %s when COMMIT fails so', async (outcome, error) => {
    const failing: StoreTransactions['transact'] = async (work) => {
      await work({}, {} as never)
      throw error
    }
    expect(await over(failing)()).toMatchObject({ outcome })
  })

  it('does not exist where the store has none', () => {
    const ports = manualPorts()
    const none = createTransactions({ store: {} as Store, own: undefined, ports })
    expect(createTransact(none, () => undefined)).toBeNull()
  })
})

describe("a transaction of the user's library", () => {
  it.each([
    ['rolled-back', 'a serialization failure', { code: '40001' }],
    ['rolled-back', 'a constraint, wrapped by Drizzle', { message: 'Failed query', cause: { code: '23503' } }],
    ['rolled-back', 'a constraint, wrapped by TypeORM', { driverError: { code: '23505' } }],
    ['rolled-back', 'a constraint of SQLite', { code: 'SQLITE_CONSTRAINT_FOREIGNKEY' }],
    ['unknown', 'a completion that nobody knows', { code: '40003' }],
    ['unknown', 'a shutdown', { code: '57P01' }],
    ['unknown', 'a broken line', { code: 'ECONNRESET' }],
    ['unknown', 'no error at all', undefined],
  ])('is %s when COMMIT fails with %s', async (outcome, _what, error) => {
    const transact = byLibrary(async (work) => {
      await work({})
      throw Object.assign(new Error('COMMIT'), error)
    })
    expect(await transact()).toMatchObject({ outcome })
  })

  it.each([
    ['ten, unless something else is said', undefined, undefined, 10],
    ['as many as is said', 3, undefined, 3],
    ['as many as the store has places for', undefined, 4, 4],
    ['as many as both allow', 2, 4, 2],
  ])('is begun in its turn, of which there are %s at once', async (_, mostOwn, places, expected) => {
    const [begun, ended]: [number[], number[]] = [[], []]
    const ends: (() => void)[] = []
    const own: TransactionRunner = async (work) => {
      begun.push(begun.length)
      await work({})
      await new Promise<void>((resolve) => ends.push(resolve))
      ended.push(ended.length)
    }
    const semaphore = new Semaphore(places ?? 0)
    const reserve = places === undefined ? {} : { reserve: (signal: AbortSignal) => semaphore.enter(signal) }
    const store = { transact: () => undefined, inTransaction: () => ({}), ...reserve } as unknown as Store
    const transact = createTransact(createTransactions({ store, own, mostOwn, ports: manualPorts() }), () => undefined)!
    const stops = Array.from({ length: 15 }, () => new AbortController())
    const all = stops.map(({ signal }) => transact(nothing, { signal, isolation: undefined }))
    await turn()
    expect(begun).toHaveLength(expected)
    // A transaction that waits holds nothing, and leaves the line when nobody waits for it any longer.
    stops.at(-1)?.abort(new Error('enough'))
    expect(await all.at(-1)).toMatchObject({ outcome: 'rolled-back' })
    while (ended.length < 14) {
      expect(begun.length - ended.length).toBeLessThanOrEqual(expected)
      ends.shift()?.()
      await turn()
    }
    expect(await Promise.all(all.slice(0, -1))).toEqual(Array.from({ length: 14 }, () => ({ outcome: 'committed' })))
    expect(begun).toHaveLength(14)
  })

  it('is tried once: a library that calls its work again gets that as its error', async () => {
    let calls = 0
    const transact = byLibrary(async (work) => {
      await work({})
      await work({})
    })
    const done = await transact(async () => void (calls += 1))
    expect(done).toMatchObject({ outcome: 'rolled-back', error: { code: 'INVALID_OPTION' } })
    expect(calls).toBe(1)
  })

  it('is in doubt when nobody waited for it', async () => {
    const transact = byLibrary(async (work) => void work({}))
    const done = await transact(() => new Promise(() => undefined))
    expect(done).toMatchObject({ outcome: 'unknown', error: { code: 'INVALID_OPTION' } })
  })

  it('is rolled back when its work failed, though the library did not mind', async () => {
    const error = new Error('the work')
    const transact = byLibrary((work) => work({}).catch(() => undefined))
    expect(await transact(() => Promise.reject(error))).toEqual({ outcome: 'rolled-back', error })
  })
})
