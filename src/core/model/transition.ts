// A transition: an atomic, fenced append to one run's journal together with the change of the run's row. It is the only way
// in which a holder changes its run, and in which a process that does not hold a waiting run decides an input for it.
//
// Transitions of one run that queue up behind a flush are merged into one, because two rows of one run in a single UPDATE
// corrupt silently. Merging is associative, and the merged transition does what the two would have done one after the other.
// Nothing can follow a transition that gives the lease away, so nothing is merged into such a one; nor into one that
// continues the run as new, because its last entry is the new input, nor into one with outbound effects. Only a transition
// that was never sent may be merged into: a merged transition has the id of its first, and a store that knows that id from
// an earlier sending treats the whole as a repetition.
//
// A transition is bounded in entries and bytes, so that no statement grows without bound. More entries become several
// transitions of the run, in order.

import { bug } from '../errors/error.ts'
import { utf8Weight } from '../text/bytes.ts'
import type { Due } from './due.ts'
import type { Damaged, Draft } from './entry.ts'
import type { WaitTarget } from './wait-target.ts'
import type { NewRun } from './new-run.ts'
import { isSending } from './message.ts'
import { mayMove, type Lease, type Run, type RunStatus, type UndoState } from './run.ts'

/** The most entries of a transition, merged or not. */
export const mostEntries = 500

/** The most bytes of a transition by `sizeOf`, unless a single entry is larger. */
export const mostBytes = 4 * 1024 * 1024

/** The bytes of an entry besides its payload, and of a condition of a wait. */
const entryBytes = 100

/** The bytes of a started run besides its input and metadata. */
const startBytes = 500

/** The approximate size of an entry in bytes, with its name and payload as UTF-8. */
export function sizeOf({ kind, name, meta, data }: Draft): number {
  const bytes = entryBytes + utf8Weight(name) + utf8Weight(data)
  return kind === 'waiting' ? bytes + entryBytes * meta.conditions.length : bytes
}

/** The same of the runs that a transition starts: their inputs and metadata are part of it. */
export function startsSizeOf(starts: readonly ChildStart[]): number {
  return starts.reduce(
    (bytes, { run }) => bytes + startBytes + utf8Weight(run.first.data) + utf8Weight(run.metadata),
    0,
  )
}

/** How many of the first of this many entries fit into one transition, by their sizes: at least one. */
export function mostTogether(entries: number, sizeAt: (at: number) => number): number {
  let [count, bytes] = [0, 0]
  while (count < entries && count < mostEntries) {
    bytes += sizeAt(count)
    if (count > 0 && bytes > mostBytes) break
    count += 1
  }
  return count
}

/** The statuses that a holder may set. `running` is not among them: only a claim sets it. */
export type NextStatus = Exclude<RunStatus, 'running'>

/** The workflow of a run that continues as new with its last entry as input. */
export interface Continuation {
  readonly type: string
  readonly version: number
  /** It is in the feed from its input on. */
  readonly feed: boolean
}

