// What passes between runs, and what is sent to them, as the rules read and write it. A real store reads rows when it is asked for
// them and writes them at once, inside one transaction, or loads all that the rules may need before and writes all that they
// decided after; the toy has all of it in memory, and a call of it is never interrupted.

import {
  bug,
  defaultPageLimits,
  firstUnread,
  firstWaiters,
  hasExpired,
  isAfter,
  isFrom,
  isTerminal,
  withMessage,
  type Broadcast,
  type ChangeWork,
  type Chore,
  type Delivery,
  type DeliveryOutcome,
  type DeliveryWork,
  type Entry,
  type Fate,
  type Message,
  type MessageDraft,
  type NewMessage,
  type Rewrite,
  type Run,
  type TopicUse,
  type UnreadPage,
  type WaiterPage,
  type WaitPosition,
  type WaitRow,
} from 'holdfast/store'
import type { StoredMessage, Tables } from './tables.ts'

export class ToyUnitOfWork implements ChangeWork, DeliveryWork {
  readonly pages = defaultPageLimits
  readonly now: number
  protected readonly tables: Tables

  constructor(tables: Tables, now: number) {
    this.tables = tables
    this.now = now
  }

  // Rows.

  write(_before: Run, { run, append }: Rewrite, transition: string | null): void {
    this.tables.write(run, append, transition, this.now)
  }

  rewrite(before: Run, write: Rewrite): void {
    this.write(before, write, null)
  }

  run(id: string): Run | undefined {
    return this.tables.runs.get(id)
  }

  canHave(): boolean {
    return true
  }

  canHaveTopic(): boolean {
    return true
  }

  sentBetween(runId: string, from: number, to: number): readonly Entry[] {
    return this.tables.journal(runId).slice(from - 1, to)
  }

  lastEntry({ id, seq }: Run): Entry {
    return this.tables.journal(id)[seq - 1] as Entry
  }

  markWatched({ id }: Run): void {
    this.tables.runs.set(id, { ...this.need(id), watched: true })
  }

  // Mailboxes.

  outcomeOf({ runId, id }: NewMessage): DeliveryOutcome | undefined {
    return this.tables.mailbox(runId).get(id)?.outcome
  }

  depth({ id }: Run): number {
    return this.tables.unread(id).length
  }

  receive({ id, runId, kind, name, data, policy }: MessageDraft): DeliveryOutcome {
    const { run, outcome, isWoken } = withMessage(this.need(runId), name, this.now)
    const message = { id, runId, kind, name, data, policy, position: run.inbox, at: this.now }
    this.tables.mailbox(runId).set(id, { message, outcome, takenBy: null, fate: null })
    if (isWoken) this.tables.write(run, [], null, this.now)
    else this.tables.runs.set(runId, run)
    if (!isWoken && run.session !== null) this.tables.hints.give({ kind: 'message', runId })
    return outcome
  }

  put(draft: MessageDraft): void {
    this.receive(draft)
  }

  hasMessage(runId: string, id: string): boolean {
    return this.tables.mailbox(runId).has(id)
  }

  unread(runId: string, after: number, most: number): UnreadPage {
    const messages = this.tables.unread(runId).filter(({ position }) => position > after)
    return firstUnread(messages, most)
  }

  settle({ runId, id }: Message, fate: Fate): void {
    this.settleMessage(runId, id, this.need(runId).seq, fate)
  }

  // Waits.

  addWait(wait: WaitRow): void {
    if (wait.kind === 'topic') this.setTopic(wait.target)
    const waits = this.tables.waitsOn(wait)
    if (!waits.has(whoOf(wait))) waits.set(whoOf(wait), wait)
  }

  deleteWait(wait: WaitRow): void {
    this.tables.waitsOn(wait).delete(whoOf(wait))
  }

  setMissed(wait: WaitRow, missed: number | null): void {
    this.tables.waitsOn(wait).set(whoOf(wait), { ...wait, missed })
  }

  waitsOnRun(runId: string, from: WaitPosition | null, most: number): WaiterPage {
    return firstWaiters(
      this.tables.longestOn('run', runId).filter((wait) => isFrom(wait, from)),
      most,
    )
  }

  waitersOf(topic: string, delivery: Delivery, after: WaitPosition | null, most: number): WaiterPage {
    const isMeant = (wait: WaitRow): boolean => wait.delivery === delivery && isAfter(wait, after)
    return firstWaiters(this.tables.longestOn('topic', topic).filter(isMeant), most)
  }

  lateOf(topic: string, after: WaitPosition | null, most: number): WaiterPage {
    const isLate = (wait: WaitRow): boolean => wait.missed !== null && isAfter(wait, after)
    return firstWaiters(this.tables.longestOn('topic', topic).filter(isLate), most)
  }

