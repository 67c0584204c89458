// The unit of work of the exchange as plain maps, for tests of its rules: nothing of a store but what the rules ask for.

import type { Draft, Entry } from '../../../../src/core/model/entry.ts'
import {
  isAfter,
  isFrom,
  defaultPageLimits,
  type Chore,
  type PageLimits,
  type WaitPosition,
} from '../../../../src/core/model/chore.ts'
import { firstUnread, firstWaiters, longestFirst } from '../../../../src/core/rules/messages/exchange.ts'
import type {
  TopicUse,
  UnitOfWork,
  UnreadPage,
  WaiterPage,
  WaitRow,
} from '../../../../src/core/rules/messages/unit-of-work.ts'
import type { Fate, Message, MessageDraft } from '../../../../src/core/model/message.ts'
import { isTerminal, type Run } from '../../../../src/core/model/run.ts'
import type { Broadcast } from '../../../../src/core/model/topic.ts'
import { newRun } from '../model/new-run.ts'

export class PlainUnitOfWork implements UnitOfWork {
  now = 10_000
  pages: PageLimits = defaultPageLimits
  readonly chores = new Map<string, Chore>()
  /** When each of them may be taken. */
  readonly dues = new Map<string, number>()
  /** The entries with which runs have sent messages. */
  readonly journals = new Map<string, readonly Entry[]>()
  /** Runs and topics that another transaction has locked. */
  readonly locked = new Set<string>()
  readonly runs = new Map<string, Run>()
  readonly messages: Message[] = []
  readonly fates = new Map<string, Fate>()
  readonly appended = new Map<string, readonly Draft[]>()
  waits: WaitRow[] = []
  broadcasts: Broadcast[] = []
  readonly retained = new Map<string, number>()
  readonly deletedTopics: string[] = []
  /** Topics, and when the next look at them comes. */
  readonly looks: string[] = []
  /** What it was asked to forget. */
  readonly forgotten: (readonly [topic: string, before: number])[] = []
  /** The last entries of runs that are over. */
  readonly lasts = new Map<string, ReturnType<UnitOfWork['lastEntry']>>()

  add(id: string, changes: Partial<Run> = {}): Run {
    const run = newRun({ id, ...changes })
    this.runs.set(id, run)
    return run
  }

  /** The run comes to its end with that entry. */
  end(id: string, last: Pick<Draft, 'kind' | 'meta' | 'data'>): Run {
    const { seq, ...run } = this.known(id)
    this.lasts.set(id, { seq: seq + 1, ...last })
    return this.add(id, { ...run, seq: seq + 1, status: last.kind as Run['status'], endedAt: this.now })
  }

  /** What was put into the mailbox of a run, as `kind name`, whatever became of it. */
  messageNameOf(runId: string): readonly string[] {
    return this.messages.filter((message) => message.runId === runId).map(({ kind, name }) => `${kind} ${name}`)
  }

  known(id: string): Run {
    const run = this.runs.get(id)
    if (run === undefined) throw new Error(`There is no run ${id}`)
    return run
  }

  run(id: string): Run | undefined {
    return this.runs.get(id)
  }

  canHave(runId: string): boolean {
    return !this.locked.has(runId)
  }

  canHaveTopic(topic: string): boolean {
    return !this.locked.has(topic)
  }

  depth({ id }: Run, most: number): number {
    return this.unread(id, 0, most).messages.length
  }

  sentBetween(runId: string, from: number, to: number): readonly Entry[] {
    return (this.journals.get(runId) ?? []).filter(({ seq }) => seq >= from && seq <= to)
  }

  lastEntry({ id }: Run): ReturnType<UnitOfWork['lastEntry']> {
    const last = this.lasts.get(id)
    if (last === undefined) throw new Error(`${id} has not ended`)
    return last
  }

  unread(runId: string, after: number, most: number): UnreadPage {
    const isOpen = ({ id, position }: Message): boolean => position > after && !this.fates.has(`${runId} ${id}`)
    return firstUnread(
      this.messages.filter((message) => message.runId === runId && isOpen(message)),
      most,
    )
  }

  hasMessage(runId: string, id: string): boolean {
    return this.messages.some((message) => message.runId === runId && message.id === id)
  }

  waitsOnRun(runId: string, from: WaitPosition | null, most: number): WaiterPage {
    const all = this.waitsOn('run', runId).filter((one) => isFrom(one, from))
    return firstWaiters(all, most)
  }

  waitersOf(topic: string, delivery: Broadcast['delivery'], after: WaitPosition | null, most: number): WaiterPage {
    const all = this.waitsOn('topic', topic).filter((one) => one.delivery === delivery && isAfter(one, after))
    return firstWaiters(all, most)
  }

  private waitsOn(kind: WaitRow['kind'], target: string): readonly WaitRow[] {
    const waits = this.waits.filter((wait) => wait.kind === kind && wait.target === target)
    return waits.toSorted(longestFirst)
  }

