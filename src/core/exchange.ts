// What passes between runs, and between runs and topics. These rules are decided here, once, for every store: who is told
// of an end, who gets a broadcast, what becomes of what nobody read. A store calls them inside the transaction in which the
// rest of the same operation takes place, and lends them its rows as `Books`.
//
// Whoever waits on something registers under the lock of that (the run, the topic), and looks then; whoever ends or sends
// takes the same lock, and then looks who waits. So one of the two sees the other. Locks are taken in one order everywhere:
// runs by their id, then topics by their name.

import type { Entry } from './entry.ts'
import { broadcastMessageId, passedOnId, type Ended, type Fate, type Message, type Refused } from './message.ts'
import type { Rewrite } from './rewrite.ts'
import { isTerminal, type Run } from './run.ts'
import { cancelForParent } from './steering.ts'
import { targetOf, type Watched } from './watched.ts'
import { rememberedMs, type Broadcast, type Delivery, type TopicRules } from './topic.ts'

/** Somebody waits on a run's end or on a topic. */
export interface WaitRow {
  readonly kind: 'run' | 'topic'
  /** The id of that run, or the name of that topic. */
  readonly target: string
  /** Who waits. */
  readonly runId: string
  /** What happens to it: it is told, or it is cancelled because the run that started it has ended. */
  readonly effect: 'tell' | 'cancel'
  /** How the topic delivers; null of a run. */
  readonly delivery: Delivery | null
  readonly openedAt: number
}

/** A message before it has its place in a mailbox. */
export type Letter = Omit<Message, 'position' | 'at'>

/** What became of something that was sent to a topic. */
export interface Sent {
  readonly outcome: 'delivered' | 'queued'
  /** To how many runs it went at once. */
  readonly runs: number
  readonly repeated?: true
}

/** The rows that the rules read and write. Every run and topic that they name is locked. */
export interface Books {
  readonly now: number
  /** The run as it is by now. */
  run(id: string): Run | undefined
  /** The last entry of a run that has ended. */
  lastEntry(run: Run): Pick<Entry, 'seq' | 'kind' | 'meta' | 'data'>
  /**
   * Messages of a run that no transition has taken, first in first out: all that go on to a topic when it ends, and of the
   * others as many as the store cares to list, because they may be a million.
   */
  unread(runId: string): readonly Message[]
  /** Whether a message of that id was ever put into the mailbox of that run. */
  hasMessage(runId: string, id: string): boolean
  /** Those that wait on that, the longest first; equal ones by the id of who waits. */
  waitsOn(kind: WaitRow['kind'], target: string): readonly WaitRow[]
  /** The position of the last broadcast of a topic; 0 if there was none. */
  topicPosition(topic: string): number
  broadcast(topic: string, id: string): Broadcast | undefined
  /** What a topic keeps of that delivery and nobody has taken, and that has not expired; the oldest first. */
  backlog(topic: string, delivery: Delivery): readonly Broadcast[]

  /** Puts a message into a mailbox, at the next position, and wakes the run if it waits. */
  put(letter: Letter): void
  /** A message leaves the mailbox of a run that has ended, with its last entry. */
  settle(message: Message, fate: Fate): void
  /** So do all that `unread` did not list: as dead letters if their policy says so, and otherwise discarded. */
  settleRest(runId: string): void
  /** Makes the row what was decided, and appends to its journal. */
  rewrite(before: Run, write: Rewrite): void
  /** From here on its end has to be told. */
  markWatched(run: Run): void
  /** The same wait again changes nothing. */
  addWait(wait: WaitRow): void
  /** Whoever waits so on that, since whenever, does no more. */
  deleteWait(wait: WaitRow): void
  addBroadcast(broadcast: Broadcast): void
  takeBroadcast(broadcast: Broadcast, runId: string): void
  /** Some of what a topic kept since before that time may go: what nobody can get any more. */
  forgetBroadcasts(topic: string, before: number): void
}

/** A run waits on the end of another run, or on a topic, from here on. What it has missed is put into its mailbox now. */
export function watch(books: Books, run: Run, watched: Watched): void {
  if (watched.kind === 'run') return watchRun(books, run, watched.runId)
  const { name, delivery, retainMs } = watched
  const backlog = delivery === 'topic' && retainMs === 0 ? [] : books.backlog(name, delivery)
  if (delivery === 'queue') {
    const [first] = backlog
    if (first !== undefined) {
      books.takeBroadcast(first, run.id)
      return books.put(broadcastLetter(run.id, first))
    }
  } else {
    for (const broadcast of backlog) {
      const letter = broadcastLetter(run.id, broadcast)
      const isKept = broadcast.at > books.now - retainMs
      if (isKept && !books.hasMessage(run.id, letter.id)) books.put(letter)
    }
  }
  books.addWait({ kind: 'topic', target: name, runId: run.id, effect: 'tell', delivery, openedAt: books.now })
}

function watchRun(books: Books, run: Run, runId: string): void {
  const target = books.run(runId)
  if (target === undefined || isTerminal(target.status)) return tellEnd(books, run, runId, target)
  books.markWatched(target)
  books.addWait({ kind: 'run', target: runId, runId: run.id, effect: 'tell', delivery: null, openedAt: books.now })
}

/** A run waits no more on that. */
export function unwatch(books: Pick<Books, 'now' | 'deleteWait'>, run: Pick<Run, 'id'>, watched: Watched): void {
  // Not found by looking at all who wait there: they may be thousands, and each of them leaves like this.
  const wait = { kind: watched.kind, target: targetOf(watched), runId: run.id, effect: 'tell', delivery: null } as const
  books.deleteWait({ ...wait, openedAt: books.now })
}

