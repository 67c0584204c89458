// The rows that the rules of `core/rules/messages/exchange.ts` read and write, lent by one transaction: what it locked, what it has seen in the
// statement after the locks, and what the rules have made of both since. Nothing is written before they are done.
//
// Without locks the same rules say who would have to be locked. With locks, to reach any other run means to begin again.

import {
  afterOthers,
  isAfter,
  isFrom,
  type Chore,
  type ChoreRow,
  type PageLimits,
  type WaitPosition,
} from '../../../src/core/model/chore.ts'
import type { Entry } from '../../../src/core/model/entry.ts'
import type { ChangeWork } from '../../../src/core/rules/change.ts'
import { withMessage, type DeliveryWork, type NewMessage } from '../../../src/core/rules/messages/deliver.ts'
import { firstUnread, firstWaiters, longestFirst } from '../../../src/core/rules/messages/exchange.ts'
import type { TopicUse, UnreadPage, WaiterPage, WaitRow } from '../../../src/core/rules/messages/unit-of-work.ts'
import type { DeliveryOutcome, Fate, Message, MessageDraft } from '../../../src/core/model/message.ts'
import type { Rewrite } from '../../../src/core/rules/rewrite.ts'
import { isTerminal, type Run } from '../../../src/core/model/run.ts'
import type { Transition } from '../../../src/core/model/transition.ts'
import type { Broadcast, Delivery } from '../../../src/core/model/topic.ts'
import { Appends } from './append.ts'
import { Overtaken, type Execution } from '../database/call.ts'
import type { Lent } from './locked-rows.ts'
import { Rewrites } from '../rewrite.ts'
import {
  choreText,
  messageOf,
  newMessage,
  placeText,
  runOf,
  targetText,
  waitText,
  type MessageRow,
  type RunRow,
} from '../database/tables.ts'
import { Topics } from './topics.ts'
import type { Snapshot } from '../database/transaction.ts'

/** What is locked, or would have to be. */
export interface TouchedRows {
  readonly runs: ReadonlySet<string>
  readonly topics: ReadonlySet<string>
}

export class LockedUnitOfWork implements ChangeWork, DeliveryWork {
  readonly now: number
  readonly rewrites: Rewrites
  readonly topics: Topics
  protected readonly x: Execution
  private readonly lent: Lent
  private readonly touchedRuns = new Set<string>()
  private readonly news = new Map<string, MessageRow>()
  private readonly taken = new Map<string, number>()
  private readonly fates = new Map<string, { readonly fate: Fate; readonly seq: number }>()
  private readonly opened = new Map<string, WaitRow>()
  private readonly closed = new Set<string>()
  /** Waits of those who missed something, or are late no more. */
  private readonly late = new Map<string, WaitRow>()
  /** Chores that are set, or are over. */
  private readonly left = new Map<string, ChoreRow | null>()

  constructor(x: Execution, lent: Lent) {
    this.x = x
    this.lent = lent
    this.now = x.now()
    this.rewrites = new Rewrites(lent.runs, new Appends(), this.now)
    this.topics = new Topics(x, lent)
  }

  /** Whom the rules have asked for. */
  get touched(): TouchedRows {
    return { runs: this.touchedRuns, topics: this.topics.touched }
  }

  get isDry(): boolean {
    return this.lent.isDry
  }

  get view(): Snapshot {
    if (this.lent.view === null) throw new Overtaken('A run is reached, and nothing was looked at')
    return this.lent.view
  }

  row(id: string): RunRow | undefined {
    this.touchedRuns.add(id)
    const known = this.rewrites.get(id)
    if (known !== undefined) return known
    const [seen] = this.view.select(this.x.tables.runs, { at: ['id', [id]] })
    if (seen === undefined) return undefined
    if (!this.lent.isUnlocked) throw new Overtaken(`Run ${id} is reached and not locked`, id)
    this.rewrites.add(seen)
    return seen
  }

  run(id: string): Run | undefined {
    const row = this.row(id)
    return row === undefined ? undefined : runOf(row)
  }

  canHave(runId: string): boolean {
    // What this transaction has inserted is its own.
    if (!this.lent.notGot.has(runId) || this.rewrites.get(runId) !== undefined) return true
    return this.view.select(this.x.tables.runs, { at: ['id', [runId]] }).length === 0
  }

  /** No stranger locks a topic. */
  canHaveTopic(): boolean {
    return true
  }

  sentBetween(runId: string, from: number, to: number): readonly Entry[] {
    const places = Array.from({ length: to - from + 1 }, (_, at) => placeText(runId, from + at))
    const rows = this.view.select(this.x.tables.journal, { at: ['place', places] })
    return rows.map(({ entry }) => entry).sort((a, b) => a.seq - b.seq)
  }

