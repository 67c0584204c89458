// A batch in which another transaction has locked a row that one item concerns: a slow transaction of a user has the row of a
// run, a topic, or a key that it has not committed yet. The other items do not wait for that.
//
//   wait         the whole batch is sent as usual, and waits for locks once, shortly: mostly they are gone by then, because
//                they are ours. Only an item that goes apart from the others waits a while
//   pass over    locked rows are skipped. Runs that would only receive a message are left to a chore (`core/model/chore.ts`). An
//                item that needs a locked row is answered as busy, and the rest is sent again without it: no part of an item
//                happens in a transaction that does not hold the rows that the item is about
//   split        the wait was for a key, which cannot be skipped: then the batch is split until the item is alone
//
// A run that would only receive a message, and that a policy refuses to change, is skipped in every way
// (`stores/postgres/exchange/refused-others.ts`). The caller of a busy item sends it again, apart from the others. A single
// item delays others as well, those whose batches queue behind its own: it is answered as soon as a batch is.

import { HoldfastError, isHoldfastError } from '../../../core/errors/error.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Row } from '../execution.ts'
import { shardFor } from '../../../core/model/run-id.ts'
import type { RefusedOthers } from '../exchange/refused-others.ts'
import { isLocked, sqlStateOf } from '../connection/sql-state.ts'
import { byShard } from '../schema/shards.ts'
import { Missing, LockRequest } from '../exchange/lock-request.ts'

/** How a transaction takes locks. */
export type LockPolicy = 'wait' | 'pass over'

/** How a batch is sent. A patient one is sent again for as long as a row is locked. */
export interface Sending {
  readonly lockPolicy: LockPolicy
  readonly patient: boolean
}

/** A transaction that skips locked rows waits this long for rows that cannot be skipped. */
const shortestWaitMs = 2

/** It waits for locks of one batch at most this many times: a hundred locked keys in it must not delay the rest for long. */
const mostWaits = 50

/** The rows that other transactions have locked, and runs that a policy refuses to change. */
export interface LockedOut {
  readonly runs: ReadonlySet<string>
  readonly topics: ReadonlySet<string>
}

const nothing: LockedOut = { runs: new Set(), topics: new Set() }

export interface LockFilter {
  /** The requested rows that this transaction does not get. The rest is locked from here on, and is not waited for. */
  lockedOut(x: Execution, lockRequest: LockRequest, lockPolicy: LockPolicy): Promise<LockedOut>
  /** Has this transaction wait for hardly anything. */
  hurry(x: Execution): Promise<unknown>
}

export function createLockFilter(dialect: Dialect, refusedOthers: Pick<RefusedOthers, 'among'>): LockFilter {
  const { schema } = dialect
  const ids = 'any(array(select value::uuid from json_array_elements_text($2::text::json)))'
  const names = 'any(array(select value from json_array_elements_text($2::text::json)))'
  const runs = `select id from ${schema}.runs where shard = $1::smallint and id = ${ids}`
  const topics = `select name as id from ${schema}.topics where shard = $1::smallint and name = ${names}`
  const lockRuns = statement([], `${runs} for no key update skip locked`)
  const knownRuns = statement([], runs)
  const lockTopics = statement([], `${topics} for no key update skip locked`)
  const knownTopics = statement([], topics)
  const hurry = statement([], `select pg_catalog.set_config('lock_timeout'::text, '${shortestWaitMs}ms'::text, true)`)

  /** Those that are there, and that this transaction has not got. Two statements: a row that is locked is still seen. */
  async function notGot(
    x: Execution,
    shards: ReadonlyMap<number, readonly string[]>,
    lock: typeof lockRuns,
    known: typeof lockRuns,
  ): Promise<ReadonlySet<string>> {
    const requested = Array.from(shards, ([shard, some]) => [shard, JSON.stringify(some)] as const)
    const both = requested.flatMap((values) => [x.execute(lock, values), x.execute(known, values)])
    const got = new Set<string>()
    const missing = new Set<string>()
    for (const [index, rows] of (await Promise.all(both)).entries()) {
      for (const row of rows) if (index % 2 === 0) got.add(idOf(row))
      for (const row of rows) if (index % 2 === 1 && !got.has(idOf(row))) missing.add(idOf(row))
    }
    return missing
  }

  return {
    async lockedOut(x, lockRequest, lockPolicy) {
      const refused = refusedOthers.among(lockRequest)
      if (lockPolicy === 'wait') return refused.size === 0 ? nothing : { ...nothing, runs: refused }
      const topicShards = new Map<number, string[]>()
      for (const name of lockRequest.topics) {
        const shard = shardFor(name, dialect.shards)
        topicShards.set(shard, [...(topicShards.get(shard) ?? []), name])
      }
      const wanted = [...lockRequest.runs].filter((id) => !refused.has(id))
      const locked = await notGot(
        x,
        byShard(dialect, wanted, (id) => id),
        lockRuns,
        knownRuns,
      )
      return {
        runs: new Set([...locked, ...refused]),
        topics: await notGot(x, topicShards, lockTopics, knownTopics),
      }
    },
    hurry: (x) => x.execute(hurry, []),
  }
}

function idOf(row: Row): string {
  return row['id'] as string
}

