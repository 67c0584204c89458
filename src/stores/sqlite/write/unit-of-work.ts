// The tables as the rules of the core read and write them, inside the transaction that is open. Every row is read when it is
// asked for and written at once, so that the rules always see their own writes; no other process writes meanwhile.

import { bug } from '../../../core/errors/error.ts'
import {
  afterOthers,
  defaultPageLimits,
  type Chore,
  type PageLimits,
  type WaitPosition,
} from '../../../core/model/chore.ts'
import type { Entry } from '../../../core/model/entry.ts'
import { policyColumns } from '../../../core/rows/run-row.ts'
import type { ChangeWork } from '../../../core/rules/change.ts'
import { firstUnread, firstWaiters } from '../../../core/rules/messages/exchange.ts'
import type {
  UnitOfWork,
  KeptBroadcast,
  TopicUse,
  UnreadPage,
  WaiterPage,
  WaitRow,
} from '../../../core/rules/messages/unit-of-work.ts'
import {
  deliveryOutcomeOf,
  type Fate,
  type Message,
  type MessageDraft,
  type DeliveryOutcome,
} from '../../../core/model/message.ts'
import type { Rewrite } from '../../../core/rules/rewrite.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Broadcast, Delivery } from '../../../core/model/topic.ts'
import type { Batch } from './batch.ts'
import { beginTopicSql, deleteTopic, lookAtTopicSql, moveTopicSql, positionOf, useOf } from './topics.ts'
import { readRun } from '../read/read.ts'
import { rewriteRun } from './rewrite.ts'
import { broadcastOf, choreOf, entryOf, messageOf, policyText, waitOf } from '../schema/rows.ts'

// The indexes are named for Turso, which does not find all of them by itself; SQLite would.

/** The first unread messages of a run, after a position. */
export const unreadSql = `
  select * from messages indexed by messages_unread
  where shard = 0 and run_id = ? and taken_by is null and position > ? order by position limit ?`

/** Whether a message of a name came since its holder looked. */
export const newMessageSql = `
  select 1 from messages indexed by messages_named
  where shard = 0 and run_id = ? and name = ? and taken_by is null and position > ? limit 1`

/** The longest waiting ones on a run, from a place on. */
export const waitsSql = `
  select * from waits indexed by waits_on_run
  where shard = 0 and kind = 'run' and target = ? and delivery is null
    and opened_at >= ? and (opened_at > ? or run_id >= ?)
  order by opened_at, run_id, effect limit ?`

/** The longest waiting ones after a place. */
export const waitersSql = `
  select * from waits indexed by waits_longest
  where shard = 0 and kind = 'topic' and target = ? and delivery is not null and delivery = ?
    and opened_at >= ? and (opened_at > ? or run_id > ?)
  order by opened_at, run_id limit ?`

/** The columns that decide whether a run may still get a broadcast: without the payload, which may be long. */
export const broadcastAtSql = `
  select topic, position, id, delivery, '' as data, null as policy, at, expires_at, taken_by, delivered_to
  from broadcasts indexed by sqlite_autoindex_broadcasts_1 where shard = 0 and topic = ? and position = ?`

/** The position of the first unread message of a run. */
export const oldestSql = `
  select position from messages indexed by messages_unread
  where shard = 0 and run_id = ? and taken_by is null order by position limit 1`

/** How many unread messages a run has, counted up to a bound. */
export const depthSql = `
  select count(*) as unread from (
    select 1 from messages indexed by messages_unread where shard = 0 and run_id = ? and taken_by is null limit ?)`

export const subscriptionSql = `
  select 1 from waits where shard = 0 and kind = 'topic' and target = ? and run_id = ? and effect = 'notify'`

/** The runs that wait on a topic, up to a bound. */
export const subscribersSql = `
  select count(*) as waiting from (
    select 1 from waits indexed by waits_longest
    where shard = 0 and kind = 'topic' and target = ? and delivery is not null limit ?)`

/** The same of those that live. Runs that end while they wait leave their waits behind until a broadcast meets them. */
export const liveSubscribersSql = `
  select count(*) as waiting from (
    select 1 from waits as wait indexed by waits_longest
    where wait.shard = 0 and wait.kind = 'topic' and wait.target = ? and wait.delivery is not null and exists (
      select 1 from runs as run
      where run.shard = 0 and run.id = wait.run_id and run.ended_at is null and run.deleted_at is null) limit ?)`