  lastEntry({ id, seq }: Run): Pick<Entry, 'seq' | 'kind' | 'meta' | 'data'> {
    const appended = this.rewrites.appends.last(id)
    if (appended?.seq === seq) return appended
    const [row] = this.view.select(this.x.tables.journal, { at: ['place', [placeText(id, seq)]] })
    if (row === undefined) throw new TypeError(`Run ${id} has no entry ${seq}`)
    return row.entry
  }

  /** The more was written for others before, the less an end does by itself. */
  get pages(): PageLimits {
    return afterOthers(this.x.pages, this.news.size + this.fates.size)
  }

  unread(runId: string, after: number, most: number): UnreadPage {
    const messages = this.allUnread(runId).filter(({ position }) => position > after)
    return firstUnread(messages, most)
  }

  private allUnread(runId: string): readonly Message[] {
    this.row(runId)
    const seen = this.view.select(this.x.tables.messages, { at: ['run', [runId]] })
    const fresh = [...this.news.values()].filter((row) => row.runId === runId)
    return [...seen, ...fresh]
      .filter((row) => row.takenBy === null && !this.taken.has(messageText(row)) && !this.fates.has(messageText(row)))
      .sort((a, b) => a.position - b.position)
      .map(messageOf)
  }

  hasMessage(runId: string, id: string): boolean {
    return this.message(runId, id) !== undefined
  }

  /** What was ever put into a mailbox under that id. */
  message(runId: string, id: string): MessageRow | undefined {
    const text = messageText({ runId, id })
    return this.news.get(text) ?? this.view.select(this.x.tables.messages, { at: ['id', [text]] })[0]
  }

  hasMessageAfter({ runId }: Transition, after: number, names: readonly string[] | null): boolean {
    return this.allUnread(runId).some(({ position, name }) => position > after && (names?.includes(name) ?? true))
  }

  waitsOnRun(runId: string, from: WaitPosition | null, most: number): WaiterPage {
    const all = this.waitsOn('run', runId).filter((one) => isFrom(one, from))
    return firstWaiters(all, most)
  }

  waitersOf(topic: string, delivery: Delivery, after: WaitPosition | null, most: number): WaiterPage {
    const all = this.waitsOn('topic', topic).filter((one) => one.delivery === delivery && isAfter(one, after))
    return firstWaiters(all, most)
  }

  /** Read under the lock of its run or topic. */
  chore(kind: Chore['kind'], target: string): Chore | undefined {
    if (kind === 'topic') this.topics.need(target)
    else this.row(target)
    const text = choreText({ kind, target })
    const known = this.left.get(text)
    if (known !== undefined) return known ?? undefined
    return this.view.select(this.x.tables.chores, { at: ['target', [text]] })[0]
  }

  setChore(chore: Chore, due = this.now): void {
    this.left.set(choreText(chore), { ...chore, due })
    this.x.hints.push({ kind: 'chore' })
  }

  deleteChore(chore: Chore): void {
    this.left.set(choreText(chore), null)
  }

  private waitsOn(kind: WaitRow['kind'], target: string): readonly WaitRow[] {
    return this.openWaits(kind, target).sort(longestFirst)
  }

  /** Under the lock of what they wait for. */
  private openWaits(kind: WaitRow['kind'], target: string): WaitRow[] {
    this.lockTarget(kind, target)
    const seen = this.view.select(this.x.tables.waits, { at: ['target', [targetText(kind, target)]] })
    const open = seen
      .filter((wait) => !this.closed.has(waitText(wait)))
      .map((wait) => this.late.get(waitText(wait)) ?? wait)
    const fresh = [...this.opened.values()].filter((wait) => wait.kind === kind && wait.target === target)
    return [...open, ...fresh]
  }

  private lockTarget(kind: WaitRow['kind'], target: string): void {
    if (kind === 'run') this.row(target)
    else this.topics.need(target)
  }

  topicPosition(topic: string): number {
    return this.topics.position(topic)
  }

  broadcast(topic: string, id: string): Broadcast | undefined {
    return this.topics.known(topic, id, this.view)
  }

  broadcastAt(topic: string, position: number): Broadcast | undefined {
    return this.topics.at(topic, position, this.view)
  }

  isCrowded(topic: string, runId: string, most: number): boolean {
    const waits = this.openWaits('topic', topic)
    if (waits.length < most || waits.some((wait) => wait.runId === runId)) return false
    return waits.filter((wait) => this.isLive(wait)).length >= most
  }

  lateOf(topic: string, after: WaitPosition | null, most: number): WaiterPage {
    const all = this.waitsOn('topic', topic).filter((one) => one.missed !== null && isAfter(one, after))
    return firstWaiters(all, most)
  }

  broadcastsFrom(topic: string, position: number, most: number): readonly Broadcast[] {
    return this.topics.from(topic, position, most, this.view)
  }

  addDelivered(broadcast: Broadcast, runs: number): void {
    this.topics.addDelivered(broadcast, runs)
  }

  backlog(topic: string, delivery: Delivery): readonly Broadcast[] {
    return this.topics.backlog(topic, delivery, this.now, this.view)
  }

