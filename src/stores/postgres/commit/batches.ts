// The batches that a store takes: each item goes to its shard, those of one shard together in one transaction, and items
// whose rows another transaction has locked are answered as busy without delaying the others.

import { bug, isHoldfastError, isOfOneRow } from '../../../core/errors/error.ts'
import type { Transition } from '../../../core/model/transition.ts'
import type {
  BatchOptions,
  Busy,
  Committed,
  Delivered,
  ReleasedLease,
  NewBroadcast,
  NewMessage,
  RunStart,
  StartBusy,
  Started,
  ControlResult,
  ControlCommand,
} from '../../../store.ts'
import type { CommitQueries } from './commit.ts'
import type { Database } from '../connection/database.ts'
import { followsApart, startDecided, type DecidedStartParts, type StartLocks } from '../start/decided-start.ts'
import { isKeyed } from './keys.ts'
import { isMessage, lockRequestOfSending, type DeliverQueries } from '../exchange/deliver.ts'
import type { Execution, Transactions } from '../execution.ts'
import type { RefusedOthers } from '../exchange/refused-others.ts'
import { setAside, createLockFilter, type LockFilter, type LockPolicy } from './locked-items.ts'
import { byShard, shardOfRun } from '../schema/shards.ts'
import { withoutRefused } from './refused-items.ts'
import { isUniqueViolation, sqlStateOf } from '../connection/sql-state.ts'
import type { ControlQueries } from '../exchange/control.ts'
import { LockRequest } from '../exchange/lock-request.ts'

export interface BatchParts extends DecidedStartParts {
  readonly deliverQueries: DeliverQueries
  readonly controlQueries: ControlQueries
  readonly refusedOthers: RefusedOthers
}

const busy: Busy = { outcome: 'busy' }

/** Starts some runs in one transaction. */
type StartSome = (
  x: Execution,
  runs: readonly RunStart[],
  locks: StartLocks,
  lockPolicy: LockPolicy,
) => Promise<readonly Started[]>

export class Batches {
  private readonly parts: BatchParts
  private readonly db: Database
  /** The same, with a connection that is kept for commits. */
  private readonly commits: Transactions
  private readonly commitQueries: CommitQueries
  private readonly aside: LockFilter

  constructor(parts: BatchParts, db: Database, commitQueries: CommitQueries) {
    this.parts = parts
    this.db = db
    this.commits = db.reserved('commit')
    this.commitQueries = commitQueries
    this.aside = createLockFilter(parts.dialect, parts.refusedOthers)
  }

  async start(runs: readonly RunStart[], options?: BatchOptions): Promise<readonly (Started | StartBusy)[]> {
    if (runs.some((run) => isKeyed(run) || followsApart(this.parts.dialect, run))) {
      this.db.assertOpen()
      return this.startAside(runs, options, (x, some, locks, lockPolicy) =>
        startDecided(this.parts, x, some, locks, { lockPolicy }),
      )
    }
    return this.spread(
      runs,
      ({ id }) => id,
      ({ id, shard }) => {
        throw bug('A run is started in a shard that its id does not name', { runId: id, shard })
      },
      (shard, some) =>
        this.startAside(some, options, (x, items) => this.parts.startQueries.start(x, shard, items), true),
    )
  }

  /** A batch that waits for no lock is one statement, unless its rows are spread: it needs no transaction. */
  private startAside(
    runs: readonly RunStart[],
    options: BatchOptions | undefined,
    start: StartSome,
    isAlone = false,
  ): Promise<readonly (Started | StartBusy)[]> {
    return setAside<RunStart, Started | StartBusy>(this.parts.dialect, {
      items: runs,
      busy: { created: false, taken: 'busy', run: null },
      send: (some, { lockPolicy, patient }) => {
        const how = { ...options, patient }
        const locks: StartLocks = new Map()
        if (isAlone && lockPolicy === 'wait' && !this.parts.dialect.isSpread)
          return this.db.alone((x) => start(x, some, locks, lockPolicy), 'start.commit', how)
        const work = async (x: Execution): Promise<readonly Started[]> => {
          if (lockPolicy === 'pass over') await this.aside.hurry(x)
          return start(x, some, locks, lockPolicy)
        }
        return this.db.transaction('start.commit', work, how)
      },
    })
  }

  async commit(transitions: readonly Transition[], options?: BatchOptions): Promise<readonly Committed[]> {
    return this.spread(
      transitions,
      ({ runId }) => runId,
      (): Committed => ({ outcome: 'refused', reason: 'not-found' }),
      (shard, some) => oneByOneIfTaken(some, (items) => this.commitQueries.commit(this.commits, shard, items, options)),
    )
  }

  async deliver(
    messages: readonly (NewMessage | NewBroadcast)[],
    options?: BatchOptions,
  ): Promise<readonly (Delivered | Busy)[]> {
    const drafts = messages.filter(isMessage)
    if (drafts.length < messages.length) {
      this.db.assertOpen()
      return this.exchange(messages, options)
    }
    return this.spread(
      drafts,
      ({ runId }) => runId,
      (): Delivered | Busy => ({ outcome: 'target-not-found' }),
      (shard, some) => this.exchange(some, options, shard),
    )
  }