export const broadcastsFromSql = `
  select * from broadcasts where shard = 0 and topic = ? and position >= ? and delivery = 'all' order by position limit ?`

/** The longest waiting ones that are late, after a place. */
export const lateSql = `
  select * from waits indexed by waits_late
  where shard = 0 and target = ? and missed is not null and opened_at >= ? and (opened_at > ? or run_id > ?)
  order by opened_at, run_id limit ?`

export const choreSql = 'select * from chores where shard = 0 and kind = ? and target = ?'

const setChoreSql = `
  insert into chores (shard, kind, target, position, after_opened_at, after_run, due) values (0, ?, ?, ?, ?, ?, ?)
  on conflict (shard, kind, target) do update set position = excluded.position,
    after_opened_at = excluded.after_opened_at, after_run = excluded.after_run, due = excluded.due`

const stillThere = 'taken_by is null and (expires_at is null or expires_at > ?)'

export const queueSql = `
  select * from broadcasts indexed by broadcasts_open
  where shard = 0 and topic = ? and delivery = 'one' and ${stillThere} order by position limit 1`

export const retainedSql = `
  select * from broadcasts
  where shard = 0 and topic = ? and delivery = 'all' and ${stillThere} order by position`

/** At most this many at once: the rest goes with the next broadcast. */
const forgottenAtOnce = 100

const forgetSql = (index: string, condition: string): string => `
  delete from broadcasts where rowid in (
    select rowid from broadcasts indexed by ${index}
    where shard = 0 and topic = ? and at < ? and ${condition} limit ${forgottenAtOnce})`

/** The broadcasts that no run can get any more, each along its index: those that are still open may be many, and old. */
export const forgetSentToAllSql = forgetSql('broadcasts_to_all', `delivery = 'all'`)
export const forgetTakenSql = forgetSql('broadcasts_taken', `delivery = 'one' and taken_by is not null`)
export const forgetExpiredSql = forgetSql(
  'broadcasts_expiry',
  'expires_at is not null and expires_at <= ? and taken_by is null',
)

export const broadcastSql = `
  select * from broadcasts indexed by broadcasts_id where shard = 0 and topic = ? and id = ?`

/** A page of a journal by its key: the entries with which the run has sent messages. */
export const sentSql = `
  select * from journal where shard = 0 and run_id = ? and seq >= ? and seq <= ? and kind in ('signal-sent', 'broadcast-sent')
  order by seq`

