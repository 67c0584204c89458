// The rows of the memory store, as the rules of the core read and write them. Nothing comes in between here, and so the store has
// one of these for all its calls: each says what time it is.

import type { Chore, PageLimits, WaitPosition } from '../../core/model/chore.ts'
import type { Entry } from '../../core/model/entry.ts'
import type { ChangeWork } from '../../core/rules/change.ts'
import type { DeliveryWork, NewMessage } from '../../core/rules/messages/deliver.ts'
import { firstUnread, firstWaiters } from '../../core/rules/messages/exchange.ts'
import type { TopicUse, UnitOfWork, UnreadPage, WaiterPage, WaitRow } from '../../core/rules/messages/unit-of-work.ts'
import {
  isSending,
  deliveryOutcomeOf,
  type Fate,
  type Message,
  type MessageDraft,
  type DeliveryOutcome,
} from '../../core/model/message.ts'
import type { Rewrite } from '../../core/rules/rewrite.ts'
import { isTerminal, type Run } from '../../core/model/run.ts'
import type { Broadcast, Delivery } from '../../core/model/topic.ts'
import { bug } from '../../core/errors/error.ts'
import type { Row } from './tables/row.ts'
import type { Tables } from './tables/tables.ts'

export class MemoryUnitOfWork implements ChangeWork, DeliveryWork {
  readonly tables: Tables
  now = 0

  constructor(tables: Tables) {
    this.tables = tables
  }

  /** For a call that takes place now. */
  at(now: number): this {
    this.now = now
    return this
  }

  run(id: string): Run | undefined {
    return this.tables.rows.get(id)?.view()
  }

  canHave(): boolean {
    return true
  }

  canHaveTopic(): boolean {
    return true
  }

  sentBetween(runId: string, from: number, to: number): readonly Entry[] {
    return this.row(runId)
      .entries.slice(from - 1, to)
      .filter(isSending)
  }

  lastEntry({ id }: Run): ReturnType<UnitOfWork['lastEntry']> {
    const last = this.row(id).entries.at(-1)
    if (last === undefined) throw bug('A run has no journal', { runId: id })
    return last
  }

  get pages(): PageLimits {
    return this.tables.pages
  }

  unread(runId: string, after: number, most: number): UnreadPage {
    const messages = this.row(runId)
      .messages()
      .filter(({ position }) => position > after)
    return firstUnread(messages, most)
  }

  hasMessage(runId: string, id: string): boolean {
    return this.row(runId).mailbox?.has(id) ?? false
  }

  waitsOnRun(runId: string, from: WaitPosition | null, most: number): WaiterPage {
    return this.tables.topics.waitsOnRun(runId, from, most)
  }

  waitersOf(topic: string, delivery: Delivery, after: WaitPosition | null, most: number): WaiterPage {
    return this.tables.topics.waitersOf(topic, delivery, after, most)
  }

  chore(kind: Chore['kind'], target: string): Chore | undefined {
    return this.tables.topics.chore(kind, target)
  }

  topicPosition(topic: string): number {
    return this.tables.topics.position(topic)
  }

  broadcast(topic: string, id: string): Broadcast | undefined {
    return this.tables.topics.broadcasts(topic).find((one) => one.id === id)
  }

  broadcastAt(topic: string, position: number): Broadcast | undefined {
    return this.tables.topics.broadcasts(topic).find((one) => one.position === position)
  }

  isCrowded(topic: string, runId: string, most: number): boolean {
    const { topics } = this.tables
    if (topics.waiting(topic) < most) return false
    const waits = topics.waitsOn('topic', topic)
    if (waits.some((wait) => wait.runId === runId)) return false
    return waits.filter((wait) => this.isLive(wait)).length >= most
  }

  topicUse(topic: string, most: number): TopicUse | undefined {
    const { topics } = this.tables
    const use = topics.use(topic)
    if (use === undefined) return undefined
    const { waits, more } = firstWaiters(topics.waitsOn('topic', topic), most)
    return { ...use, waits: waits.map((wait) => ({ wait, isLive: this.isLive(wait) })), more }
  }