  chore(kind: Chore['kind'], target: string): Chore | undefined {
    return this.chores.get(`${kind} ${target}`)
  }

  setChore(chore: Chore, due = this.now): void {
    this.chores.set(`${chore.kind} ${chore.target}`, chore)
    this.dues.set(`${chore.kind} ${chore.target}`, due)
  }

  deleteChore({ kind, target }: Chore): void {
    this.chores.delete(`${kind} ${target}`)
  }

  broadcastAt(topic: string, position: number): Broadcast | undefined {
    return this.broadcasts.find((one) => one.topic === topic && one.position === position)
  }

  isCrowded(topic: string, runId: string, most: number): boolean {
    const waits = this.waitsOn('topic', topic)
    return waits.length >= most && !waits.some((wait) => wait.runId === runId)
  }

  lateOf(topic: string, after: WaitPosition | null, most: number): WaiterPage {
    const all = this.waitsOn('topic', topic).filter((one) => one.missed !== null && isAfter(one, after))
    return firstWaiters(all, most)
  }

  setMissed(wait: WaitRow, missed: number | null): void {
    this.waits = this.waits.map((one) =>
      one.target === wait.target && one.runId === wait.runId ? { ...one, missed } : one,
    )
  }

  broadcastsFrom(topic: string, position: number, most: number): readonly Broadcast[] {
    const isMeant = (one: Broadcast): boolean =>
      one.topic === topic && one.delivery === 'all' && one.position >= position
    return this.broadcasts.filter(isMeant).slice(0, most)
  }

  addDelivered({ topic, position }: Broadcast, runs: number): void {
    this.broadcasts = this.broadcasts.map((one) =>
      one.topic === topic && one.position === position ? { ...one, deliveredTo: one.deliveredTo + runs } : one,
    )
  }

  topicPosition(topic: string): number {
    return this.broadcasts.filter((one) => one.topic === topic).at(-1)?.position ?? 0
  }

  broadcast(topic: string, id: string): Broadcast | undefined {
    return this.broadcasts.find((one) => one.topic === topic && one.id === id)
  }

  backlog(topic: string, delivery: Broadcast['delivery']): readonly Broadcast[] {
    return this.broadcasts.filter(
      (one) =>
        one.topic === topic &&
        one.delivery === delivery &&
        one.takenBy === null &&
        (one.expiresAt === null || one.expiresAt > this.now),
    )
  }

  put(message: MessageDraft): void {
    const run = this.known(message.runId)
    const inbox = run.inbox + 1
    this.runs.set(run.id, { ...run, inbox })
    this.messages.push({ ...message, position: inbox, at: this.now })
  }

  settle({ runId, id }: Message, fate: Fate): void {
    this.fates.set(`${runId} ${id}`, fate)
  }

  rewrite(before: Run, { run, append }: { readonly run: Run; readonly append: readonly Draft[] }): void {
    this.runs.set(before.id, run)
    this.appended.set(before.id, append)
  }

  markWatched({ id }: Run): void {
    this.runs.set(id, { ...this.known(id), watched: true })
  }

  addWait(wait: WaitRow): void {
    const isSame = (one: WaitRow): boolean => placeOf(one) === placeOf(wait)
    if (!this.waits.some(isSame)) this.waits.push(wait)
  }

  deleteWait(wait: WaitRow): void {
    this.waits = this.waits.filter((one) => placeOf(one) !== placeOf(wait))
  }

  addBroadcast(broadcast: Broadcast, retainMs: number): void {
    this.broadcasts.push(broadcast)
    this.retained.set(broadcast.topic, retainMs)
  }

  topicUse(topic: string, most: number): TopicUse | undefined {
    const all = this.waits.filter((wait) => wait.kind === 'topic' && wait.target === topic)
    const { waits, more } = firstWaiters(all, most)
    const isLive = ({ runId }: WaitRow): boolean => !isTerminal(this.known(runId).status)
    return {
      waits: waits.map((wait) => ({ wait, isLive: isLive(wait) })),
      more,
      oldest: this.broadcasts.find((one) => one.topic === topic),
      retainMs: this.retained.get(topic) ?? null,
    }
  }

  deleteTopic(topic: string): void {
    this.deletedTopics.push(topic)
  }

  lookAtTopic(topic: string, at: number): void {
    this.looks.push(`${topic} ${at}`)
  }

  takeBroadcast({ topic, position }: Broadcast, takenBy: string): void {
    this.broadcasts = this.broadcasts.map((one) =>
      one.topic === topic && one.position === position ? { ...one, takenBy } : one,
    )
  }

  forgetBroadcasts(topic: string, before: number): void {
    this.forgotten.push([topic, before])
  }
}

function placeOf({ kind, target, runId, effect }: WaitRow): string {
  return [kind, target, runId, effect].join(' ')
}
