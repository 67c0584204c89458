// The rows that the rules of the exchange read and write, in memory: those that were locked and read, and on top of them the
// decisions made since. Nothing is sent before all is decided; `unit-of-work-writer.ts` sends it then. A row that was not read
// is never made up: the rules stop with `Missing`, and run again once it was.

import { isAfter, isFrom, defaultPageLimits, type Chore, type WaitPosition } from '../../../core/model/chore.ts'
import { bug } from '../../../core/errors/error.ts'
import type { Entry } from '../../../core/model/entry.ts'
import { withMessage } from '../../../core/rules/messages/deliver.ts'
import { firstWaiters, longestFirst } from '../../../core/rules/messages/exchange.ts'
import type { KeptBroadcast, TopicUse, UnitOfWork, UnreadPage } from '../../../core/rules/messages/unit-of-work.ts'
import type { WaiterPage, WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import type { Fate, Message, MessageDraft, DeliveryOutcome } from '../../../core/model/message.ts'
import type { Rewrite } from '../../../core/rules/rewrite.ts'
import { fedCount } from '../../../core/rules/feed-entries.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Broadcast, Delivery } from '../../../core/model/topic.ts'
import { SubscriberCounts } from '../../subscriber-counts.ts'
import { PendingWrites } from './pending-writes.ts'
import { keyOf, listOf, type LockedRows, type LastEntry } from './locked-rows.ts'
import { Missing } from './lock-request.ts'

export class PostgresUnitOfWork extends PendingWrites implements UnitOfWork {
  readonly now: number
  readonly sentUpTo: number
  readonly pages = defaultPageLimits
  private readonly lockedRows: LockedRows
  private readonly crowds: SubscriberCounts
  private readonly rows: Map<string, Run>
  private readonly lasts = new Map<string, LastEntry>()
  private readonly waits = new Map<string, Map<string, WaitRow>>()
  private readonly backlogs = new Map<string, Broadcast[]>()
  private readonly sent = new Map<string, Broadcast>()
  private readonly gone = new Set<string>()

  constructor(lockedRows: LockedRows, now: number, crowds = new SubscriberCounts()) {
    super()
    this.lockedRows = lockedRows
    this.crowds = crowds
    this.now = now
    this.sentUpTo = lockedRows.sentUpTo ?? Number.POSITIVE_INFINITY
    this.rows = new Map(lockedRows.runs)
  }

  /** As it was locked; undefined if it was inserted since. */
  before(id: string): Run | undefined {
    return this.lockedRows.runs.get(id)
  }

  all(): readonly Run[] {
    return [...this.rows.values()]
  }

  get broadcasts(): readonly Broadcast[] {
    return [...this.sent.values()]
  }

  run(id: string): Run | undefined {
    const run = this.rows.get(id)
    if (run === undefined && !this.lockedRows.requested.has(id))
      throw new Missing((lockRequest) => lockRequest.runs.add(id))
    return run
  }

  canHave(runId: string): boolean {
    return !this.lockedRows.lockedOut.has(runId)
  }

  canHaveTopic(topic: string): boolean {
    return !this.lockedRows.lockedOutTopics.has(topic)
  }

  sentBetween(_runId: string, from: number, to: number): readonly Entry[] {
    return this.lockedRows.sentEntries.filter(({ seq }) => seq >= from && seq <= to)
  }

  depth({ id }: Run, most: number): number {
    const taken = this.takes.filter(({ runId }) => runId === id).length
    const counted = this.lockedRows.depths.get(id)
    const isEnough = counted !== undefined && (counted.unread < counted.most || counted.most >= most + taken)
    if (!isEnough) throw new Missing((lockRequest) => lockRequest.countUnread(id, most + taken))
    const put = [...this.puts.values()].filter(({ message, takenBy }) => message.runId === id && takenBy === null)
    return counted.unread - taken + put.length
  }

  lastEntry({ id }: Run): LastEntry {
    const last = this.lasts.get(id) ?? this.lockedRows.lasts.get(id)
    if (last === undefined) throw new Missing((lockRequest) => lockRequest.targets.add(id))
    return last
  }

  unread(runId: string): UnreadPage {
    const lockedRows = this.lockedRows.unread.get(runId)
    if (lockedRows === undefined) throw this.missingEnds()
    const open = lockedRows.filter(({ id }) => !this.gone.has(`${runId} ${id}`))
    // New messages come after all others.
    const put = Array.from(this.puts.values()).filter((one) => one.message.runId === runId && one.takenBy === null)
    if (!this.lockedRows.cutUnread.has(runId)) {
      return { messages: [...open, ...put.map(({ message }) => message)], after: null }
    }
    // Whether or not the last transition of the run has taken some of them: those that were not looked at come after.
    return { messages: open, after: lockedRows.at(-1)?.position ?? 0 }
  }

  hasMessage(runId: string, id: string): boolean {
    if (this.puts.has(`${runId} ${id}`)) return true
    const known = this.lockedRows.messages.get(`${runId} ${id}`)
    if (known === undefined) throw new Missing((lockRequest) => lockRequest.message(runId, id))
    return known
  }

  /** As many as were read, except for those that have gone since. */
  waitsOnRun(runId: string, from: WaitPosition | null, most: number): WaiterPage {
    const key = `run ${runId}`
    const lockedRows = this.lockedRows.waits.get(key)
    if (lockedRows === undefined) throw this.missingEnds()
    const all = [...this.waitsOf('run', runId).values()].filter((one) => isFrom(one, from)).sort(longestFirst)
    if (!this.lockedRows.cutWaits.has(key)) return firstWaiters(all, most)
    // A run that begins to wait with this transaction may come after some that were not read.
    const last = lockedRows.at(-1)
    const known = all.filter((one) => last !== undefined && longestFirst(one, last) <= 0)
    return { waits: known.slice(0, most), more: true }
  }

  waitersOf(topic: string, delivery: Delivery, after: WaitPosition | null, most: number): WaiterPage {
    const key = `${delivery} ${topic}`
    const all = [...this.waitsOf(delivery, topic).values()].filter((one) => isAfter(one, after)).sort(longestFirst)
    if (!this.lockedRows.waits.has(key))
      throw new Missing((lockRequest) => lockRequest.listeners(topic, delivery, most))
    const isCut = this.lockedRows.cutWaits.has(key)
    // All that were looked at are over, and there are more.
    if (all.length < most && isCut) {
      throw new Missing((lockRequest) =>
        lockRequest.waitersOf(topic, delivery, lockRequest.waiters.get(key)?.most ?? most),
      )
    }
    return { waits: all.slice(0, most), more: isCut || all.length > most }
  }

  chore(kind: Chore['kind'], target: string): Chore | undefined {
    const key = `${kind} ${target}`
    const known = this.chores.get(key)
    if (known !== undefined) return known.isOver ? undefined : known.chore
    if (!this.lockedRows.chores.has(key)) throw new Missing((lockRequest) => lockRequest.leaves(kind, target))
    return this.lockedRows.chores.get(key)
  }

  setChore(chore: Chore, due = this.now): void {
    this.chores.set(`${chore.kind} ${chore.target}`, { chore, due, isOver: false })
  }

  deleteChore(chore: Chore): void {
    this.chores.set(`${chore.kind} ${chore.target}`, { chore, due: this.now, isOver: true })
  }

  broadcastAt(topic: string, position: number): KeptBroadcast | undefined {
    for (const sent of this.sent.values()) if (sent.topic === topic && sent.position === position) return sent
    const { keptRead, kept, topics } = this.lockedRows
    const last = topics.get(topic) ?? 0
    const isRead = keptRead.some(
      (one) => one.topic === topic && position > last - one.most && position <= last - one.most + one.sends,
    )
    if (!isRead) throw new Missing((lockRequest) => lockRequest.keptAt(topic, last - position + 1))
    return kept.get(`${topic} ${position}`)
  }

  isCrowded(topic: string, runId: string, most: number): boolean {
    if (this.crowds.admits(topic, most)) return false
    const lockedRows = this.lockedRows.crowds.get(topic)
    if (lockedRows === undefined) throw new Missing((lockRequest) => lockRequest.crowds.set(topic, most))
    const added = [...this.addedWaits.values()].filter((wait) => wait.kind === 'topic' && wait.target === topic)
    if (lockedRows.among.has(runId) || added.some((wait) => wait.runId === runId)) return false
    return this.crowds.isFull(topic, most, lockedRows.waiting + added.length)
  }

  lateOf(topic: string): WaiterPage {
    const key = `late ${topic}`
    return { waits: this.lockedRows.waits.get(key) ?? [], more: this.lockedRows.cutWaits.has(key) }
  }

  setMissed(wait: WaitRow, missed: number | null): void {
    const late = { ...wait, missed }
    this.missed.set(keyOf(wait), late)
    const waits = this.waitsOf(listOf(wait), wait.target)
    if (waits.has(keyOf(wait))) waits.set(keyOf(wait), late)
  }

  broadcastsFrom(): readonly Broadcast[] {
    return this.lockedRows.passedOn
  }

  addDelivered({ topic, position }: Broadcast, runs: number): void {
    this.delivered.push({ topic, position, runs })
  }

  topicPosition(topic: string): number {
    const position = this.positions.get(topic) ?? this.lockedRows.topics.get(topic)
    if (position === undefined) throw new Missing((lockRequest) => lockRequest.topics.add(topic))
    return position
  }

  topicUse(topic: string): TopicUse | undefined {
    const { use, retained } = this.lockedRows
    if (use?.topic !== topic || !this.lockedRows.topics.has(topic)) {
      throw new Missing((lockRequest) => lockRequest.lookAtTopic(topic))
    }
    return { ...use.use, retainMs: retained.get(topic) ?? null }
  }

  deleteTopic(topic: string): void {
    this.topics.set(topic, { lookAt: null })
  }

  lookAtTopic(topic: string, lookAt: number): void {
    this.topics.set(topic, { lookAt })
  }

  broadcast(topic: string, id: string): Broadcast | undefined {
    const key = `${topic} ${id}`
    const sent = this.sent.get(key)
    if (sent !== undefined) return sent
    if (!this.lockedRows.broadcasts.has(key)) throw new Missing((lockRequest) => lockRequest.broadcastId(topic, id))
    return this.lockedRows.broadcasts.get(key)
  }

  backlog(topic: string, delivery: Delivery): readonly Broadcast[] {
    const key = `${delivery} ${topic}`
    const backlog = this.backlogOf(key)
    const isShort = backlog?.length === 0 && this.lockedRows.cutBacklogs.has(key)
    if (backlog === undefined || isShort) {
      throw new Missing((lockRequest) => {
        lockRequest.topics.add(topic)
        lockRequest.backlog(topic, delivery).most += 1
      })
    }
    return backlog
  }

  put(draft: MessageDraft): void {
    this.receive(draft)
  }

  /** Puts a message into a mailbox and returns the answer to its sender. */
  receive({ id, runId, kind, name, data, policy }: MessageDraft): DeliveryOutcome {
    const { run, outcome, isWoken } = withMessage(this.need(runId), name, this.now)
    if (!isWoken && run.session !== null) this.messageArrived.add(runId)
    this.set(run)
    const message = { id, runId, kind, name, data, policy, position: run.inbox, at: this.now }
    this.puts.set(`${runId} ${id}`, { message, outcome, takenBy: null, fate: null })
    return outcome
  }

  /** A decision here has put a message of one of these names, or of any, into the mailbox, after a position. */
  hasPut(runId: string, after: number, names: readonly string[] | null): boolean {
    for (const { message, takenBy } of this.puts.values()) {
      const isNew = message.runId === runId && message.position > after && takenBy === null
      if (isNew && (names?.includes(message.name) ?? true)) return true
    }
    return false
  }

  /** Messages leave the mailbox of a run with this entry. */
  take(runId: string, ids: readonly string[], seq: number): void {
    for (const id of new Set(ids)) {
      const key = `${runId} ${id}`
      const put = this.puts.get(key)
      if (put !== undefined) put.takenBy ??= seq
      else this.takes.push({ runId, id, seq })
      this.gone.add(key)
    }
  }

  settle(message: Message, fate: Fate): void {
    const { runId, id, name, policy } = message
    if (fate === 'broadcast' && policy?.onUnread === 'broadcast') {
      const isKnown = this.lockedRows.topics.has(name) && this.lockedRows.waits.has(`${policy.delivery} ${name}`)
      if (!isKnown) throw new Missing((lockRequest) => lockRequest.addDeadLetter(message))
    }
    const { seq } = this.need(runId)
    const put = this.puts.get(`${runId} ${id}`)
    if (put === undefined) this.settled.push({ message, seq, fate })
    else Object.assign(put, { takenBy: put.takenBy ?? seq, fate })
    this.gone.add(`${runId} ${id}`)
  }

  rewrite(before: Run, write: Rewrite): void {
    this.write(before, write, null)
  }

  /** Writes the decided row, and appends to its journal, in the name of a transition. */
  write(before: Run, { run, append }: Rewrite, transition: string | null): void {
    this.set(run)
    const last = append.at(-1)
    if (last === undefined) return
    const delivered = fedCount(before, run, append.length)
    this.appended.push({ runId: run.id, seq: before.seq, append, transition, delivered })
    this.lasts.set(run.id, { ...last, seq: run.seq })
  }

  /** The row is this from here on. */
  set(run: Run): void {
    this.rows.set(run.id, run)
    this.changed.add(run.id)
  }

  /**
   * A run that this transaction has for itself. If it was inserted now, and has a feed, its row of the feed comes behind
   * those of earlier decisions.
   */
  admit(run: Run, isInserted: boolean): void {
    this.rows.set(run.id, run)
    if (!isInserted) return
    this.appended.push({ runId: run.id, seq: 0, append: [], transition: null, delivered: run.feed ? 1 : 0 })
    this.hasChildren = true
  }

  markWatched({ id }: Run): void {
    const run = this.need(id)
    if (!run.watched) this.set({ ...run, watched: true })
  }

  addWait(wait: WaitRow): void {
    const key = keyOf(wait)
    const waits = this.waitsOf(listOf(wait), wait.target)
    if (waits.has(key)) return
    waits.set(key, wait)
    this.addedWaits.set(key, wait)
  }

  deleteWait(wait: WaitRow): void {
    const key = keyOf(wait)
    // A run that gives up a wait does not name the delivery of the topic.
    const lists = wait.kind === 'run' ? (['run'] as const) : (['all', 'one'] as const)
    for (const list of lists) this.waitsOf(list, wait.target).delete(key)
    this.addedWaits.delete(key)
    this.deletedWaits.set(key, wait)
  }

  addBroadcast(broadcast: Broadcast, retainMs: number): void {
    const { topic, id, delivery, takenBy, position } = broadcast
    const key = `${delivery} ${topic}`
    this.sent.set(`${topic} ${id}`, broadcast)
    this.positions.set(topic, position)
    this.retained.set(topic, retainMs)
    if (takenBy === null && !this.lockedRows.cutBacklogs.has(key)) this.backlogOf(key)?.push(broadcast)
  }

  takeBroadcast(broadcast: Broadcast, runId: string): void {
    const { topic, id, delivery, position } = broadcast
    const sent = this.sent.get(`${topic} ${id}`)
    if (sent === undefined) this.takenBroadcasts.push({ topic, position, by: runId })
    else this.sent.set(`${topic} ${id}`, { ...sent, takenBy: runId })
    const backlog = this.backlogOf(`${delivery} ${topic}`)
    const place = backlog?.findIndex((one) => one.position === position) ?? -1
    if (place !== -1) backlog?.splice(place, 1)
  }

  forgetBroadcasts(topic: string, before: number): void {
    this.forgotten.set(topic, Math.max(before, this.forgotten.get(topic) ?? before))
  }

  /** A run that ends is among those that are locked: all of them that others may have to hear of are looked at, at once. */
  private missingEnds(): Missing {
    const ends = this.all().filter(({ watched, inbox }) => watched || inbox > 0)
    return new Missing((lockRequest) => {
      for (const { id } of ends) lockRequest.ends.add(id)
    })
  }

  private need(id: string): Run {
    const run = this.run(id)
    if (run === undefined) throw bug('The exchange names a run that does not exist', { runId: id })
    return run
  }

  /** The present waits, to be changed. */
  private waitsOf(list: 'run' | Delivery, target: string): Map<string, WaitRow> {
    const place = `${list} ${target}`
    const known = this.waits.get(place)
    if (known !== undefined) return known
    const waits = new Map((this.lockedRows.waits.get(place) ?? []).map((wait) => [keyOf(wait), wait]))
    this.waits.set(place, waits)
    return waits
  }

  /** The list as it is by now, to be changed; undefined if it was not looked at. */
  private backlogOf(key: string): Broadcast[] | undefined {
    const known = this.backlogs.get(key)
    if (known !== undefined) return known
    const lockedRows = this.lockedRows.backlogs.get(key)
    if (lockedRows === undefined) return undefined
    const backlog = [...lockedRows]
    this.backlogs.set(key, backlog)
    return backlog
  }
}
