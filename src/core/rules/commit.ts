// How a holder's transition is judged and applied, for every store. A store calls these rules inside the transaction in which
// it writes the rest, with the row of the run locked, and lends its rows as `CommitWork`.
//
// A transition is judged first (`judge.ts`). Then it takes effect, in this order: its entries are appended, so that the feed
// has them before it has those of children; its messages leave the mailbox; the run begins or ceases to watch others; its
// children begin to exist; what it sends is delivered; the lease ends, unless a message or a control request has come that the
// holder must see; and the runs that wait on this run are notified if it has ended.
//
// A store may have a cheaper way for usual transitions, one fenced statement; its result has to be the same as here.

import type { UnitOfWork } from './messages/unit-of-work.ts'
import { bug } from '../errors/error.ts'
import { dueAt } from '../model/due.ts'
import { copied, judgeSettled, withLeased, type CommitReads, type Success } from './judge.ts'
import { bindChild, conclude, refuseChild, unwatch, watch } from './messages/exchange.ts'
import type { Started } from '../model/new-run.ts'
import { isTerminal, type Run } from '../model/run.ts'
import { sendAll } from './messages/send.ts'
import { endsLease, sends, type ChildStart, type Transition } from '../model/transition.ts'

export { judge, type Committed, type CommitReads, type EntryMark, type Keyed, type Refusal } from './judge.ts'

/**
 * The rows that the rules read and write to apply a transition. The rows that these methods take and return may be the
 * store's own, which change as it writes: the rules pass none of them on.
 */
export interface CommitWork extends UnitOfWork, CommitReads {
  /** Appends the entries of a transition and moves the run on, with its lease. Answers the row as it is then. */
  advance(run: Run, transition: Transition): Run
  /** Messages leave the mailbox of a run with this entry; one that has left before stays as it is. */
  take(runId: string, ids: readonly string[], seq: number): void
  /** The row with all changes that the rules have made since: its mailbox, and whether it is watched. */
  present(run: Run): Run
  /**
   * Whether a message of one of these names came after a position that neither this transition nor another has taken; null for
   * any name.
   */
  hasMessageAfter(transition: Transition, after: number, names: readonly string[] | null): boolean
  /** Writes the row: as it is kept, or as it is left if the lease ends. Answers the row as it is then. */
  leave(before: Run, kept: Run, transition: Transition, isReleased: boolean): Run
}

/** A store that can start runs while the rules decide. */
export interface StartingWork extends CommitWork {
  /** Starts the children of a transition. One answer for each, in order. */
  startChildren(transition: Transition): readonly Started[]
}

/** A transition that is in order takes effect, and with it the one that it settles, if that is in order, too. */
export function commit(work: StartingWork, run: Run, transition: Transition): Success {
  const { settles = null, outbound } = transition
  if (settles === null) {
    const moved = beginCommit(work, run, transition)
    const hasStarts = (outbound?.starts.length ?? 0) > 0
    return endCommit(work, run, moved, transition, hasStarts ? work.startChildren(transition) : nothingStarted)
  }
  const steps = stepsOf(work, run, transition)
  let step = steps.next()
  while (step.done !== true) step = steps.next(work.startChildren(step.value))
  return step.value
}

/** The same for a store that starts children with statements of its own. One answer of `start` for each, in order. */
export async function commitInSteps(
  work: CommitWork,
  run: Run,
  transition: Transition,
  start: (transition: Transition) => Promise<readonly Started[]>,
): Promise<Success> {
  const steps = stepsOf(work, run, transition)
  let step = steps.next()
  while (step.done !== true) step = steps.next(await start(step.value))
  return step.value
}

/** Yields the transitions whose children are to be started, and goes on when they are. */
type Steps = Generator<Transition, Success, readonly Started[]>