/** A run was started by another one: it is told of its end, and ends it with its own, as far as it wants that. */
export function bindChild(books: Books, parent: Run, child: Run, how: ChildBond): void {
  if (how.awaited) watchRun(books, parent, child.id)
  if (how.onParentEnd !== 'cancel') return
  books.markWatched(books.run(parent.id) ?? parent)
  const wait = { kind: 'run', target: parent.id, runId: child.id, effect: 'cancel', delivery: null } as const
  books.addWait({ ...wait, openedAt: books.now })
}

export interface ChildBond {
  /** Its parent watches it. */
  readonly awaited: boolean
  /** What becomes of it when its parent ends first. */
  readonly onParentEnd: 'cancel' | 'abandon'
}

/** A child could not be started. */
export function refuseChild(books: Books, parent: Run, childId: string, refused: Refused): void {
  const data = JSON.stringify(refused)
  books.put({ id: `refused:${childId}`, runId: parent.id, kind: 'refused', name: childId, data, policy: null })
}

/** Something is sent to a topic. */
export function broadcast(
  books: Books,
  { name, delivery, retainMs }: TopicRules,
  sent: Pick<Broadcast, 'id' | 'data' | 'policy' | 'expiresAt'>,
): Sent {
  const known = books.broadcast(name, sent.id)
  if (known !== undefined) return { ...outcomeOf(known.told), repeated: true }
  const waiters = books.waitsOn('topic', name).filter((wait) => wait.delivery === delivery)
  const live: Run[] = []
  for (const wait of waiters) {
    if (delivery === 'queue' && live.length > 0) break
    const run = books.run(wait.runId)
    if (run !== undefined && !isTerminal(run.status) && run.deletedAt === null) live.push(run)
    // Runs that end while they wait leave their waits behind: they go when they are next met.
    else books.deleteWait(wait)
  }
  const { now } = books
  const position = books.topicPosition(name) + 1
  const takenBy = delivery === 'queue' ? (live[0]?.id ?? null) : null
  const row: Broadcast = { ...sent, topic: name, position, delivery, at: now, takenBy, told: live.length }
  books.addBroadcast(row)
  for (const run of live) {
    books.put(broadcastLetter(run.id, row))
    const wait = delivery === 'queue' ? waiters.find(({ runId }) => runId === run.id) : undefined
    if (wait !== undefined) books.deleteWait(wait)
  }
  books.forgetBroadcasts(name, now - Math.max(retainMs, rememberedMs))
  return outcomeOf(live.length)
}

function outcomeOf(runs: number): Sent {
  return { outcome: runs === 0 ? 'queued' : 'delivered', runs }
}

function broadcastLetter(runId: string, sent: Broadcast): Letter {
  const { topic, data, policy } = sent
  return { id: broadcastMessageId(sent), runId, kind: 'broadcast', name: topic, data, policy }
}

/** Tells whether others have to know what has just become of a run: it has ended, or was removed before it could. */
export function hasParted(before: Pick<Run, 'status' | 'deletedAt'>, { status, deletedAt }: Run): boolean {
  if (isTerminal(before.status)) return false
  return isTerminal(status) || (deletedAt !== null && before.deletedAt === null)
}

/** A run has come to its end, in whatever way, or was removed. Call it once, when its row and its last entry say so. */
export function conclude(books: Books, run: Run): void {
  if (run.watched) {
    for (const wait of books.waitsOn('run', run.id)) {
      books.deleteWait(wait)
      const other = books.run(wait.runId)
      if (other === undefined || isTerminal(other.status)) continue
      // A removed run will never come to its end: for those who wait it is not there.
      if (wait.effect === 'tell') tellEnd(books, other, run.id, isTerminal(run.status) ? run : undefined)
      else cancelChild(books, other, run)
    }
    if (run.parentId !== null) forgetChild(books, run.parentId, run.id)
  }
  if (run.inbox === 0 || !isTerminal(run.status)) return
  for (const message of books.unread(run.id)) giveUp(books, message)
  books.settleRest(run.id)
}

/** A child that is over need not be cancelled any more: a run may start thousands, one after the other. */
function forgetChild(books: Books, parentId: string, runId: string): void {
  const wait = { kind: 'run', target: parentId, runId, effect: 'cancel', delivery: null } as const
  books.deleteWait({ ...wait, openedAt: books.now })
}

function cancelChild(books: Books, child: Run, parent: Run): void {
  const write = cancelForParent(child, `Its parent ${parent.id} has ended.`, books.now)
  if (write !== null) books.rewrite(child, write)
}

/** What becomes of a message whose run has ended. */
export function giveUp(books: Books, message: Message): void {
  const { policy, name, data } = message
  if (policy === null) return books.settle(message, 'discarded')
  if (policy.onTargetTerminated === 'dead-letter') return books.settle(message, 'dead')
  books.settle(message, 'broadcast')
  const { delivery, retainMs } = policy
  broadcast(books, { name, delivery, retainMs }, { id: passedOnId(message), data, policy, expiresAt: null })
}

function tellEnd(books: Books, run: Run, endedId: string, ended: Run | undefined): void {
  const data = JSON.stringify(endOf(books, ended))
  // A run may watch the same run again, and be told again.
  const id = `ended:${endedId}:${(books.run(run.id) ?? run).inbox + 1}`
  books.put({ id, runId: run.id, kind: 'ended', name: endedId, data, policy: null })
}

function endOf(books: Books, run: Run | undefined): Ended {
  if (run === undefined) return { status: 'not-found' }
  const { seq, kind, meta, data } = books.lastEntry(run)
  const reason = kind === 'cancelled' ? (meta as { readonly reason: string | null }).reason : null
  return { status: run.status as 'succeeded' | 'failed' | 'cancelled', seq, data, reason }
}