export interface Transition {
  /**
   * Client-made. Repeating a committed transition returns the first answer. One that appends nothing leaves no id behind:
   * its repetition is recognised only until the next claim, and then refused.
   */
  readonly id: string
  readonly runId: string
  readonly guard: {
    /** The run's `seq` before this transition. */
    readonly seq: number
    /** Null: the run waits, nobody holds it, and `seq` alone is the fence. It stays `waiting` then, or ends. */
    readonly lease: Lease | null
  }
  /**
   * At least one entry, except when the run is parked again and nothing new happened. Entries of messages that the run sends
   * (`core/model/message.ts`) are delivered with the commit.
   */
  readonly append: readonly Draft[]
  /** The status that it leads to, or null for a checkpoint: the run stays leased. */
  readonly status: NextStatus | null
  /** Only together with a status: a run that stays leased is not due. */
  readonly due: Due | null
  /**
   * Park only if no wanted message arrived since the holder read the mailbox: otherwise append, keep the lease and answer
   * so.
   */
  readonly parkIf: Parking | null
  /** The undo state of the run from here on; null if it does not change. A run that undoes has no timeout. */
  readonly undo: UndoState | null
  /** The last entry is the input of a new incarnation: `base` moves there, and there is nothing to undo. */
  readonly continues: Continuation | null
  /** Ids of the messages that leave the mailbox with it. */
  readonly takes: readonly string[]
  /** Its effects on other runs and topics, with at least one entry; null or left out if none. */
  readonly outbound?: Outbound | null
  /**
   * Only for an end: the mailbox was empty, except for the messages that this takes, when that many messages had arrived.
   * Left out if that is not known: then the store looks for unread messages.
   */
  readonly emptyAt?: number | undefined
  /** The id of the key that the run is written with from here on. @default null, it stays as it is */
  readonly keyId?: string | null
  /**
   * Whether the run is in the feed, as far as its holder knows. The row of the run decides: this lets a store choose a
   * cheaper statement for other runs at once. @default false
   */
  readonly feed?: boolean
  /**
   * It carries out a control request, and is refused if the request was withdrawn. @default it is the holder's own decision
   */
  readonly applies?: 'pause' | null
  /**
   * The number of a snapshot among its entries: the next load begins there. @default null, the base stays as it is
   */
  readonly base?: number | null
  /**
   * Only for a success or a failure: the transition with which the parent of this run records that outcome, without a lease of
   * its own. If both are in order, both take effect, and the parent gets no message of the end. If only this one is, this one
   * takes effect alone. @default null, it settles nothing
   */
  readonly settles?: Transition | null
}

/** How far a parked run has read its mailbox, and which messages it wants. */
export interface Parking {
  /** How many messages had arrived when its holder read the mailbox. */
  readonly inbox: number
  /**
   * The names of the messages that can move it on; null if any may. Others stay in the mailbox and do not wake it. @default
   * null
   */
  readonly wakeNames?: readonly string[] | null
}

/** The effects of a transition on other runs and topics, in the same commit. */
export interface Outbound {
  /** Runs to start, in this order. One that is refused is reported as `refused` in the mailbox. */
  readonly starts: readonly ChildStart[]
  /**
   * The runs and topics that it watches from here on: retained broadcasts, or the end of a run that is over, come into its
   * mailbox.
   */
  readonly watches: readonly WaitTarget[]
  /** The runs and topics that it no longer watches. */
  readonly unwatches: readonly WaitTarget[]
}

/** The bond between a run and the run that started it. */
export interface ChildBond {
  /** Its parent watches it. */
  readonly awaited: boolean
  /**
   * What happens to it when its parent ends first. `cancel`: it is cancelled; but an effect of a decider goes on, unless its
   * instance was cancelled or removed.
   */
  readonly onParentEnd: 'cancel' | 'abandon'
}

/** A run that is started by another one. */
export interface ChildStart extends ChildBond {
  /** Its `parentId` is the run that starts it. If it is leased, a process that has a slot for it performs it without a claim. */
  readonly run: NewRun
}

/** The same, but no child is leased: inside a transaction of a user nothing is. */
export function withoutLeases(transition: Transition): Transition {
  const { outbound = null, settles = null } = transition
  if (outbound === null && settles === null) return transition
  const unleased = (start: ChildStart): ChildStart => ({ ...start, run: { ...start.run, lease: null } })
  return {
    ...transition,
    outbound: outbound === null ? null : { ...outbound, starts: outbound.starts.map(unleased) },
    settles: settles === null ? null : withoutLeases(settles),
  }
}

/** Parking without an entry leaves no id behind, but only its holder can have parked a run under that token. */
export function isParkedBy(run: Pick<Run, 'status' | 'token' | 'seq'>, { append, guard }: Transition): boolean {
  const { seq, lease } = guard
  return append.length === 0 && run.status === 'waiting' && run.token === lease?.token && run.seq === seq
}

