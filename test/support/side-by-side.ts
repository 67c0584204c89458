// Two stores that everything is done to, in the same order and at the same time: the memory store, which is the oracle, and
// another. Their answers, and all that can be read of them afterwards, must be equal.

import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { isHoldfastError } from '../../src/core/errors/error.ts'
import type {
  Change,
  Claimed,
  ClaimRequest,
  Rescued,
  RescueRequest,
  Started,
  Store,
  StoreAdmin,
} from '../../src/store.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Operation, Oracle } from './operation.ts'
import { keys, kinds } from './run-filter.ts'
import type { Rows, Standing } from './outcomes.ts'

type AnyStore = Store & StoreAdmin

export interface TestClock {
  now(): number
}

/** Whether the entries of one call come in the feed as the oracle has them, or only those of each run do. */
export type FeedOrder = 'exact' | 'by run'

export interface Applied {
  /** The oracle's answer. */
  readonly answer: unknown
  readonly rows: Rows
}

const all = 100_000
const farMs = 10_000
const nobody: Rows = { before: () => undefined, after: () => undefined }

export class SideBySide {
  private time = 1_893_456_000_000
  private isClosed = false
  private readonly oracle: AnyStore
  private readonly other: AnyStore
  /** Runs of different shards have no order among them. */
  private readonly isSharded: boolean
  private readonly feedOrder: FeedOrder
  private readonly standings = new Map<string, Standing>()
  private readonly runs = new Map<string, Run>()
  /** The ids of what lies in the oracle's mailboxes. */
  private readonly messages = new Map<string, readonly string[]>()
  /** What the feed of each has listed, in its order. */
  private readonly feeds: readonly [Change[], Change[]] = [[], []]

  private constructor(oracle: AnyStore, other: AnyStore, feedOrder: FeedOrder) {
    this.oracle = oracle
    this.other = other
    this.feedOrder = feedOrder
    this.isSharded = (other.capabilities.shards ?? 1) > 1
  }

  static async open(
    make: (clock: TestClock) => Promise<AnyStore>,
    feedOrder: FeedOrder = 'exact',
  ): Promise<SideBySide> {
    const clock: TestClock = { now: () => pair.time }
    const other = await make(clock)
    const pair: SideBySide = new SideBySide(new MemoryStore({ clock }), other, feedOrder)
    await other.migrate()
    return pair
  }

  get view(): Oracle {
    const messageNameOf = (runId: string): readonly string[] => this.messages.get(runId) ?? []
    return { rows: this.runs, feedLength: this.feeds[0].length, messageNameOf, now: this.time }
  }

  /** Does it to both and compares the answers, the feed, and every run that it may have touched. */
  async apply(operation: Operation): Promise<Applied> {
    if (operation.method === 'advance') {
      this.time += operation.ms
      return { answer: null, rows: nobody }
    }
    const [oracle, other] = this.feeds
    const expected = this.settled(await perform(this.oracle, operation, oracle))
    const answered = this.settled(await perform(this.other, operation, other))
    if (this.isSharded && operation.method === 'claim') this.same('the answer', byIds(answered), byIds(expected))
    else this.same('the answer', answered, expected)
    if (this.isClosed) return { answer: expected, rows: nobody }
    const fed = await this.compareFeeds(this.feedOrder === 'by run' || operation.method === 'rescue')
    // A call does not name every run that it moves, but each of them has an entry, or its row is another one.
    const touched = distinct([...touchedBy(operation, expected), ...fed, ...(await this.moved())])
    const before = new Map(touched.map((id) => [id, this.standings.get(id)]))
    await this.compareRuns(touched)
    const answer = operation.method === 'rescue' ? { ...(expected as Rescued), touched } : expected
    return { answer, rows: { before: (id) => before.get(id), after: (id) => this.standings.get(id) } }
  }

  /** Compares everything that can be read of the runs. */
  async compareAll(): Promise<void> {
    const expected = this.settled(await snapshot(this.oracle))
    this.same('everything', this.settled(await snapshot(this.other)), expected)
  }

  /** Compares the feeds, from their beginning, with what they listed on the way. */
  async compareWholeFeeds(): Promise<void> {
    for (const [index, store] of [this.oracle, this.other].entries()) {
      this.same('the feed', listed(await store.changes(0, all)), listed(this.feeds[index] ?? []))
    }
  }

