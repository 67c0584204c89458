// Keys, each taken by one row of the table `keys`: the business key of a live run, and the idempotency key of a run that was
// not removed. Its primary key decides who is first, at every number of shards: no index over runs has to be unique, except
// that of their ids. A start takes its keys before it inserts its run, and frees them if that run is not inserted. An end
// frees the business key, a removal both, and a run that goes on after its end takes its business key again.
//
// The row of a business key is in the shard of its run. A run lives with its business key, so its idempotency key may belong
// to another shard, in which all runs that want that key meet.

import { uniqueText } from '../../../core/model/key.ts'
import { shardFor } from '../../../core/model/run-id.ts'
import type { Run } from '../../../core/model/run.ts'
import type { NewRun } from '../../../store.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { ExchangeMethod } from '../exchange/load/unit-of-work-statements.ts'
import { exchangeMethods } from '../exchange/load/unit-of-work-statements.ts'
import type { Execution } from '../execution.ts'
import { shardOfRun } from '../schema/shards.ts'

/** What stands in the column `type` for a business key: its scope is in the key, and no type is empty. */
const business = ''

/** A key, and the run that wants or has it. */
interface HeldKey {
  readonly shard: number
  /** The type that an idempotency key belongs to; empty for a business key; null for an idempotency key of any type. */
  readonly type: string | null
  readonly key: string
  readonly run: string
}

export interface Taken {
  /** It has all of its keys. */
  readonly isWhole: boolean
  /** Those that it took just now. */
  readonly fresh: readonly HeldKey[]
  /** The ids of the runs that have the others; absent if they are just gone. */
  readonly idempotencyHolder?: string | undefined
  readonly keyHolder?: string | undefined
}

/** A row before a transaction, if it was there, and after it. */
export type KeyChange = readonly [before: Run | undefined, after: Run]

export interface KeyQueries {
  /** Takes the keys of runs of which no two want the same, as far as they are free; by the ids of those runs. */
  take(x: Execution, runs: readonly NewRun[]): Promise<ReadonlyMap<string, Taken>>
  /** Frees keys that were taken in vain. */
  free(x: Execution, keys: readonly HeldKey[]): Promise<void>
  /** Frees and takes what follows from changed rows. A key that another run has taken meanwhile is a unique violation. */
  follow(x: Execution, end: ExchangeMethod, changes: readonly KeyChange[]): readonly Promise<unknown>[]
}

export function isKeyed(run: Pick<NewRun, 'idempotencyKey' | 'key' | 'keyScope' | 'type' | 'version'>): boolean {
  return run.idempotencyKey !== null || uniqueText(run) !== null
}