  private isLive({ runId }: WaitRow): boolean {
    const row = this.tables.rows.get(runId)
    return row !== undefined && !isTerminal(row.status) && row.deletedAt === null
  }

  lateOf(topic: string, after: WaitPosition | null, most: number): WaiterPage {
    return this.tables.topics.lateOf(topic, after, most)
  }

  broadcastsFrom(topic: string, position: number, most: number): readonly Broadcast[] {
    const all = this.tables.topics.broadcasts(topic)
    return all.filter((one) => one.delivery === 'all' && one.position >= position).slice(0, most)
  }

  backlog(topic: string, delivery: Delivery): readonly Broadcast[] {
    const isOpen = ({ takenBy, expiresAt }: Broadcast): boolean =>
      takenBy === null && (expiresAt === null || expiresAt > this.now)
    return this.tables.topics.broadcasts(topic).filter((one) => one.delivery === delivery && isOpen(one))
  }

  put(draft: MessageDraft): void {
    this.receive(draft)
  }

  outcomeOf({ runId, id }: NewMessage): DeliveryOutcome | undefined {
    return this.row(runId).mailbox?.get(id)?.outcome
  }

  depth({ id }: Run, most: number): number {
    return this.row(id).unread(most)
  }

  receive({ id, runId, kind, name, data, policy }: MessageDraft): DeliveryOutcome {
    const row = this.row(runId)
    const { tables, now } = this
    row.inbox += 1
    row.mailbox ??= new Map()
    const outcome = deliveryOutcomeOf(row, name)
    const message = { id, runId, kind, name, data, policy, position: row.inbox, at: now }
    row.mailbox.set(id, { message, outcome, takenBy: null, fate: null })
    // A run that is due already keeps its place: one that is written to often must not be claimed last.
    if (outcome === 'delivered' && row.deletedAt === null) tables.schedule(row, Math.min(row.due ?? now, now), now)
    else if (row.session !== null) tables.hints.give({ kind: 'message', runId })
    return outcome
  }

  settle({ runId, id }: Message, fate: Fate): void {
    const row = this.row(runId)
    const kept = row.mailbox?.get(id)
    if (kept === undefined) throw bug('A message is settled that lies in no mailbox', { runId, id })
    kept.takenBy ??= row.seq
    kept.fate = fate
  }

  rewrite(before: Run, write: Rewrite): void {
    this.write(before, write, null)
  }

  write({ id }: Run, write: Rewrite, transition: string | null): void {
    this.tables.rewrite(this.row(id), write, transition, this.now)
  }

  markWatched({ id }: Run): void {
    this.row(id).watched = true
  }

  addWait(wait: WaitRow): void {
    if (wait.kind === 'topic') this.tables.topics.begin(wait.target, this.now + this.pages.topicRestMs)
    this.tables.topics.addWait(wait)
  }

  deleteWait(wait: WaitRow): void {
    this.tables.topics.deleteWait(wait)
  }

  setMissed(wait: WaitRow, position: number | null): void {
    this.tables.topics.setMissed(wait, position)
  }

  addBroadcast(broadcast: Broadcast, retainMs: number): void {
    this.tables.topics.add(broadcast, retainMs, this.now + this.pages.topicRestMs)
  }

  deleteTopic(topic: string): void {
    this.tables.topics.delete(topic)
  }

  lookAtTopic(topic: string, at: number): void {
    this.tables.topics.lookAt(topic, at)
  }

  takeBroadcast(broadcast: Broadcast, runId: string): void {
    this.tables.topics.take(broadcast, runId)
  }

  addDelivered(broadcast: Broadcast, runs: number): void {
    this.tables.topics.addDelivered(broadcast, runs)
  }

  setChore(chore: Chore, due = this.now): void {
    this.tables.topics.setChore(chore, due)
    this.tables.hints.give({ kind: 'chore' })
  }

  deleteChore(chore: Chore): void {
    this.tables.topics.deleteChore(chore)
  }

  forgetBroadcasts(topic: string, before: number): void {
    this.tables.topics.forget(topic, before, this.now)
  }

  protected row(id: string): Row {
    const row = this.tables.rows.get(id)
    if (row === undefined) throw bug('The exchange names a run that does not exist', { runId: id })
    return row
  }
}