  isCrowded(topic: string, runId: string, most: number): boolean {
    const waiting = this.tables.longestOn('topic', topic).map((wait) => this.need(wait.runId))
    return waiting.every(({ id }) => id !== runId) && waiting.filter(isLive).length >= most
  }

  // Topics.

  topicPosition(topic: string): number {
    const position = this.tables.topics.get(topic)?.position ?? 0
    return position === 0 ? this.tables.gonePosition : position
  }

  topicUse(topic: string, most: number): TopicUse | undefined {
    const known = this.tables.topics.get(topic)
    if (known === undefined) return undefined
    const { waits, more } = firstWaiters(this.tables.longestOn('topic', topic), most)
    return {
      waits: waits.map((wait) => ({ wait, isLive: isLive(this.need(wait.runId)) })),
      more,
      oldest: this.tables.sentTo(topic)[0],
      retainMs: known.retainMs,
    }
  }

  deleteTopic(topic: string): void {
    const { topics } = this.tables
    this.tables.gonePosition = Math.max(this.tables.gonePosition, topics.get(topic)?.position ?? 0)
    topics.delete(topic)
  }

  lookAtTopic(topic: string, lookAt: number): void {
    this.setTopic(topic, { lookAt })
  }

  protected setTopic(name: string, changes: { position?: number; retainMs?: number; lookAt?: number } = {}): void {
    const { topics } = this.tables
    const fresh = { position: 0, retainMs: null, lookAt: this.now + this.pages.topicRestMs }
    topics.set(name, { ...(topics.get(name) ?? fresh), ...changes })
  }

  broadcast(topic: string, id: string): Broadcast | undefined {
    return this.tables.sentTo(topic).find((one) => one.id === id)
  }

  broadcastAt(topic: string, position: number): Broadcast | undefined {
    return this.tables.sentTo(topic).find((one) => one.position === position)
  }

  broadcastsFrom(topic: string, position: number, most: number): readonly Broadcast[] {
    const isMeant = (one: Broadcast): boolean => one.delivery === 'all' && one.position >= position
    return this.tables.sentTo(topic).filter(isMeant).slice(0, most)
  }

  backlog(topic: string, delivery: Delivery): readonly Broadcast[] {
    const isOpen = (one: Broadcast): boolean => one.takenBy === null && !hasExpired(one, this.now)
    return this.tables.sentTo(topic).filter((one) => one.delivery === delivery && isOpen(one))
  }

  addBroadcast(broadcast: Broadcast, retainMs: number): void {
    const { topic, position } = broadcast
    this.tables.sentTo(topic).push(broadcast)
    this.setTopic(topic, { position, retainMs })
  }

  takeBroadcast(broadcast: Broadcast, runId: string): void {
    this.changeBroadcast(broadcast, () => ({ takenBy: runId }))
  }

  addDelivered(broadcast: Broadcast, runs: number): void {
    this.changeBroadcast(broadcast, ({ deliveredTo }) => ({ deliveredTo: deliveredTo + runs }))
  }

  forgetBroadcasts(topic: string, before: number): void {
    const isWanted = (one: Broadcast): boolean =>
      one.delivery === 'one' && one.takenBy === null && !hasExpired(one, this.now)
    const kept = this.tables.sentTo(topic).filter((one) => one.at >= before || isWanted(one))
    this.tables.broadcasts.set(topic, kept)
  }

  // Chores.

  chore(kind: Chore['kind'], target: string): Chore | undefined {
    return this.tables.chores.get(`${kind} ${target}`)
  }

  setChore(chore: Chore, due = this.now): void {
    this.tables.chores.set(`${chore.kind} ${chore.target}`, { ...chore, due })
    this.tables.hints.give({ kind: 'chore' })
  }

  deleteChore({ kind, target }: Chore): void {
    this.tables.chores.delete(`${kind} ${target}`)
  }

  protected need(id: string): Run {
    const run = this.run(id)
    if (run === undefined) throw bug('A rule names a run that does not exist', { runId: id })
    return run
  }

  protected settleMessage(runId: string, id: string, seq: number, fate: Fate | null): void {
    const mailbox = this.tables.mailbox(runId)
    const stored: StoredMessage | undefined = mailbox.get(id)
    if (stored !== undefined) mailbox.set(id, { ...stored, takenBy: stored.takenBy ?? seq, fate: fate ?? stored.fate })
  }

  private changeBroadcast({ topic, position }: Broadcast, changed: (before: Broadcast) => Partial<Broadcast>): void {
    const all = this.tables.sentTo(topic)
    this.tables.broadcasts.set(
      topic,
      all.map((one) => (one.position === position ? { ...one, ...changed(one) } : one)),
    )
  }
}

export function isLive({ status, deletedAt }: Run): boolean {
  return deletedAt === null && !isTerminal(status)
}

function whoOf({ effect, runId }: WaitRow): string {
  return `${effect} ${runId}`
}