/** `as`: whether runs are started by people, or by other runs with their transitions. */
export function createKeyQueries(dialect: Dialect, as: 'start' | 'commit' = 'start'): KeyQueries {
  const { schema, shards } = dialect
  const given = 'json_to_recordset($2::text::json) as given (type text, key text, run uuid)'
  // In the order of the keys, in which every transaction takes them.
  const insert = `
    insert into ${schema}.keys (shard, type, key, run_id)
    select $1::smallint, type, key, run from (select * from ${given}) as given`
  const insertFree = statement(
    as === 'start' ? 'start.keys' : 'commit.start',
    `${insert} on conflict do nothing returning type, key`,
  )
  const look = statement(
    as === 'start' ? 'start.holders' : 'commit.start',
    `
    select given.run, given.type, held.run_id from ${given} cross join lateral (
      select run_id from ${schema}.keys as held
      where held.shard = $1::smallint and held.key = given.key and held.type = given.type offset 0) as held`,
  )
  const remove = `
    with given as materialized (select * from ${given})
    delete from ${schema}.keys as held using given
    where held.shard = $1::smallint and held.key = any(array(select key from given)) and held.key = given.key
      and held.run_id = given.run and (held.type = given.type or given.type is null and held.type <> '${business}')`
  const freeAgain = statement(as === 'start' ? 'start.free' : 'commit.start', remove)
  const following = Object.fromEntries(
    exchangeMethods.map((end) => {
      // A delivery ends nothing, and a chore only asks children to end.
      const mayEnd = end !== 'deliver' && end !== 'chore'
      const name = mayEnd ? (`${end}.keys` as const) : end === 'deliver' ? 'deliver.bump' : 'chore.write'
      return [end, { remove: statement(name, remove), insert: statement(name, insert) }]
    }),
  ) as Record<
    ExchangeMethod,
    { readonly remove: ReturnType<typeof statement>; readonly insert: ReturnType<typeof statement> }
  >

  const wantedBy = ({ id, idempotencyKey, ...run }: NewRun): readonly HeldKey[] => {
    const key = uniqueText(run)
    const wanted: HeldKey[] = []
    if (key !== null) wanted.push({ shard: ofRun(id), type: business, key, run: id })
    if (idempotencyKey !== null) {
      wanted.push({ shard: shardFor(idempotencyKey, shards), type: run.type, key: idempotencyKey, run: id })
    }
    return wanted
  }

  const ofRun = (id: string): number => shardOfRun(dialect, id) as number

  /** The keys that a row has. */
  const heldBy = (run: Run): readonly HeldKey[] => {
    if (run.deletedAt !== null) return []
    const key = run.endedAt === null ? uniqueText(run) : null
    const { id, idempotencyKey } = run
    const held: HeldKey[] = []
    if (key !== null) held.push({ shard: ofRun(id), type: business, key, run: id })
    if (idempotencyKey !== null) {
      held.push({ shard: shardFor(idempotencyKey, shards), type: null, key: idempotencyKey, run: id })
    }
    return held
  }

  return {
    async take(x, runs) {
      const wanted = runs.flatMap(wantedBy)
      const made = await Promise.all(byShard(wanted).map(([shard, json]) => x.execute(insertFree, [shard, json])))
      const fresh = new Set(made.flat().map((row) => `${row['type'] as string} ${row['key'] as string}`))
      const isFresh = ({ type, key }: HeldKey): boolean => fresh.has(`${type} ${key}`)
      // Another statement: the insert may have waited for a transaction whose row its own snapshot does not show.
      const rest = byShard(wanted.filter((one) => !isFresh(one)))
      const found = await Promise.all(rest.map(([shard, json]) => x.execute(look, [shard, json])))
      const holders = new Map(
        found.flat().map((row) => [`${row['run'] as string} ${row['type'] as string}`, row['run_id'] as string]),
      )
      return new Map(
        runs.map((run) => {
          const keys = wantedBy(run)
          const holderOf = (type: string): string | undefined => holders.get(`${run.id} ${type}`)
          const taken: Taken = {
            isWhole: keys.every((one) => isFresh(one) || holderOf(one.type as string) === run.id),
            fresh: keys.filter(isFresh),
            idempotencyHolder: holderOf(run.type),
            keyHolder: holderOf(business),
          }
          return [run.id, taken]
        }),
      )
    },

    async free(x, keys) {
      await Promise.all(byShard(keys).map(([shard, json]) => x.execute(freeAgain, [shard, json])))
    },

    follow(x, end, changes) {
      const { remove, insert } = following[end]
      const freed: HeldKey[] = []
      const taken: HeldKey[] = []
      for (const [before, after] of changes) {
        // A row that was not there before was inserted by this transaction, with its keys.
        const had = heldBy(before ?? { ...after, endedAt: null, deletedAt: null })
        const has = heldBy(after)
        freed.push(...without(had, has))
        taken.push(...without(has, had))
      }
      return [
        ...byShard(freed).map(([shard, json]) => x.execute(remove, [shard, json])),
        ...byShard(taken).map(([shard, json]) => x.execute(insert, [shard, json])),
      ]
    },
  }
}

function without(some: readonly HeldKey[], others: readonly HeldKey[]): readonly HeldKey[] {
  return some.filter(({ type, key }) => !others.some((other) => other.type === type && other.key === key))
}

/** By their shards, each in the order of its keys. */
function byShard(keys: readonly HeldKey[]): readonly (readonly [shard: number, json: string])[] {
  const found = new Map<number, HeldKey[]>()
  for (const one of keys) {
    const some = found.get(one.shard)
    if (some === undefined) found.set(one.shard, [one])
    else some.push(one)
  }
  const inOrder = Array.from(found).sort(([one], [other]) => one - other)
  return inOrder.map(([shard, some]) => {
    some.sort((a, b) => (`${a.type} ${a.key}` < `${b.type} ${b.key}` ? -1 : 1))
    return [shard, JSON.stringify(some.map(({ type, key, run }) => ({ type, key, run })))]
  })
}
