// Several Holdfasts on one store, in a time that the test owns: a lease of half a minute runs out in a moment, and no slow
// machine lets one run out by mistake.

import { onTestFinished } from 'vitest'
import {
  createHoldfast,
  type Holdfast,
  type HoldfastOptions,
  type RunReference,
  type Store,
  type StoreAdmin,
} from 'holdfast'
import { createVirtualClock, type VirtualClock } from 'holdfast/testing'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { keepLines } from './open.ts'

export interface VirtualTime {
  readonly clock: VirtualClock
  /** Lets time pass until a promise settles, an hour at most. */
  readonly after: <Value>(promise: Promise<Value>) => Promise<Value>
  /** Lets time pass until something is so, an hour at most. */
  readonly until: (isSo: () => boolean) => Promise<void>
  /** What a step waits with. */
  readonly pause: (ms: number) => Promise<void>
}

export interface VirtualWorld extends VirtualTime {
  readonly store: Store
  readonly open: (options?: Partial<HoldfastOptions>) => Promise<Holdfast>
}

export function virtualTime(): VirtualTime {
  const clock = createVirtualClock()
  const until = async (isSo: () => boolean): Promise<void> => {
    if (!(await clock.runUntil(isSo, '1h'))) throw new Error('It was not so within an hour.')
  }
  const after = async <Value>(promise: Promise<Value>): Promise<Value> => {
    let settled = false
    const settle = (): void => void (settled = true)
    promise.then(settle, settle)
    await until(() => settled)
    return promise
  }
  return { clock, until, after, pause: (ms) => new Promise((resolve) => void clock.after(ms, resolve)) }
}

export function virtualWorld(): VirtualWorld {
  const time = virtualTime()
  const { clock, after } = time
  const store = new MemoryStore({ clock, tokenKey: 'k'.repeat(64) })
  return {
    ...time,
    store,
    open: async (options = {}) => {
      const holdfast = await createHoldfast({ store, logger: keepLines(), ports: { clock }, ...options })
      // Closing may wait for the shutdown timeout, and that passes only if the test lets it.
      onTestFinished(() => after(holdfast.close()))
      return holdfast
    },
  }
}

/** The same store, but for what one test needs to go otherwise. */
export function changed(store: Store, changes: Partial<Store & StoreAdmin>): Store {
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(key in changes ? changes : target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** A process claims what is due of a type and is never heard of again. */
export async function abandon(store: Store, session: string, type: string): Promise<void> {
  await store.beat({ session, leaseMs: 0 })
  const { runs } = await store.claim({ session, selectors: [{ type, version: 1 }], limit: 100 })
  if (runs.length === 0) throw new Error(`There was nothing of "${type}" to abandon.`)
}

export const gone = (): never => {
  throw new Error('The store is gone')
}

/** A store that does not answer a worker while the switch is off. */
export function unreliable(store: Store) {
  const line = { isUp: true }
  const unreachable = changed(store, {
    beat: (request) => (line.isUp ? store.beat(request) : gone()),
    claim: (request) => (line.isUp ? store.claim(request) : gone()),
    rescue: (request) => (line.isUp ? store.rescue(request) : gone()),
  })
  return { line, store: unreachable }
}

export const kindsOf = async (holdfast: Holdfast, run: RunReference): Promise<readonly string[]> =>
  (await holdfast.journal(run)).map(({ kind }) => kind)