  /** Puts messages of one shard into their mailboxes, if that is all there is to do; everything else goes by the rules. */
  private exchange(
    sent: readonly (NewMessage | NewBroadcast)[],
    options: BatchOptions | undefined,
    shard?: number,
  ): Promise<readonly (Delivered | Busy)[]> {
    return setAside<NewMessage | NewBroadcast, Delivered | Busy>(this.parts.dialect, {
      items: sent,
      busy,
      hasOutbound: sent.some((one) => !isMessage(one) || one.policy !== null),
      addressOf: (one) => (isMessage(one) ? one.runId : `topic ${one.topic.name}`),
      send: async (some, { lockPolicy, patient }) => {
        const how = { ...options, patient }
        const drafts = shard === undefined || lockPolicy === 'pass over' ? [] : some.filter(isMessage)
        if (shard !== undefined && drafts.length > 0) {
          const put = (x: Execution) => this.parts.deliverQueries.put(x, shard, drafts)
          const answers = await this.db.transaction('deliver.commit', put, how)
          if (answers !== null) return answers
        }
        const lockRequest = lockRequestOfSending(some)
        const exchange = (x: Execution) => this.parts.deliverQueries.exchange(x, some, lockRequest, { lockPolicy })
        return this.parts.refusedOthers.spare(this.db, lockRequest, () =>
          this.db.transaction('deliver.commit', exchange, how),
        )
      },
    })
  }

  async control(requests: readonly ControlCommand[]): Promise<readonly (ControlResult | Busy)[]> {
    return this.spread(
      requests,
      ({ runId }) => runId,
      (): ControlResult | Busy => ({ outcome: 'not-found' }),
      (shard, some) =>
        oneByOneIfTaken(some, (items) =>
          withoutBusy<ControlCommand, ControlResult | Busy>(items, busy, (spared) =>
            setAside<ControlCommand, ControlResult | Busy>(this.parts.dialect, {
              items: spared,
              busy,
              hasOutbound: true,
              addressOf: ({ runId }) => runId,
              send: (fewer, { lockPolicy, patient }) => {
                const lockRequest = new LockRequest()
                const control = (x: Execution) =>
                  this.parts.controlQueries.control(x, shard, fewer, lockRequest, { lockPolicy })
                return this.parts.refusedOthers.spare(this.db, lockRequest, () =>
                  this.db.transaction('control.commit', control, { patient }),
                )
              },
            }),
          ),
        ),
    )
  }

  async release(leases: readonly ReleasedLease[]): Promise<readonly ReleasedLease[]> {
    const answers = await this.spread<ReleasedLease, Busy | null>(
      leases,
      ({ runId }) => runId,
      () => null,
      (shard, some) =>
        withoutBusy<ReleasedLease, Busy | null>(some, busy, (spared) =>
          setAside<ReleasedLease, Busy | null>(this.parts.dialect, {
            items: spared,
            busy,
            hasOutbound: true,
            send: async (items, { lockPolicy, patient }) => {
              const lockRequest = new LockRequest()
              const release = (x: Execution) =>
                this.parts.controlQueries.release(x, shard, items, lockRequest, lockPolicy)
              await this.parts.refusedOthers.spare(this.db, lockRequest, () =>
                this.db.transaction('release.commit', release, { patient }),
              )
              return items.map(() => null)
            },
          }),
        ),
    )
    return leases.filter((_, index) => answers[index] !== null)
  }

  /** Sends the items of one shard together, and puts the answers into the order of the items. */
  private async spread<Item, Answer>(
    items: readonly Item[],
    runIdOf: (item: Item) => string,
    unknown: (item: Item) => Answer,
    send: (shard: number, items: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    this.db.assertOpen()
    // By place: the same item may come twice, and be answered otherwise the second time.
    const placed = items.map((item, place) => ({ item, place }))
    const shards = byShard(this.parts.dialect, placed, ({ item }) => runIdOf(item))
    const [only] = shards
    if (only !== undefined && only[1].length === items.length) return send(only[0], items)
    const answers = new Map<number, Answer>()
    await Promise.all(
      Array.from(shards, async ([shard, some]) => {
        const found = await send(
          shard,
          some.map(({ item }) => item),
        )
        for (const [index, { place }] of some.entries()) answers.set(place, found[index] as Answer)
      }),
    )
    return items.map((item, place) =>
      shardOfRun(this.parts.dialect, runIdOf(item)) === undefined ? unknown(item) : (answers.get(place) as Answer),
    )
  }
}

/**
 * If a unique index refuses the batch, each item gets its own transaction, so that only the conflicting one is refused; that
 * one alone is tried again, and its lookup finds the row that was first.
 */
async function oneByOneIfTaken<Item, Answer>(
  items: readonly Item[],
  send: (items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<readonly Answer[]> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await send(items)
    } catch (error) {
      const cause = isHoldfastError(error) ? error.cause : undefined
      if (!isUniqueViolation(sqlStateOf(cause)) || tries > 10) throw error
      if (items.length > 1) break
    }
  }
  const answers: Answer[] = []
  for (const item of items) answers.push(...(await oneByOneIfTaken([item], send)))
  return answers
}

/**
 * The answers for all but those whose row a policy refuses, which are answered as busy. A single item is rejected with the
 * error.
 */
async function withoutBusy<Item, Answer>(
  items: readonly Item[],
  busy: Answer,
  send: (items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<readonly Answer[]> {
  try {
    return await send(items)
  } catch (error) {
    if (items.length < 2 || !isOfOneRow(error)) throw error
  }
  const answers = new Map<number, Answer>()
  const places = items.map((_, place) => place)
  const sendSome = async (some: readonly number[]): Promise<void> => {
    const answered = await send(some.map((place) => items[place] as Item))
    for (const [index, place] of some.entries()) answers.set(place, answered[index] as Answer)
  }
  await withoutRefused(places, sendSome, () => undefined)
  return places.map((place) => (answers.has(place) ? (answers.get(place) as Answer) : busy))
}
