// The batches that a store takes: each item goes to its shard, those of one shard together in one transaction, and what
// somebody else has locked is answered as busy without the others waiting for it.

import { bug, isHoldfastError, isOfOneRow } from '../../core/error.ts'
import type { Transition } from '../../core/transition.ts'
import type {
  BatchOptions,
  Busy,
  Committed,
  Delivered,
  GivenBack,
  NewBroadcast,
  NewMessage,
  NewRun,
  StartBusy,
  Started,
  Steered,
  SteerRequest,
} from '../../store.ts'
import type { Committing } from './committing.ts'
import type { Database } from './database.ts'
import { isLetter, wantsOfSending, type Delivering } from './delivering.ts'
import type { Execution, Transactions } from './execution.ts'
import { startInOrder, type StartingParts } from './ordered-starting.ts'
import type { RefusedOthers } from './refused-others.ts'
import { setAside, settingAside, type SettingAside } from './set-aside.ts'
import { byShard, shardOfRun } from './shards.ts'
import { sparing } from './sparing.ts'
import { isUniqueViolation, sqlStateOf } from './sql-state.ts'
import type { Steering } from './steering.ts'
import { Wants } from './wants.ts'

export interface BatchParts extends StartingParts {
  readonly delivering: Delivering
  readonly steering: Steering
  readonly refusedOthers: RefusedOthers
}

const busy: Busy = { outcome: 'busy' }

export class Batches {
  private readonly parts: BatchParts
  private readonly db: Database
  /** The same, with a connection that is kept for commits. */
  private readonly commits: Transactions
  private readonly committing: Committing
  private readonly aside: SettingAside

  constructor(parts: BatchParts, db: Database, committing: Committing) {
    this.parts = parts
    this.db = db
    this.commits = db.reserved('commit')
    this.committing = committing
    this.aside = settingAside(parts.dialect, parts.refusedOthers)
  }

  async start(runs: readonly NewRun[], options?: BatchOptions): Promise<readonly (Started | StartBusy)[]> {
    if (this.parts.dialect.shards > 1 && runs.some(({ idempotencyKey }) => idempotencyKey !== null)) {
      this.db.assertOpen()
      return this.startAside(runs, options, (x, some) => startInOrder(this.parts, x, some))
    }
    return this.spread(
      runs,
      ({ id }) => id,
      ({ id, shard }) => {
        throw bug('A run is started in a shard that its id does not name', { runId: id, shard })
      },
      (shard, some) => this.startAside(some, options, (x, few) => this.parts.starting.start(x, shard, few), true),
    )
  }

