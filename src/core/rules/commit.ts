// How a holder's transition is judged and applied, for every store. A store calls these rules inside the transaction in which
// it writes the rest, with the row of the run locked, and lends its rows as `CommitWork`.
//
// A transition is judged first: it may repeat one that was committed, or be refused. Then it takes effect, in this order: its
// entries are appended, so that the feed has them before it has those of children; its messages leave the mailbox; the run
// begins or ceases to watch others; its children begin to exist; what it sends is delivered; the lease ends, unless a message
// or a control request has come that the holder must see; and the runs that wait on this run are notified if it has ended.
//
// A store may have a cheaper way for usual transitions, one fenced statement; its result has to be the same as here.

import type { UnitOfWork } from './messages/unit-of-work.ts'
import type { Entry } from '../model/entry.ts'
import { bug } from '../errors/error.ts'
import { bindChild, conclude, refuseChild, unwatch, watch } from './messages/exchange.ts'
import type { Started } from '../model/new-run.ts'
import { holds, isTerminal, type Run, type ControlRequest } from '../model/run.ts'
import { sendAll } from './messages/send.ts'
import {
  assertLegal,
  endsLease,
  isParkedBy,
  objection,
  sends,
  type ChildStart,
  type Transition,
} from '../model/transition.ts'

export type Committed =
  | {
      readonly outcome: 'committed'
      readonly seq: number
      readonly at: number
      /** As it stands now: the one thing that a repetition may answer otherwise. */
      readonly inbox: number
      /**
       * False when the lease was to end and did not, because a message that the run wants, or a control request, had arrived:
       * look again. The entries are appended all the same.
       */
      readonly released: boolean
      /** The control request for the holder. */
      readonly controlRequest: ControlRequest | null
    }
  | { readonly outcome: 'refused'; readonly reason: Exclude<Refusal, 'cancelling'> }
  /** `controlRequest` has the reason, as far as one was given. */
  | { readonly outcome: 'refused'; readonly reason: 'cancelling'; readonly controlRequest: ControlRequest | null }

/**
 * `not-found`: no such run. `lease-lost`: another session holds the run, or none. `stale`: the writer holds it, but the
 * journal is not where it thinks. `cancelling`: the writer holds it, but the run is being cancelled and cannot end otherwise
 * or begin anew. `timed-out`: the writer holds it, but the time for the whole run is over, and it can neither succeed nor begin
 * anew. `resumed`: the writer holds it and applies a request to pause that was taken back. `key-taken`: the run would begin
 * anew as another type, where a live run has its key. `busy`: others have locked the run, and the rest of the batch
 * were not to wait for that: send it again, alone.
 */
export type Refusal =
  'stale' | 'lease-lost' | 'not-found' | 'cancelling' | 'timed-out' | 'resumed' | 'key-taken' | 'busy'

/** Identifies the transition that appended an entry, and its time. */
export type EntryMark = Pick<Entry, 'transition' | 'at'>

/** A run, as far as it has a business key or would have one. */
export type Keyed = Pick<Run, 'id' | 'type' | 'version' | 'key' | 'keyScope'>

/** The rows that the rules read to judge a transition. */
export interface CommitReads {
  readonly now: number
  /** The entry of that place; undefined if there is none. */
  entryAt(runId: string, seq: number): EntryMark | undefined
  /** The live run, other than this one, that has the business key which this one has or would have. */
  keyHolder(run: Keyed): string | null
}

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
  /** Whether a message of one of these names came after a position that neither this transition nor another has taken. */
  hasMessageAfter(transition: Transition, after: number, names: readonly string[]): boolean
  /** Writes the row: as it is kept, or as it is left if the lease ends. Answers the row as it is then. */
  leave(before: Run, kept: Run, transition: Transition, isReleased: boolean): Run
}

/** A store that can start runs while the rules decide. */
export interface StartingWork extends CommitWork {
  /** Starts the children of a transition. One answer for each, in order. */
  startChildren(transition: Transition): readonly Started[]
}

/** The answer to a transition that is repeated or refused; null if it takes effect. */
export function judge(work: CommitReads, run: Run | undefined, transition: Transition): Committed | null {
  if (run === undefined) return refused('not-found')
  const { id, guard, append, continues } = transition
  const { seq, lease } = guard
  if (append.length > 0 && run.seq > seq && work.entryAt(run.id, seq + 1)?.transition === id) {
    return repeated(work, run, transition)
  }
  if (!holds(run, lease)) {
    return isParkedBy(run, transition)
      ? { outcome: 'committed', seq, at: run.updatedAt, inbox: run.inbox, released: true, controlRequest: null }
      : refused('lease-lost')
  }
  if (run.seq !== seq) return refused('stale')
  assertLegal(run.status, transition)
  const reason = objection(run, transition, work.now)
  if (reason === 'cancelling') return { outcome: 'refused', reason, controlRequest: copied(run.controlRequest) }
  if (reason !== null) return refused(reason)
  // A removed run has no key. This check only anticipates the refusal of a unique index.
  if (continues === null || run.deletedAt !== null) return null
  const { key, keyScope } = run
  const { type, version } = continues
  return work.keyHolder({ id: run.id, type, version, key, keyScope }) === null ? null : refused('key-taken')
}

/** The answer to a transition that was committed before, when its first answer was lost. */
function repeated(work: CommitReads, run: Run, { guard, append, status }: Transition): Committed {
  const seq = guard.seq + append.length
  const last = work.entryAt(run.id, seq)
  // A late copy of a merged transition, whose first part was committed by itself meanwhile: no caller waits for this answer.
  if (last === undefined) return refused('stale')
  const isHeld = holds(run, guard.lease)
  const controlRequest = isHeld ? copied(run.controlRequest) : null
  return {
    outcome: 'committed',
    seq,
    at: last.at,
    inbox: run.inbox,
    released: status !== null && !isHeld,
    controlRequest,
  }
}

/** A transition that is in order takes effect. */
export function commit(work: StartingWork, run: Run, transition: Transition): Committed {
  const moved = beginCommit(work, run, transition)
  const starts = transition.outbound?.starts ?? noStarts
  return endCommit(work, run, moved, transition, starts.length === 0 ? nothingStarted : work.startChildren(transition))
}

/** The part before its children are started. Returns the row as it is then. */
export function beginCommit(work: CommitWork, run: Run, transition: Transition): Run {
  const { guard, takes, outbound = null } = transition
  const moved = work.advance(run, transition)
  if (takes.length > 0) work.take(run.id, takes, guard.seq + 1)
  if (outbound === null) return moved
  for (const watched of outbound.unwatches) unwatch(work, moved, watched)
  for (const watched of outbound.watches) watch(work, moved, watched)
  return moved
}

/** The part after that. `moved` is the row as the first part left it, `started` the outcome of each child. */
export function endCommit(
  work: CommitWork,
  run: Run,
  moved: Run,
  transition: Transition,
  started: readonly Started[],
): Committed {
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
  const left = work.leave(run, kept, transition, released)
  if (released && isTerminal(left.status)) conclude(work, left)
  return { outcome: 'committed', seq, at: work.now, inbox, released, controlRequest }
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

const noStarts: readonly ChildStart[] = []
const nothingStarted: readonly Started[] = []

function refused(reason: Exclude<Refusal, 'cancelling'>): Committed {
  return { outcome: 'refused', reason }
}

/** Copied, so that a caller that changes its answer does not change the stored row. */
function copied(controlRequest: ControlRequest | null): ControlRequest | null {
  return controlRequest === null ? null : { ...controlRequest }
}