  /** Closes both. What is done afterwards must be refused by both. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.oracle.close()
    await this.other.close()
  }

  /** Compares what is new in the feeds; answers whose entries that are. */
  private async compareFeeds(isUnordered: boolean): Promise<readonly string[]> {
    const [oracle, other] = this.feeds
    const expected = await this.news(this.oracle, oracle)
    const fed = await this.news(this.other, other)
    this.same(
      'positions in the feed',
      fed.map(({ position }) => position),
      expected.map(({ position }) => position),
    )
    // In which order a rescue takes runs is a store's own affair. No run goes backwards: the sort is stable.
    const order = (changes: readonly Change[]): readonly unknown[] =>
      isUnordered ? changes.map(({ runId, entry }) => ({ runId, entry })).toSorted(byRun) : changes
    this.same('the feed', order(fed), order(expected))
    return distinct(expected.map(({ runId }) => runId))
  }

  private async news(store: AnyStore, feed: Change[]): Promise<readonly Change[]> {
    const changes = await store.changes(feed.length, all)
    feed.push(...changes)
    return changes
  }

  /** Known runs whose rows the oracle has changed. */
  private async moved(): Promise<readonly string[]> {
    const known = [...this.runs.values()]
    const rows = await this.oracle.get(known.map(({ id }) => id))
    return known.filter((run, index) => standingOf(run) !== standingOf(rows[index])).map(({ id }) => id)
  }

  private async compareRuns(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const requests = ids.map((runId) => ({ runId, after: this.standings.get(runId)?.run.seq ?? 0, limit: all }))
    const read = async (store: AnyStore) => ({ rows: await store.get(ids), loaded: await store.load(requests) })
    const raw = await read(this.oracle)
    const expected = this.settled(raw)
    this.same('the runs that it touched', this.settled(await read(this.other)), expected)
    raw.rows.forEach((run, index) => {
      if (run === undefined) return
      this.runs.set(run.id, run)
      const messages = raw.loaded[index]?.messages ?? []
      this.messages.set(
        run.id,
        messages.map(({ id }) => id),
      )
      this.standings.set(run.id, { run, messages: messages.length })
    })
  }

  /** When a timed run that has come due is called ready is a store's own affair. */
  private settled(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item) => this.settled(item))
    if (!('readiness' in value)) {
      return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.settled(member)]))
    }
    const { readiness, due } = value as Run
    return readiness === 'timed' && due !== null && due <= this.time ? { ...value, readiness: 'ready' } : value
  }

  private same(what: string, actual: unknown, expected: unknown): void {
    // The quick way: the long one is for showing the difference.
    if (!isDeepStrictEqual(actual, expected)) assert.deepEqual({ [what]: actual }, { [what]: expected })
  }
}

/** Does it, and answers what it answered, or with what it was rejected. */
async function perform(
  store: AnyStore,
  operation: Exclude<Operation, { readonly method: 'advance' }>,
  feed: readonly Change[],
): Promise<unknown> {
  try {
    switch (operation.method) {
      case 'start':
        return await store.start(operation.runs)
      case 'commit':
        return await store.commit(operation.transitions)
      case 'deliver':
        return await store.deliver(operation.messages)
      case 'control':
      case 'load':
        return operation.method === 'control'
          ? await store.control(operation.requests)
          : await store.load(operation.requests, operation.mostBytes)
      case 'claim':
        return await claimed(store, operation.request)
      case 'beat':
        return await store.beat(operation.request)
      case 'rescue':
        return await rescueAll(store, operation.request)
      case 'release':
        return await store.release(operation.leases)
      case 'get':
        return await store.get(operation.ids)
      case 'changes': {
        const { after, limit } = operation
        const changes = await store.changes(after, limit)
        // The order of what one rescue wrote may be another than the oracle's, but each must stand by its own.
        assert.deepEqual(
          listed(changes),
          listed(feed.slice(after, after + limit)),
          'a page of the feed is what the whole feed has there',
        )
        return changes.map(({ position }) => position)
      }
      case 'find':
        return await store.find(operation.filter, operation.page)
      case 'count':
        return await store.count(operation.filter, operation.atMost)
      case 'deadLetters':
        return await store.deadLetters(operation.filter, operation.page)
      case 'settleDeadLetter':
        return await store.settleDeadLetter(operation.letter, operation.fate)
    }
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    return { error: error.code }
  }
}