  put(draft: MessageDraft): void {
    this.receive(draft)
  }

  outcomeOf({ runId, id }: NewMessage): DeliveryOutcome | undefined {
    return this.message(runId, id)?.outcome
  }

  depth({ id }: Run, most: number): number {
    return this.unread(id, 0, most).messages.length
  }

  receive(draft: MessageDraft): DeliveryOutcome {
    const row = this.row(draft.runId)
    if (row === undefined) throw new TypeError(`There is no run ${draft.runId}`)
    const { run, outcome, isWoken } = withMessage(row, draft.name, this.now)
    const { inbox, readiness, due } = run
    this.rewrites.patch(row.id, isWoken ? { inbox, readiness, due } : { inbox })
    this.news.set(messageText(draft), newMessage(row, draft, inbox, this.now, outcome))
    if (isWoken) this.x.hints.push({ kind: 'ready', type: row.type })
    else if (row.session !== null) this.x.hints.push({ kind: 'message', runId: row.id })
    return outcome
  }

  /** What lies in the mailbox of a new run from the beginning. */
  putFirst(runId: string, drafts: readonly MessageDraft[]): void {
    for (const [index, draft] of drafts.entries()) {
      this.news.set(messageText({ ...draft, runId }), newMessage({ id: runId }, draft, index + 1, this.now, 'queued'))
    }
  }

  take(runId: string, ids: readonly string[], seq: number): void {
    for (const id of ids) this.taken.set(messageText({ runId, id }), seq)
  }

  settle(message: Message, fate: Fate): void {
    const row = this.row(message.runId)
    this.fates.set(messageText(message), { fate, seq: row?.seq ?? 0 })
  }

  rewrite(before: Run, write: Rewrite): void {
    this.write(before, write, null)
  }

  write(before: Run, write: Rewrite, transition: string | null): void {
    const row = this.row(before.id)
    if (row !== undefined) this.rewrites.write(row, write, transition)
  }

  markWatched({ id, watched }: Run): void {
    if (!watched && this.row(id)?.watched === false) this.rewrites.patch(id, { watched: true })
  }

  addWait(wait: WaitRow): void {
    this.lockTarget(wait.kind, wait.target)
    const text = waitText(wait)
    if (this.opened.has(text)) return
    const isKnown =
      !this.closed.has(text) && this.view.select(this.x.tables.waits, { at: ['whole', [text]] }).length > 0
    if (!isKnown) this.opened.set(text, wait)
  }

  deleteWait(wait: WaitRow): void {
    if (!this.opened.delete(waitText(wait))) this.closed.add(waitText(wait))
  }

  setMissed(wait: WaitRow, missed: number | null): void {
    this.late.set(waitText(wait), { ...wait, missed })
  }

  addBroadcast(broadcast: Broadcast, retainMs: number): void {
    this.topics.add(broadcast, retainMs)
  }

  topicUse(topic: string, most: number): TopicUse {
    const { waits, more } = firstWaiters(this.waitsOn('topic', topic), most)
    return {
      ...this.topics.use(topic, this.view),
      waits: waits.map((wait) => ({ wait, isLive: this.isLive(wait) })),
      more,
    }
  }

  deleteTopic(topic: string): void {
    this.topics.look(topic, null)
  }

  lookAtTopic(topic: string, at: number): void {
    this.topics.look(topic, at)
  }

  /** Its run is not locked for that: one that ends meanwhile ended a moment later. */
  private isLive({ runId }: WaitRow): boolean {
    const [row] = this.view.select(this.x.tables.runs, { at: ['id', [runId]] })
    return row !== undefined && !isTerminal(row.status) && row.deletedAt === null
  }

  takeBroadcast(broadcast: Broadcast, runId: string): void {
    this.topics.take(broadcast, runId)
  }

  forgetBroadcasts(topic: string, before: number): void {
    this.topics.forget(topic, before, this.now, this.view)
  }

  /** What the rules have made of messages and waits. */
  changes(): {
    readonly put: readonly MessageRow[]
    readonly taken: ReadonlyMap<string, number>
    readonly fates: ReadonlyMap<string, { readonly fate: Fate; readonly seq: number }>
    readonly opened: readonly WaitRow[]
    readonly closed: readonly string[]
    readonly late: ReadonlyMap<string, WaitRow>
    readonly left: ReadonlyMap<string, ChoreRow | null>
  } {
    const { news, taken, fates, opened, closed, late, left } = this
    return { put: [...news.values()], taken, fates, opened: [...opened.values()], closed: [...closed], late, left }
  }
}

/** The unit of work of what looks at nothing of its own. */
export function lendUnitOfWork(x: Execution, lent: Lent): LockedUnitOfWork {
  return new LockedUnitOfWork(x, lent)
}

function messageText({ runId, id }: { readonly runId: string; readonly id: string }): string {
  return `${runId} ${id}`
}
