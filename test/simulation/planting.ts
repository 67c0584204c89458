// How a bug is planted: a store that does one thing otherwise than the memory store under it, or a method of the engine that
// does.

import type { Run } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { Claimed, Store } from '../../src/store.ts'
import type { Row } from '../../src/stores/memory/tables/row.ts'
import type { MemoryStore } from '../../src/stores/memory/store.ts'
import type { Topics } from '../../src/stores/memory/tables/topics.ts'
import type { Mutation, StoreMutation } from './simulate.ts'

export interface Canary {
  readonly name: string
  /** What is wrong with it. */
  readonly bug: string
  /** Within this many seeds it must be found. */
  readonly budget: number
  /** The first seed to try, for a bug that few seeds show: the search begins near one that does. @default 0 */
  readonly from?: number
  readonly mutation: Mutation
}

/** The insides of the memory store, for those who break it. */
interface Insides {
  readonly tables: { readonly rows: ReadonlyMap<string, Mutable<Row>>; readonly topics: Topics }
  clock: { now(): number }
}

export type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] }

export function insides(store: MemoryStore): Insides {
  return store as unknown as Insides
}

/** The store, with some methods in place of its own. */
export function changed(store: MemoryStore, changes: Partial<Store>): Store {
  return new Proxy<Store>(store, {
    get(target, key) {
      const value: unknown = Reflect.get(key in changes ? changes : target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

export function onCommit(
  change: (transition: Transition, row: Mutable<Row>, store: MemoryStore) => Transition,
): StoreMutation {
  return (store) =>
    changed(store, {
      commit: (transitions) =>
        store.commit(
          transitions.map((transition) => {
            const row = insides(store).tables.rows.get(transition.runId)
            return row === undefined ? transition : change(transition, row, store)
          }),
        ),
    })
}

/** Does something to the rows that a claim has leased. */
export function onClaim(change: (row: Mutable<Row>, run: Mutable<Run>) => void): StoreMutation {
  return (store) =>
    changed(store, {
      claim: async (request): Promise<Claimed> => {
        const claimed = await store.claim(request)
        for (const run of claimed.runs) {
          const row = insides(store).tables.rows.get(run.id)
          if (row !== undefined) change(row, run)
        }
        return claimed
      },
    })
}

/** Does one call by another clock. */
export async function by<Answer>(store: MemoryStore, aheadMs: number, call: () => Promise<Answer>): Promise<Answer> {
  const inside = insides(store)
  const { clock } = inside
  inside.clock = { now: () => clock.now() + aheadMs }
  const answer = call()
  inside.clock = clock
  return answer
}

/** Puts a method in the place of another, as long as a simulation takes. */
export function inPlaceOf(target: object, method: string, planted: unknown): () => () => void {
  return () => {
    const methods = target as Record<string, unknown>
    const right = methods[method]
    methods[method] = planted
    return () => void (methods[method] = right)
  }
}
