// A transition: an atomic, fenced append to one run's journal together with what it makes of the run's row.
// It is the only way in which a run changes once it exists.
//
// Transitions of one run that queue up behind a flush are merged into one, because two rows of one run in a single
// UPDATE corrupt silently. Merging is associative, and the merged transition does what the two would have done one
// after the other. Nothing can follow a transition that gives the lease away, so such a one is never merged into; nor is
// one that lets the run begin anew, because it says so of its last entry, nor one that reaches others.
// Only what was never sent may be merged into: a merged transition has the id of its first, and a store that knows that
// id from an earlier sending takes the whole for a repetition.
//
// A transition is bounded in entries and bytes, so that no statement grows with what a run happens to do at once. What is
// more goes as several transitions of the run, in order.

import { bug } from '../errors/error.ts'
import type { Due } from './due.ts'
import type { Draft } from './entry.ts'
import type { ChildBond } from '../rules/exchange.ts'
import type { WaitTarget } from './wait-target.ts'
import type { NewRun } from './new-run.ts'
import { mayMove, type Lease, type Run, type RunStatus, type UndoState } from './run.ts'

/** A transition appends at most so many entries, however it came about. */
export const mostEntries = 500

/** A transition weighs at most this much by `sizeOf`, unless a single entry weighs more. */
export const mostBytes = 4 * 1024 * 1024

/** What an entry costs besides its payload, and what a condition of a wait costs. */
const entryBytes = 100

/** What a run costs besides its input that a transition starts. */
const startBytes = 500

/**
 * About how many bytes an entry weighs. Characters are counted, because encoding a text to find out would cost as much as
 * sending it: text in other scripts than Latin may take up to three times as many bytes.
 */
export function sizeOf({ kind, name, meta, data }: Draft): number {
  const bytes = entryBytes + (name?.length ?? 0) + (data?.length ?? 0)
  return kind === 'waiting' ? bytes + entryBytes * meta.conditions.length : bytes
}

/** The same of the runs that are started with entries: their inputs go with them. */
export function startsSizeOf(starts: readonly ChildStart[]): number {
  return starts.reduce((bytes, { run }) => bytes + startBytes + (run.first.data?.length ?? 0), 0)
}

/** How many of the first of these entries go together, by what each weighs: at least one. */
export function mostTogether(sizes: readonly number[]): number {
  let [count, bytes] = [0, 0]
  while (count < sizes.length && count < mostEntries) {
    bytes += sizes[count] ?? 0
    if (count > 0 && bytes > mostBytes) break
    count += 1
  }
  return count
}

/** What a holder may make of its run. `running` is not among them: only a claim leads there. */
export type NextStatus = Exclude<RunStatus, 'running'>

/** What a run is when it begins anew with its last entry as input. */
export interface Continuation {
  readonly type: string
  readonly version: number
  /** The feed tells of it from its input on. */
  readonly feed: boolean
}

export interface Transition {
  /**
   * Client-made. Repeating a transition that was committed answers as it did the first time. One that appends nothing
   * leaves no id behind: it is known again only until the next claim, and then refused.
   */
  readonly id: string
  readonly runId: string
  readonly guard: {
    /** The run's `seq` before this transition. */
    readonly seq: number
    readonly lease: Lease
  }
  /** At least one entry, except when the run is parked again and nothing new happened. */
  readonly append: readonly Draft[]
  /** The status that it leads to, or null for a checkpoint: the run stays leased. */
  readonly status: NextStatus | null
  /** Of meaning only together with a status: a run that stays leased is not due. */
  readonly due: Due | null
  /** Park only if no message that it wants arrived since the holder looked: otherwise append, keep the lease and say so. */
  readonly parkIf: Parking | null
  /** What the run has to undo from here on; null if that stays as it is. A run that undoes has no bound on its time. */
  readonly undo: UndoState | null
  /** The last entry is the input of a new incarnation: `base` moves there, and there is nothing to undo. */
  readonly continues: Continuation | null
  /** Ids of the messages that leave the mailbox with it. */
  readonly takes: readonly string[]
  /** What it does beyond its own run, with at least one entry; null or left out if nothing. */
  readonly outbound?: Outbound | null
  /**
   * Of meaning only for an end: the mailbox was empty, but for what this takes, when that many messages had arrived. Left
   * out if that is not known: then the store looks for what nobody has read.
   */
  readonly emptyAt?: number | undefined
  /** The id of the key that the run is written with from here on. @default null, it stays as it is */
  readonly keyId?: string | null
  /**
   * The run is one of which the feed tells, as far as its holder knows. The row of the run decides: this only spares a store that
   * has a cheaper statement for the others a second look. @default false
   */
  readonly feed?: boolean
  /** It does what a control request asks for, and is refused if nobody asks for that any more. @default it is the holder's own will */
  readonly applies?: 'pause' | null
}

/** What a run that is parked has seen of its mailbox, and what it wants of it. */
export interface Parking {
  /** How many messages had arrived when its holder looked. */
  readonly inbox: number
  /** The names of the messages that can move it on; null if any may. Others lie in the mailbox and do not wake it. @default null */
  readonly wakeNames?: readonly string[] | null
}

