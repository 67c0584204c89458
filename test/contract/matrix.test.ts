// The contract in odd shapes: a batch that is split into single items must have the answers of the whole, a page that is read
// entry by entry must be the page, and nothing may depend on objects that caller and store share.

import { faultAtCall, createVirtualClock, withFaults } from '../../src/testing/index.ts'
import type { ContractSubject } from '../../src/testing/contract/index.ts'
import type { Store, StoreAdmin } from '../../src/store.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { runContract } from './run-contract.ts'

type AnyStore = Store & StoreAdmin
type Clock = ContractSubject['clock']

/** The same store, but for some methods. */
function changed(store: AnyStore, changes: Partial<AnyStore>): AnyStore {
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(key in changes ? changes : target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** Sends every item of a batch by itself. An empty batch stays one call, which a closed store refuses. */
function oneByOne(store: AnyStore): AnyStore {
  const split =
    <Item, Answer>(send: (items: readonly Item[]) => Promise<readonly Answer[]>) =>
    async (items: readonly Item[]): Promise<readonly Answer[]> => {
      if (items.length === 0) return send(items)
      const answers: Answer[] = []
      // All are sent in one turn, as a batch is, so that calls at once meet each other as they would.
      for (const answer of await Promise.all(items.map((item) => send([item])))) answers.push(...answer)
      return answers
    }
  return changed(store, {
    start: split((runs) => store.start(runs)),
    // A bound is one for all of them.
    load: (requests, mostBytes) =>
      mostBytes === undefined ? split(store.load.bind(store))(requests) : store.load(requests, mostBytes),
    commit: split((transitions) => store.commit(transitions)),
    deliver: split((messages) => store.deliver(messages)),
    control: split((requests) => store.control(requests)),
    get: split((ids) => store.get(ids)),
    release: async (leases) => {
      if (leases.length === 0) return store.release(leases)
      return (await Promise.all(leases.map((lease) => store.release([lease])))).flat()
    },
  })
}

/** Reads the feed, and what people look for, in pages of one. */
function pageByPage(store: AnyStore): AnyStore {
  return changed(store, {
    changes: async (after, limit) => {
      const changes = []
      for (let from = after; changes.length < limit;) {
        const [next] = await store.changes(from, 1)
        if (next === undefined) break
        changes.push(next)
        from = next.position
      }
      return changes
    },
    find: async (filter, page) => {
      const runs = []
      for (let after = page.after; runs.length < page.limit;) {
        const [next] = await store.find(filter, { limit: 1, ...(after === undefined ? {} : { after }) })
        if (next === undefined) break
        runs.push(next)
        after = next.id
      }
      return runs
    },
  })
}

/** Rescues one run at a time, until nothing is left to do or the limit is reached. */
function runByRun(store: AnyStore): AnyStore {
  return changed(store, {
    rescue: async (request) => {
      let all = await store.rescue({ ...request, limit: 1 })
      while (all.more && all.takenOver.length + all.ended.length + all.paused.length < request.limit) {
        const one = await store.rescue({ ...request, limit: 1 })
        all = {
          ...one,
          sessionsEnded: all.sessionsEnded + one.sessionsEnded,
          takenOver: [...all.takenOver, ...one.takenOver],
          ended: [...all.ended, ...one.ended],
          paused: [...all.paused, ...one.paused],
        }
      }
      return all
    },
  })
}

/** What crosses the port is copied, as over a wire. */
const byCopy = (store: AnyStore): AnyStore =>
  withFaults(store, faultAtCall(0, 'before'), { clock: createVirtualClock() })

const memory = async (clock: Clock): Promise<AnyStore> => new MemoryStore({ clock })
const sqlite = (clock: Clock): Promise<AnyStore> => openSqliteStore({ path: ':memory:', driver: 'libsql', clock })

for (const [store, open] of [
  ['the memory store', memory],
  ['SQLite', sqlite],
] as const) {
  for (const [shape, made] of [
    ['item by item', oneByOne],
    ['page by page', pageByPage],
    ['rescued run by run', runByRun],
    ['by copy', byCopy],
  ] as const) {
    // Only the memory store could share an object with its caller; SQLite answers with what it has read.
    if (made === byCopy && open === sqlite) continue
    const subject = async (): Promise<ContractSubject> => {
      const clock = createVirtualClock()
      return { store: made(await open(clock)), clock }
    }
    runContract(`${store}, ${shape},`, subject, undefined, undefined, made === runByRun)
  }
}