/** Throws at a transition that only a defect of the engine could send for a run in this status. */
export function assertLegal(from: RunStatus, transition: Transition): void {
  if (transition.guard.lease === null) return assertLegalUnheld(transition)
  const { runId, append, status, parkIf, continues, outbound } = transition
  if (append.length === 0 && status !== 'waiting') throw bug('A transition appends nothing', { runId })
  // Without an entry its repetition could not be recognised, and its outbound effects would happen twice.
  if (append.length === 0 && isFar(outbound)) throw bug('A transition that reaches others appends nothing', { runId })
  // A holder that has not noticed the cancellation may send a move that was valid before: it is refused, not treated as a
  // defect.
  const known = from === 'cancelling' && status !== 'cancelling' ? 'running' : from
  if (status !== null && !mayMove(known, status)) throw bug(`A run cannot go from ${from} to ${status}`, { runId })
  if ((status === 'waiting') !== (parkIf !== null)) {
    throw bug('Parking, and only parking, says what it has seen', { runId })
  }
  if (continues !== null && append.at(-1)?.kind !== 'continued') {
    throw bug('A run that begins anew needs an input', { runId })
  }
  assertBase(transition)
  assertSettles(transition)
}

/** A process that does not hold the run decides an input: it reads no mailbox, and undoes nothing. */
function assertLegalUnheld(transition: Transition): void {
  const { runId, append, status, parkIf, continues, undo, takes, applies = null, settles = null } = transition
  if (append.length === 0) throw bug('A transition without a lease appends nothing', { runId })
  if (status !== 'waiting' && status !== 'succeeded' && status !== 'failed') {
    throw bug(`A transition without a lease leads to ${String(status)}`, { runId })
  }
  const isHolders = takes.length > 0 || [parkIf, continues, undo, applies, settles].some((one) => one !== null)
  if (isHolders) throw bug('A transition without a lease does what only a holder does', { runId })
  assertBase(transition)
}

function assertBase({ runId, guard, append, base = null }: Transition): void {
  if (base === null || append[base - guard.seq - 1]?.kind === 'snapshot') return
  throw bug('The base moves to an entry that is no snapshot', { runId, base })
}

function assertSettles({ runId, status, settles = null }: Transition): void {
  if (settles === null) return
  if (status !== 'succeeded' && status !== 'failed') throw bug('A run without an outcome settles something', { runId })
  if (settles.guard.lease !== null || settles.runId === runId) {
    throw bug('A run settles with a lease, or itself', { runId })
  }
}

function isFar(outbound: Outbound | null | undefined): boolean {
  return (
    outbound !== null &&
    outbound !== undefined &&
    Object.values(outbound).some((list: readonly unknown[]) => list.length > 0)
  )
}

/**
 * Why a holder's valid transition does not take effect; null if it does. Nothing is appended then: the holder may repeat the
 * entries before the last one as a checkpoint. `cancelling`: the run is being cancelled, and this would set another status.
 * `timed-out`: the run has timed out, so it can neither succeed nor continue as new. `resumed`: a pause was requested, and
 * the request was withdrawn.
 */
export function objection(
  { status, controlRequest, timeoutAt, deletedAt }: Pick<Run, 'status' | 'controlRequest' | 'timeoutAt' | 'deletedAt'>,
  { status: next, continues, applies = null }: Transition,
  now: number,
): 'cancelling' | 'timed-out' | 'resumed' | null {
  const isNew = continues !== null
  if (status === 'cancelling' && (isElsewhere(next) || isNew)) return 'cancelling'
  // A removed run does not time out.
  const isLate = timeoutAt !== null && timeoutAt <= now && deletedAt === null
  if (isLate && (next === 'succeeded' || isNew)) return 'timed-out'
  return applies !== null && controlRequest?.kind !== applies ? 'resumed' : null
}

/**
 * Whether the lease ends with a holder's transition that takes effect. The lease stays if the transition does not end
 * it, or if the holder has something to handle: a control request, or a message that the run would wait for. `hasMessageAfter` says
 * whether a message of those names has arrived after a position and was not taken; it is called only if it matters.
 */