/** Which runs a rescue begins with is a store's own affair, but not what all of them together make of everything. */
async function rescueAll(store: AnyStore, request: RescueRequest): Promise<unknown> {
  let [sessionsEnded, rescued] = [0, await store.rescue(request)]
  const takenOver = [...rescued.takenOver]
  const ended = [...rescued.ended]
  const paused = [...rescued.paused]
  for (sessionsEnded += rescued.sessionsEnded; rescued.more; sessionsEnded += rescued.sessionsEnded) {
    rescued = await store.rescue(request)
    takenOver.push(...rescued.takenOver)
    ended.push(...rescued.ended)
    paused.push(...rescued.paused)
  }
  const { suspects, next, now } = rescued
  const taken = { takenOver: takenOver.sort(byRun), ended: ended.sort(byRun), paused: paused.sort() }
  return { sessionsEnded, ...taken, suspects, next, now }
}

function touchedBy(operation: Operation, answer: unknown): readonly string[] {
  const isRefused = typeof answer === 'object' && answer !== null && 'error' in answer
  switch (operation.method) {
    case 'start': {
      const obstacles = isRefused ? [] : (answer as readonly Started[]).map(({ run }) => run.id)
      return distinct([...operation.runs.map(({ id }) => id), ...obstacles])
    }
    case 'claim':
      return (answer as { readonly runs: readonly Run[] }).runs.map(({ id }) => id)
    case 'commit':
      return distinct(operation.transitions.map(({ runId }) => runId))
    case 'deliver':
      return distinct(operation.messages.flatMap((one) => ('topic' in one ? [] : [one.runId])))
    case 'control':
      return distinct(operation.requests.map(({ runId }) => runId))
    case 'beat':
      return distinct((operation.request.held ?? []).map(({ runId }) => runId))
    case 'release':
      return distinct(operation.leases.map(({ runId }) => runId))
    default:
      return []
  }
}

/** What others can change of a row. */
function standingOf(run: Run | undefined): string {
  if (run === undefined) return ''
  const { seq, inbox, watched, status, session, token, due, deadline, deletedAt } = run
  return [seq, inbox, watched, status, session, token, due, deadline, deletedAt].join(' ')
}

/** What never changes of it. The type and version are those that its run has now, which may have gone on as another workflow. */
function listed(changes: readonly Change[]): readonly Omit<Change, 'type' | 'version' | 'key'>[] {
  return changes.map(({ position, runId, entry }) => ({ position, runId, entry }))
}

function distinct(ids: readonly string[]): readonly string[] {
  return [...new Set(ids)]
}

/** All that a store holds, and what people find in it. */
async function snapshot(store: AnyStore): Promise<unknown> {
  const runs = await store.find({}, { limit: all })
  const removed = await store.find({ deleted: true }, { limit: all })
  const ids = [...runs, ...removed].map(({ id }) => id)
  const loaded = await store.load(ids.map((runId) => ({ runId, after: 0, limit: all })))
  const filters = [...kinds, ...keys.map((key) => ({ key }))].map((one) =>
    'type' in one ? { types: [one.type], version: one.version } : one,
  )
  const found = []
  for (const filter of filters) {
    const page = await store.find(filter, { limit: all })
    found.push([page.map(({ id }) => id), await store.count(filter, all)])
  }
  const dead = await store.deadLetters({}, { limit: all })
  return { runs, removed, loaded, found, dead }
}

/** Without the journals that a store may hand over: the oracle has none at hand. */
async function claimed(store: AnyStore, request: ClaimRequest): Promise<Omit<Claimed, 'fresh'>> {
  const { runs, more, nextDue, now } = await store.claim(request)
  // What is far away a store need not look for: Postgres does only while that is cheap, which depends on the machine.
  const isFar = nextDue !== null && nextDue > now + farMs
  return { runs, more, nextDue: isFar ? null : nextDue, now }
}

/** What was claimed, in the order of ids. */
function byIds(answer: unknown): unknown {
  const claimed = answer as Claimed | { readonly error: string }
  return 'runs' in claimed ? { ...claimed, runs: claimed.runs.toSorted((a, b) => (a.id < b.id ? -1 : 1)) } : claimed
}

function byRun(a: { readonly runId: string }, b: { readonly runId: string }): number {
  return a.runId < b.runId ? -1 : a.runId === b.runId ? 0 : 1
}