/** What a transition does to others, in the same commit. */
export interface Outbound {
  /** Runs that begin to exist, in this order. One that cannot is told as `refused` in the mailbox. */
  readonly starts: readonly ChildStart[]
  /** What the run watches from here on: what it has missed, or the end of a run that is over, comes into its mailbox. */
  readonly watches: readonly WaitTarget[]
  /** What it watches no more. */
  readonly unwatches: readonly WaitTarget[]
}

/** A run that is started by another one. */
export interface ChildStart extends ChildBond {
  /** Its `parentId` is the run that starts it. It is not leased. */
  readonly run: NewRun
}

/** Parking without an entry leaves no id behind, but only its holder can have parked a run under that token. */
export function isParkedBy(run: Pick<Run, 'status' | 'token' | 'seq'>, { append, guard }: Transition): boolean {
  return append.length === 0 && run.status === 'waiting' && run.token === guard.lease.token && run.seq === guard.seq
}

/** Throws at what only a defect of the engine could ask of a run that has this status. */
export function assertLegal(from: RunStatus, transition: Transition): void {
  const { runId, append, status, parkIf, continues, outbound } = transition
  if (append.length === 0 && status !== 'waiting') throw bug('A transition appends nothing', { runId })
  // Without an entry its repetition could not be told from it, and others would be reached twice.
  if (append.length === 0 && isFar(outbound)) throw bug('A transition that reaches others appends nothing', { runId })
  // A holder that has not noticed the cancellation may ask for what it could have had: it is told, not blamed.
  const asked = from === 'cancelling' && status !== 'cancelling' ? 'running' : from
  if (status !== null && !mayMove(asked, status)) throw bug(`A run cannot go from ${from} to ${status}`, { runId })
  if ((status === 'waiting') !== (parkIf !== null)) {
    throw bug('Parking, and only parking, says what it has seen', { runId })
  }
  if (continues !== null && append.at(-1)?.kind !== 'continued') {
    throw bug('A run that begins anew needs an input', { runId })
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
 * Why a holder's transition that is in order does not take effect; null if it does. Nothing is appended then: the holder may
 * repeat what comes before the last entry as a checkpoint. `cancelling`: the run is being cancelled, and this would lead
 * elsewhere. `timed-out`: the time for the whole run is over, so it can neither succeed nor begin anew. `resumed`: somebody
 * asked for a pause, and has taken that back.
 */
export function objection(
  { status, controlRequest, timeoutAt, deletedAt }: Pick<Run, 'status' | 'controlRequest' | 'timeoutAt' | 'deletedAt'>,
  { status: next, continues, applies = null }: Transition,
  now: number,
): 'cancelling' | 'timed-out' | 'resumed' | null {
  const isNew = continues !== null
  if (status === 'cancelling' && (isElsewhere(next) || isNew)) return 'cancelling'
  // Time ends nothing that was removed.
  const isLate = timeoutAt !== null && timeoutAt <= now && deletedAt === null
  if (isLate && (next === 'succeeded' || isNew)) return 'timed-out'
  return applies !== null && controlRequest?.kind !== applies ? 'resumed' : null
}

/**
 * Tells whether the lease ends with a holder's transition that takes effect. It stays if that is not asked for, or if there is
 * something to look at: a control request, or a message that the run would wait for. `hasMail` tells whether one of those names has
 * arrived after a position and was not taken; it is asked only if it matters.
 */
export function endsLease(
  { status, controlRequest, inbox }: Pick<Run, 'status' | 'controlRequest' | 'inbox'>,
  { status: next, parkIf }: Transition,
  hasMail: (after: number, names: readonly string[]) => boolean,
): boolean {
  if (next === null) return false
  if (next === 'cancelling' || next === 'cancelled') return true
  // Whoever goes on with a cancellation after its first holder may find no control request, but the way back is closed to it, too.
  const called = controlRequest !== null || status === 'cancelling'
  if ((next === 'waiting' || next === 'pending') && called) return false
  if (parkIf === null || parkIf.inbox === inbox) return true
  const { wakeNames = null } = parkIf
  return wakeNames !== null && (wakeNames.length === 0 || !hasMail(parkIf.inbox, wakeNames))
}

function isElsewhere(status: NextStatus | null): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'paused'
}

/** What a run has to undo once a transition has said so: what is due cannot be forgotten. */
export function undoAfter(before: UndoState, said: UndoState | null): UndoState {
  return said === null || before === 'due' ? before : said
}

/** Tells whether `second` may be merged into `first`. */
export function mayMerge(first: Transition, second: Transition): boolean {
  return (
    first.runId === second.runId &&
    first.status === null &&
    first.continues === null &&
    (first.outbound ?? null) === null &&
    first.guard.lease.token === second.guard.lease.token &&
    first.guard.lease.session === second.guard.lease.session &&
    first.guard.seq + first.append.length === second.guard.seq &&
    // Whether the whole is too heavy is judged by who merges: measuring it here would cost as often as something is added.
    first.append.length + second.append.length <= mostEntries
  )
}

/** One transition that does what the two do one after the other. */
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
  }
}