export function endsLease(
  { status, controlRequest, inbox }: Pick<Run, 'status' | 'controlRequest' | 'inbox'>,
  { status: next, parkIf }: Transition,
  hasMessageAfter: (after: number, names: readonly string[]) => boolean,
): boolean {
  if (next === null) return false
  if (next === 'cancelling' || next === 'cancelled') return true
  // A later holder of a cancelling run may find no control request, but it may not leave the cancellation either.
  const called = controlRequest !== null || status === 'cancelling'
  if ((next === 'waiting' || next === 'pending') && called) return false
  if (parkIf === null || parkIf.inbox === inbox) return true
  const { wakeNames = null } = parkIf
  return wakeNames !== null && (wakeNames.length === 0 || !hasMessageAfter(parkIf.inbox, wakeNames))
}

function isElsewhere(status: NextStatus | null): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'paused'
}

/**
 * Whether the run has work to do before it may fail or be cancelled: a step to undo, or a child that it must outlast.
 * So only its holder can end it.
 */
export function delaysEnd(draft: Draft | Damaged): boolean {
  if (draft.kind === 'begun') return true
  if (isUndoable(draft)) return draft.meta.undo === true
  if (draft.kind !== 'waiting' || draft.meta.started === undefined) return false
  return Object.values(draft.meta.started).some(({ outlasted }) => outlasted === true)
}

/** Whether it is an entry of a step that may have to be undone. */
function isUndoable(
  draft: Draft | Damaged,
): draft is Extract<Draft, { kind: 'step-succeeded' | 'step-failed' | 'abandoned' }> {
  return draft.kind === 'step-succeeded' || draft.kind === 'step-failed' || draft.kind === 'abandoned'
}

/** The undo state of the run after these entries; null if they do not change it. */
export function undoOf(append: readonly Draft[]): UndoState | null {
  let undo: UndoState | null = null
  for (const draft of append) {
    if (draft.kind === 'failing') return 'due'
    if (delaysEnd(draft)) undo = 'possible'
  }
  return undo
}

/** The undo state of a run after a transition: `due` never goes back. */
export function undoAfter(before: UndoState, said: UndoState | null): UndoState {
  return said === null || before === 'due' ? before : said
}

/** Whether it sends messages, to runs or to topics: its entries say which. */
export function sends({ append }: Pick<Transition, 'append'>): boolean {
  return append.some(isSending)
}

/** Whether `second` may be merged into `first`. */
export function mayMerge(first: Transition, second: Transition): boolean {
  return (
    first.runId === second.runId &&
    // Without a lease the run waits after the first, and so the second may follow.
    first.status === (first.guard.lease === null ? 'waiting' : null) &&
    first.continues === null &&
    (first.outbound ?? null) === null &&
    isSameLease(first.guard.lease, second.guard.lease) &&
    first.guard.seq + first.append.length === second.guard.seq &&
    // The caller checks the size of the whole: measuring it here would cost at every merge.
    first.append.length + second.append.length <= mostEntries
  )
}

function isSameLease(one: Lease | null, other: Lease | null): boolean {
  return one === null || other === null ? one === other : one.token === other.token && one.session === other.session
}

/** One transition with the effects of the two, one after the other. */
export function mergeTransitions(first: Transition, second: Transition): Transition {
  if (!mayMerge(first, second)) throw bug('These transitions cannot be merged', { first, second })
  return {
    id: first.id,
    runId: first.runId,
    guard: first.guard,
    append: [...first.append, ...second.append],
    status: second.status,
    due: second.due,
    parkIf: second.parkIf,
    undo: first.undo === null ? second.undo : undoAfter(first.undo, second.undo),
    continues: second.continues,
    takes: [...first.takes, ...second.takes],
    outbound: second.outbound ?? null,
    emptyAt: second.emptyAt,
    keyId: second.keyId ?? first.keyId ?? null,
    applies: second.applies ?? null,
    feed: first.feed ?? false,
    base: second.base ?? first.base ?? null,
    settles: second.settles ?? null,
  }
}