function* stepsOf(work: CommitWork, run: Run, transition: Transition): Steps {
  const { settles = null } = transition
  if (settles === null) return yield* stepsOfOne(work, run, transition)
  const answer = judgeSettled(work, settles)
  // The run of that has the outcome in its journal then, and needs no message of it.
  if (answer === null) unwatch(work, { id: settles.runId }, { kind: 'run', runId: run.id })
  const committed = yield* stepsOfOne(work, run, transition)
  const settled = answer ?? (yield* stepsOfOne(work, work.run(settles.runId) as Run, settles))
  return { ...committed, settled }
}

function* stepsOfOne(work: CommitWork, run: Run, transition: Transition): Steps {
  const moved = beginCommit(work, run, transition)
  const hasStarts = (transition.outbound?.starts.length ?? 0) > 0
  return endCommit(work, run, moved, transition, hasStarts ? yield transition : nothingStarted)
}

/** The part before its children are started. Returns the row as it is then. */
function beginCommit(work: CommitWork, run: Run, transition: Transition): Run {
  const { guard, takes, outbound = null } = transition
  const moved = work.advance(run, transition)
  if (takes.length > 0) work.take(run.id, takes, guard.seq + 1)
  if (outbound === null) return moved
  for (const watched of outbound.unwatches) unwatch(work, moved, watched)
  for (const watched of outbound.watches) watch(work, moved, watched)
  return moved
}

/** The part after that. `moved` is the row as the first part left it, `started` the outcome of each child. */
function endCommit(
  work: CommitWork,
  run: Run,
  moved: Run,
  transition: Transition,
  started: readonly Started[],
): Success {
  const { outbound = null, guard, append } = transition
  const isSender = sends(transition)
  if (outbound !== null) bindChildren(work, moved, outbound.starts, started)
  if (isSender) sendAll(work, moved, guard.seq, append)
  // It may have sent to itself, too.
  const kept = outbound === null && !isSender ? moved : work.present(moved)
  // A run that waits on a run that is over by now has its message already.
  const released = endsLease(kept, transition, messageCheck(work, transition))
  const { seq, inbox } = kept
  const controlRequest = released ? null : copied(kept.controlRequest)
  const left = work.leave(run, kept, withMessageDue(work, kept, transition), released)
  if (released && isTerminal(left.status)) conclude(work, left)
  return withLeased(work, { outcome: 'committed', seq, at: work.now, inbox, released, controlRequest }, outbound)
}

/**
 * Who writes without a lease has not read the mailbox: a run that a message has woken stays due at once, also where the clock of
 * the store has gone back since. That it is ready says so, not its time.
 */
function withMessageDue(work: CommitWork, kept: Run, transition: Transition): Transition {
  if (transition.guard.lease !== null || transition.status !== 'waiting') return transition
  const { readiness, due } = kept
  const isDue = due !== null && (readiness === 'ready' || due <= work.now)
  if (!isDue || !work.hasMessageAfter(transition, 0, null)) return transition
  const at = Math.min(due, work.now, dueAt(transition.due, work.now) ?? due)
  return { ...transition, due: { at, afterMs: null } }
}

/** Only parking asks for messages: nothing else has a function made for it. */
function messageCheck(work: CommitWork, transition: Transition): HasMessageAfter {
  return transition.parkIf === null ? noMessage : (after, names) => work.hasMessageAfter(transition, after, names)
}

type HasMessageAfter = Parameters<typeof endsLease>[2]

const noMessage: HasMessageAfter = () => false

function bindChildren(work: UnitOfWork, parent: Run, starts: readonly ChildStart[], started: readonly Started[]): void {
  if (started.length !== starts.length) throw bug(`${starts.length} children were to start, and ${started.length} did`)
  for (const [index, { created, taken, run: found }] of started.entries()) {
    const start = starts[index] as ChildStart
    if (created) bindChild(work, parent, found, start)
    else refuseChild(work, parent, start.run.id, { taken: taken ?? 'id', by: found.id })
  }
}

const nothingStarted: readonly Started[] = []
