// The store of a test. It must use the time of the test, or no wait would ever come due, and must be empty: ids are repeated
// from one test to the next.

import { HoldfastError } from '../../core/errors/error.ts'
import { shown } from '../../core/text/suggest.ts'
import { createMemoryStore, type HoldfastOptions } from '../../holdfast.ts'
import { openStore } from '../../open-store.ts'
import type { Store, StoreAdmin } from '../../store.ts'
import { systemPorts } from '../../system.ts'
import { silentLogger } from '../logger.ts'
import type { VirtualClock } from '../virtual-clock.ts'

/** An address such as `'sqlite::memory:'`, or a function that opens a store whose time is that of the clock. */
export type TestStore = string | ((clock: VirtualClock) => Promise<Store & StoreAdmin> | (Store & StoreAdmin))

export async function openTestStore(
  store: TestStore | undefined,
  clock: VirtualClock,
  transaction: HoldfastOptions['transaction'],
): Promise<Store & StoreAdmin> {
  if (store === undefined && transaction === undefined) return createMemoryStore(clock)
  if (typeof store === 'string') return openStore(store, systemPorts(silentLogger), clock)
  if (typeof store === 'function') return store(clock)
  if (store === undefined) {
    throw new HoldfastError(
      'INVALID_OPTION',
      "createTest({ transaction }) needs `store`, too: the database that has your tables, such as 'sqlite:test.db'.",
    )
  }
  throw new HoldfastError(
    'INVALID_OPTION',
    "createTest({ store }) needs an address such as 'sqlite::memory:', or a function: (clock) => openSqliteStore({ path, " +
      `clock }). A store that is already open uses its own time. Got ${shown(store)}.`,
  )
}

/** A store answers within this time of the test, which stands still meanwhile. */
const mostMs = 1_000

export function assertSameTime(storeMs: number, testMs: number): void {
  if (Math.abs(storeMs - testMs) <= mostMs) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `The time of the store of this test is ${new Date(storeMs).toISOString()}, but the test is at ` +
      `${new Date(testMs).toISOString()}. Pass the clock on to the store: store: (clock) => openSqliteStore({ path, clock }).`,
  )
}

export async function assertEmpty(store: StoreAdmin): Promise<void> {
  const [run] = await store.find({}, { limit: 1 })
  if (run === undefined) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `The store of this test holds runs already, of "${run.type}" for example. Every test, and every trial of crashEverywhere, ` +
      "needs an empty one: 'sqlite::memory:', or a function that creates a new file each time.",
  )
}