/** Watches the decisions item by item, and notes which items concern a locked row. */
export class Guard {
  private readonly lockedOut: LockedOut
  private readonly aside = new Set<number>()

  constructor(lockedOut: LockedOut) {
    this.lockedOut = lockedOut
  }

  get isEmpty(): boolean {
    return this.lockedOut.runs.size + this.lockedOut.topics.size === 0
  }

  /**
   * The decision about one item; undefined if it is set aside. Then the transaction is in vain, and the following items are
   * only examined for locks.
   */
  decide<Answer>(index: number, work: () => Answer): Answer | undefined {
    if (this.isEmpty) return work()
    try {
      return work()
    } catch (error) {
      if (this.isLockedOut(error)) this.aside.add(index)
      else if (this.aside.size === 0) throw error
      return undefined
    }
  }

  /** An item concerns this topic, regardless of the decision. */
  concerns(index: number, topic: string): void {
    if (this.lockedOut.topics.has(topic)) this.aside.add(index)
  }

  /** Throws if an item is set aside: the transaction is rolled back then. */
  assertWhole(): void {
    if (this.aside.size === 0) return
    const cause = Object.assign(new Error('Another transaction has locked some of it.'), { code: '55P03' })
    const details = { aside: [...this.aside] }
    throw new HoldfastError('STORE_UNAVAILABLE', 'Another transaction has locked rows of a batch.', { cause, details })
  }

  private isLockedOut(error: unknown): boolean {
    if (!(error instanceof Missing)) return false
    const missing = new LockRequest()
    error.add(missing)
    const { runs, topics } = this.lockedOut
    return [...missing.runs].some((id) => runs.has(id)) || [...missing.topics].some((name) => topics.has(name))
  }
}

export interface Batch<Item, Answer> {
  readonly items: readonly Item[]
  readonly busy: Answer
  /** An item may concern other runs that it can do without: also a single one is sent past locked rows. @default false */
  readonly hasOutbound?: boolean
  /** The address within which items keep their order: if one is busy, so are all later ones to the same address. */
  readonly addressOf?: (item: Item) => string
  /** Sends some in one transaction. If that meets a lock, it throws what `hasMetLock` recognizes, and nothing has happened. */
  readonly send: (items: readonly Item[], sending: Sending) => Promise<readonly Answer[]>
}

/** Sends a batch; items whose rows another transaction has locked are answered as busy. */
export async function setAside<Item, Answer>(
  { skipLocked }: Pick<Dialect, 'skipLocked'>,
  batch: Batch<Item, Answer>,
): Promise<readonly Answer[]> {
  const { items, busy, send } = batch
  const patient = skipLocked === ''
  try {
    return await send(items, { lockPolicy: 'wait', patient })
  } catch (error) {
    if (patient || !hasMetLock(error)) throw error
  }
  if (items.length === 1 && batch.hasOutbound !== true) return [busy]
  const answers = await new Passing(batch).perform()
  return items.map((_, place) => (answers.has(place) ? (answers.get(place) as Answer) : busy))
}

/** One batch with locked rows, on its way. */
class Passing<Item, Answer> {
  private readonly batch: Batch<Item, Answer>
  private readonly answers = new Map<number, Answer>()
  private readonly busyAddresses = new Set<string>()
  private waits = 0

  constructor(batch: Batch<Item, Answer>) {
    this.batch = batch
  }

  /** The answers of all that are not busy, by place. */
  async perform(): Promise<ReadonlyMap<number, Answer>> {
    await this.send(this.batch.items.map((_, place) => place))
    return this.answers
  }

  private async send(given: readonly number[]): Promise<void> {
    for (let places = given; ;) {
      places = places.filter((place) => !this.busyAddresses.has(this.address(place)))
      if (places.length === 0 || this.waits >= mostWaits) return
      try {
        const answered = await this.batch.send(
          places.map((place) => this.batch.items[place] as Item),
          { lockPolicy: 'pass over', patient: false },
        )
        for (const [index, place] of places.entries()) this.answers.set(place, answered[index] as Answer)
        return
      } catch (error) {
        if (!hasMetLock(error)) throw error
        const aside = asideOf(error).map((index) => places[index] as number)
        const isKnown = aside.length > 0 || places.length === 1
        if (!isKnown) {
          this.waits += 1
          return await this.split(places)
        }
        const left = new Set(aside.length > 0 ? aside : places)
        for (const place of left) this.busyAddresses.add(this.address(place))
      }
    }
  }

  private async split(places: readonly number[]): Promise<void> {
    const half = places.length >> 1
    await this.send(places.slice(0, half))
    await this.send(places.slice(half))
  }

  /** Without addresses each has its own. */
  private address(place: number): string {
    return this.batch.addressOf?.(this.batch.items[place] as Item) ?? String(place)
  }
}

/** A transaction was given up because another one has locked a row. */
export function hasMetLock(error: unknown): error is HoldfastError {
  return isHoldfastError(error, 'STORE_UNAVAILABLE') && isLocked(sqlStateOf(error.cause))
}

/** The items of a batch, by place, that concern a locked row; none if they are unknown. */
function asideOf({ details }: HoldfastError): readonly number[] {
  return (details['aside'] as readonly number[] | undefined) ?? []
}