  /** What waits for nobody is one statement: it needs no transaction. */
  private startAside(
    runs: readonly NewRun[],
    options: BatchOptions | undefined,
    start: (x: Execution, runs: readonly NewRun[]) => Promise<readonly Started[]>,
    isAlone = false,
  ): Promise<readonly (Started | StartBusy)[]> {
    return setAside<NewRun, Started | StartBusy>(this.parts.dialect, {
      items: runs,
      busy: { created: false, taken: 'busy', run: null },
      send: (some, { way, patient }) => {
        const how = { ...options, patient }
        if (isAlone && way === 'wait') return this.db.alone((x) => start(x, some), 'start.commit', how)
        const work = async (x: Execution): Promise<readonly Started[]> => {
          if (way === 'pass over') await this.aside.hurry(x)
          return start(x, some)
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
      (shard, some) => oneByOneIfTaken(some, (few) => this.committing.commit(this.commits, shard, few, options)),
    )
  }

  async deliver(
    messages: readonly (NewMessage | NewBroadcast)[],
    options?: BatchOptions,
  ): Promise<readonly (Delivered | Busy)[]> {
    const letters = messages.filter(isLetter)
    if (letters.length < messages.length) {
      this.db.assertOpen()
      return this.exchange(messages, options)
    }
    return this.spread(
      letters,
      ({ runId }) => runId,
      (): Delivered | Busy => ({ outcome: 'target-not-found' }),
      (shard, some) => this.exchange(some, options, shard),
    )
  }

  /** Puts letters of one shard into their mailboxes, if that is all there is to do; everything else goes by the rules. */
  private exchange(
    sent: readonly (NewMessage | NewBroadcast)[],
    options: BatchOptions | undefined,
    shard?: number,
  ): Promise<readonly (Delivered | Busy)[]> {
    return setAside<NewMessage | NewBroadcast, Delivered | Busy>(this.parts.dialect, {
      items: sent,
      busy,
      reachesOthers: sent.some((one) => !isLetter(one) || one.policy !== null),
      addressOf: (one) => (isLetter(one) ? one.runId : `topic ${one.topic.name}`),
      send: async (some, { way, patient }) => {
        const how = { ...options, patient }
        const letters = shard === undefined || way === 'pass over' ? [] : some.filter(isLetter)
        if (shard !== undefined && letters.length > 0) {
          const put = (x: Execution) => this.parts.delivering.put(x, shard, letters)
          const answers = await this.db.transaction('deliver.commit', put, how)
          if (answers !== null) return answers
        }
        const wants = wantsOfSending(some)
        const exchange = (x: Execution) => this.parts.delivering.exchange(x, some, wants, { way })
        return this.parts.refusedOthers.spare(this.db, wants, () =>
          this.db.transaction('deliver.commit', exchange, how),
        )
      },
    })
  }

  async steer(requests: readonly SteerRequest[]): Promise<readonly (Steered | Busy)[]> {
    return this.spread(
      requests,
      ({ runId }) => runId,
      (): Steered | Busy => ({ outcome: 'not-found' }),
      (shard, some) =>
        oneByOneIfTaken(some, (few) =>
          sparingSome<SteerRequest, Steered | Busy>(few, busy, (spared) =>
            setAside<SteerRequest, Steered | Busy>(this.parts.dialect, {
              items: spared,
              busy,
              reachesOthers: true,
              addressOf: ({ runId }) => runId,
              send: (fewer, { way, patient }) => {
                const wants = new Wants()
                const steer = (x: Execution) => this.parts.steering.steer(x, shard, fewer, wants, { way })
                return this.parts.refusedOthers.spare(this.db, wants, () =>
                  this.db.transaction('steer.commit', steer, { patient }),
                )
              },
            }),
          ),
        ),
    )
  }

  async release(leases: readonly GivenBack[]): Promise<readonly GivenBack[]> {
    const answers = await this.spread<GivenBack, Busy | null>(
      leases,
      ({ runId }) => runId,
      () => null,
      (shard, some) =>
        sparingSome<GivenBack, Busy | null>(some, busy, (spared) =>
          setAside<GivenBack, Busy | null>(this.parts.dialect, {
            items: spared,
            busy,
            reachesOthers: true,
            send: async (few, { way, patient }) => {
              const wants = new Wants()
              const release = (x: Execution) => this.parts.steering.release(x, shard, few, wants, way)
              await this.parts.refusedOthers.spare(this.db, wants, () =>
                this.db.transaction('release.commit', release, { patient }),
              )
              return few.map(() => null)
            },
          }),
        ),
    )
    return leases.filter((_, index) => answers[index] !== null)
  }

  /** Sends what belongs to one shard together, and puts the answers into the order of what was asked. */
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
 * If a unique index refuses the whole, each gets its own transaction, so that only the one is refused which is in the way;
 * that one alone is tried again, and its look will tell who was before it.
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

/** The answers for all but those whose row a policy refuses, which are answered as busy. One that is alone is told of it. */
async function sparingSome<Item, Answer>(
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
    const told = await send(some.map((place) => items[place] as Item))
    for (const [index, place] of some.entries()) answers.set(place, told[index] as Answer)
  }
  await sparing(places, sendSome, () => undefined)
  return places.map((place) => (answers.has(place) ? (answers.get(place) as Answer) : busy))
}