const putSql = `
  insert into messages (shard, run_id, position, id, kind, name, data, on_unread, delivery, retain_ms, at, outcome)
  values (0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** Before every run that waits. */
const beforeAll: WaitPosition = { openedAt: Number.MIN_SAFE_INTEGER, runId: '' }

export class SqliteUnitOfWork implements ChangeWork {
  readonly batch: Batch

  constructor(batch: Batch) {
    this.batch = batch
  }

  get now(): number {
    return this.batch.now
  }

  /** The more was written for others before, the less an end does by itself. */
  get pages(): PageLimits {
    return afterOthers(defaultPageLimits, this.batch.forOthers)
  }

  run(id: string): Run | undefined {
    return readRun(this.batch.db, id)
  }

  /** The writer has the whole file. */
  canHave(): boolean {
    return true
  }

  canHaveTopic(): boolean {
    return true
  }

  sentBetween(runId: string, from: number, to: number): readonly Entry[] {
    return this.batch.db.all(sentSql, [runId, from, to]).map(entryOf)
  }

  lastEntry({ id, seq }: Run): ReturnType<UnitOfWork['lastEntry']> {
    const sql = 'select * from journal where shard = 0 and run_id = ? and seq = ?'
    const row = this.batch.gathered(id, seq) ?? this.batch.db.get(sql, [id, seq])
    if (row === undefined) throw bug('A run has no last entry', { runId: id, seq })
    return entryOf(row)
  }

  unread(runId: string, after: number, most: number): UnreadPage {
    const messages = this.batch.db.all(unreadSql, [runId, after, most + 1]).map(messageOf)
    return firstUnread(messages, most)
  }

  hasMessage(runId: string, id: string): boolean {
    const sql = 'select 1 from messages indexed by messages_id where shard = 0 and run_id = ? and id = ?'
    return this.batch.db.get(sql, [runId, id]) !== undefined
  }

  waitsOnRun(runId: string, from: WaitPosition | null, most: number): WaiterPage {
    const { openedAt, runId: first } = from ?? beforeAll
    const values = [runId, openedAt, openedAt, first, most + 1]
    return firstWaiters(this.batch.db.all(waitsSql, values).map(waitOf), most)
  }

  waitersOf(topic: string, delivery: Delivery, after: WaitPosition | null, most: number): WaiterPage {
    const { openedAt, runId } = after ?? beforeAll
    const values = [topic, delivery, openedAt, openedAt, runId, most + 1]
    return firstWaiters(this.batch.db.all(waitersSql, values).map(waitOf), most)
  }

  chore(kind: Chore['kind'], target: string): Chore | undefined {
    const row = this.batch.db.get(choreSql, [kind, target])
    return row === undefined ? undefined : choreOf(row)
  }

  topicPosition(topic: string): number {
    return positionOf(this.batch.db, topic)
  }

  topicUse(topic: string, most: number): TopicUse | undefined {
    return useOf(this.batch.db, topic, most)
  }

  deleteTopic(topic: string): void {
    deleteTopic(this.batch.db, topic)
  }

  lookAtTopic(topic: string, at: number): void {
    this.batch.db.run(lookAtTopicSql, [at, topic])
  }

  broadcast(topic: string, id: string): Broadcast | undefined {
    const row = this.batch.db.get(broadcastSql, [topic, id])
    return row === undefined ? undefined : broadcastOf(row)
  }

  broadcastAt(topic: string, position: number): KeptBroadcast | undefined {
    const row = this.batch.db.get(broadcastAtSql, [topic, position])
    return row === undefined ? undefined : broadcastOf(row)
  }

  isCrowded(topic: string, runId: string, most: number): boolean {
    const { db } = this.batch
    if (db.crowds.admits(topic, most)) return false
    const isAmong = db.get(subscriptionSql, [topic, runId]) !== undefined
    const count = (sql: string): number => Number(db.get(sql, [topic, most])?.['waiting'] ?? 0)
    const all = count(subscribersSql)
    return !isAmong && db.crowds.isFull(topic, most, all < most ? all : count(liveSubscribersSql))
  }

  /** How many messages a run has not read, counted up to that many; 0 if they cannot be so many. */
  depth({ id, seq, inbox }: Run, most: number): number {
    const { db, depths } = this.batch
    const known = depths.get(id)
    // Nothing leaves a mailbox without an entry: since then, all that came is unread.
    if (known?.seq === seq && known.most === most) return known.unread + inbox - known.inbox
    // Mostly the oldest one is so near that the others behind it are fewer.
    const oldest = db.get(oldestSql, [id])?.['position'] as number | undefined
    if (oldest === undefined || inbox - oldest + 1 < most) return 0
    const unread = Number(db.get(depthSql, [id, most])?.['unread'])
    depths.set(id, { seq, inbox, most, unread })
    return unread
  }

  lateOf(topic: string, after: WaitPosition | null, most: number): WaiterPage {
    const { openedAt, runId } = after ?? beforeAll
    const values = [topic, openedAt, openedAt, runId, most + 1]
    return firstWaiters(this.batch.db.all(lateSql, values).map(waitOf), most)
  }

  broadcastsFrom(topic: string, position: number, most: number): readonly Broadcast[] {
    return this.batch.db.all(broadcastsFromSql, [topic, position, most]).map(broadcastOf)
  }

  /** Only the first of a queue, which may be long: one new waiter gets no more. */
  backlog(topic: string, delivery: Delivery): readonly Broadcast[] {
    const sql = delivery === 'one' ? queueSql : retainedSql
    return this.batch.db.all(sql, [topic, this.now]).map(broadcastOf)
  }

  put(draft: MessageDraft): void {
    const run = this.run(draft.runId)
    if (run === undefined) throw bug('The exchange names a run that does not exist', { runId: draft.runId })
    this.batch.forOthers += 1
    this.receive(draft, run)
  }

  /** Puts a message into the mailbox of a run, as it is now, and returns the answer to its sender. */
  receive({ id, kind, name, data, policy }: MessageDraft, run: Run): DeliveryOutcome {
    const { batch, now } = this
    const { db } = batch
    const position = run.inbox + 1
    const outcome = deliveryOutcomeOf(run, name)
    const { on_unread, delivery, retain_ms } = policyColumns(policy)
    db.run(putSql, [run.id, position, id, kind, name, data, on_unread, delivery, retain_ms, now, outcome])
    if (outcome === 'delivered' && run.deletedAt === null) {
      // A run that is due already keeps its place: one that is written to often must not be claimed last.
      const due = run.due === null ? now : Math.min(run.due, now)
      const sql = `update runs set inbox = ?, readiness = 'ready', due = ? where shard = 0 and id = ?`
      db.run(sql, [position, due, run.id])
      batch.ready(run.type)
    } else {
      db.run('update runs set inbox = ? where shard = 0 and id = ?', [position, run.id])
      if (run.session !== null) batch.messageArrived(run.id)
    }
    return outcome
  }

  settle({ runId, position }: Message, fate: Fate): void {
    const sql = `
      update messages set taken_by = (select seq from runs where shard = 0 and id = ?), fate = ?
      where shard = 0 and run_id = ? and position = ?`
    this.batch.db.run(sql, [runId, fate, runId, position])
    this.batch.forOthers += 1
  }

  rewrite(before: Run, write: Rewrite): void {
    this.batch.forOthers += 1
    this.write(before, write, null)
  }

  write(before: Run, write: Rewrite, transition: string | null): void {
    rewriteRun(this.batch, before, write, transition)
  }

  markWatched({ id, watched }: Run): void {
    if (!watched) this.batch.db.run('update runs set watched = 1 where shard = 0 and id = ?', [id])
  }

  addWait({ kind, target, runId, effect, delivery, openedAt, since }: WaitRow): void {
    const sql = `
      insert into waits (shard, kind, target, run_id, effect, delivery, opened_at, since) values (0, ?, ?, ?, ?, ?, ?, ?)
      on conflict (shard, kind, target, run_id, effect) do nothing`
    this.batch.db.run(sql, [kind, target, runId, effect, delivery, openedAt, since])
    // A topic begins when a run first waits on it, or something is first sent to it.
    if (kind === 'topic') this.batch.db.run(beginTopicSql, [target, this.now + this.pages.topicRestMs])
  }

  setMissed({ kind, target, runId, effect }: WaitRow, position: number | null): void {
    const sql = 'update waits set missed = ? where shard = 0 and kind = ? and target = ? and run_id = ? and effect = ?'
    this.batch.db.run(sql, [position, kind, target, runId, effect])
  }

  deleteWait({ kind, target, runId, effect }: WaitRow): void {
    const sql = 'delete from waits where shard = 0 and kind = ? and target = ? and run_id = ? and effect = ?'
    this.batch.db.run(sql, [kind, target, runId, effect])
  }

  addBroadcast(broadcast: Broadcast, retainMs: number): void {
    const { topic, position, id, delivery, data, policy, at, expiresAt, takenBy, deliveredTo } = broadcast
    const { db } = this.batch
    const into =
      'broadcasts (shard, topic, position, id, delivery, data, policy, at, expires_at, taken_by, delivered_to)'
    const values = [topic, position, id, delivery, data, policyText(policy), at, expiresAt, takenBy, deliveredTo]
    db.insert(into, values.length, values)
    db.run(moveTopicSql, [topic, position, retainMs, this.now + this.pages.topicRestMs])
  }

  takeBroadcast({ topic, position }: Broadcast, runId: string): void {
    const sql = 'update broadcasts set taken_by = ? where shard = 0 and topic = ? and position = ?'
    this.batch.db.run(sql, [runId, topic, position])
  }

  addDelivered({ topic, position }: Broadcast, runs: number): void {
    const sql = 'update broadcasts set delivered_to = delivered_to + ? where shard = 0 and topic = ? and position = ?'
    this.batch.db.run(sql, [runs, topic, position])
  }

  setChore({ kind, target, position, after }: Chore, due = this.now): void {
    const { batch } = this
    batch.db.run(setChoreSql, [kind, target, position, after?.openedAt ?? null, after?.runId ?? null, due])
    batch.chore()
  }

  deleteChore({ kind, target }: Chore): void {
    this.batch.db.run('delete from chores where shard = 0 and kind = ? and target = ?', [kind, target])
  }

  forgetBroadcasts(topic: string, before: number): void {
    const { db } = this.batch
    db.run(forgetSentToAllSql, [topic, before])
    db.run(forgetTakenSql, [topic, before])
    db.run(forgetExpiredSql, [topic, before, this.now])
  }
}
