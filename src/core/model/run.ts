// The row of a run: its status, its schedule and its lease.
//
// The status machine. Every store refuses a move that is not listed here.
//
//   pending    → running    a worker claims it, or the process that starts it leases it at once (eager start)
//              → paused     an operator, or maintenance
//              → cancelling a cancellation of a run that has something to undo: a worker claims it to do that
//              → cancelled  it has no holder and there is nothing to undo, so a cancellation takes effect at once
//              → failed     it expired before a worker began it, or its timeout is over
//   running    → waiting    every outstanding call of its body is a wait: the run is parked and holds no lease
//              → pending    given back: a retry that is due later, a shutdown; or taken over from a dead session, or
//                           from a holder that is past its deadline
//              → succeeded  the body returned
//              → failed     the body, or a bound on attempts or time, gave up
//              → paused     its code and its journal disagree (drift), a payload cannot be read (unreadable), a request to
//                           pause reached a checkpoint, or its processes died too often while they performed nothing else
//              → cancelling a cancellation while it is leased
//              → cancelled  a cancellation that does not wait for the holder
//   waiting    → running    a condition came true and a worker claimed it
//              → pending    its timeout is over, and it has something to undo before it fails
//              → succeeded, failed   a process that does not hold it decided its last input
//              → paused, cancelling, cancelled, failed   as for pending
//   paused     → pending    resumed
//              → cancelling, cancelled   cancelled while paused
//   cancelling → cancelling given back, or taken over: another worker continues its undo work
//              → cancelled  its undo work is done
//   failed     → pending    an operator's retry, which is recorded in the journal
//
// Terminal statuses have no other moves.

import type { KeyScope } from './key.ts'

export type RunStatus =
  'pending' | 'running' | 'waiting' | 'paused' | 'cancelling' | 'succeeded' | 'failed' | 'cancelled'

const moves: Readonly<Record<RunStatus, readonly RunStatus[]>> = {
  pending: ['running', 'paused', 'cancelling', 'cancelled', 'failed'],
  running: ['waiting', 'pending', 'succeeded', 'failed', 'paused', 'cancelling', 'cancelled'],
  waiting: ['running', 'pending', 'succeeded', 'failed', 'paused', 'cancelling', 'cancelled'],
  paused: ['pending', 'cancelling', 'cancelled'],
  cancelling: ['cancelling', 'cancelled'],
  succeeded: [],
  failed: ['pending'],
  cancelled: [],
}

export const runStatuses = Object.keys(moves) as RunStatus[]

/** Whether a run may go from one status to the other. */
export function mayMove(from: RunStatus, to: RunStatus): boolean {
  return moves[from].includes(to)
}

export type TerminalStatus = 'succeeded' | 'failed' | 'cancelled'

/** Whether a status is final, except for an operator's retry. */
export function isTerminal(status: RunStatus): status is TerminalStatus {
  return status === 'succeeded' || status === 'failed' || status === 'cancelled'
}

/**
 * How a run is scheduled: `ready` to be claimed, `timed` until it is due, `isolated` because it may have crashed its
 * processes and is claimed only to be performed alone, `blocked` by a limit, `leased` to a worker, or `idle` because only a
 * message or an operator can move it.
 */
export type Readiness = (typeof readinesses)[number]

export const readinesses = ['ready', 'timed', 'isolated', 'blocked', 'leased', 'idle'] as const

/** A time-bound claim on a run. The token only ever grows, and it grows when the run is claimed. */
export interface Lease {
  readonly session: string
  readonly token: number
}

/**
 * The undo work of a run: none; possible, if it should fail or be cancelled, because it has recorded steps with an `undo`;
 * or due, because it has failed and only the undo work is left.
 */
export type UndoState = (typeof undoStates)[number]

export const undoStates = ['none', 'possible', 'due'] as const

/** A request to the holder of a run. It is on the row, because only the holder may write the journal. */
export type ControlRequest =
  | { readonly kind: 'cancel'; readonly reason: string | null; readonly at: number }
  | ({ readonly kind: 'pause'; readonly reason: PauseReason; readonly at: number } & Note)

/** An operator's note on a control call: as a text, or as a codec has encrypted it for the entry that will hold it. */
export interface Note {
  readonly note: string | null
  /** Left out if the note is a text. */
  readonly sealedNote?: string
  /**
   * The `seq` for which the note of a control request was encrypted: the number of its entry is not known yet. The holder
   * encrypts it again for its own entry; a store that pauses the run in place of a holder cannot, and keeps this number with
   * the entry.
   */
  readonly sealedFor?: number
}

/**
 * Why a run was paused: by an operator, or because its processes died. One more reason, drift, is found by the engine
 * itself.
 */
export type PauseReason = 'operator' | 'maintenance' | 'crashes'

/** Why a run is to be cancelled, if it is and the request gave a reason. */
export function cancelReasonOf(controlRequest: ControlRequest | null | undefined): string | null {
  return controlRequest?.kind === 'cancel' ? controlRequest.reason : null
}

/** Whether two control requests are the same. */
export function isSameControlRequest(one: ControlRequest | null, other: ControlRequest | null): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}

export interface Run {
  readonly id: string
  readonly shard: number
  readonly type: string
  readonly version: number
  /** Its business key, unique in its scope among live runs. */
  readonly key: string | null
  readonly keyScope: KeyScope
  /** Unique among the runs of its type that are not deleted. */
  readonly idempotencyKey: string | null
  /** The run that asked for this one. */
  readonly parentId: string | null
  readonly tags: readonly string[]
  /** The metadata of its start, as the text of a JSON object; null if there is none. */
  readonly metadata: string | null
  /** Its journal is in the feed: every entry that is appended while this is set. */
  readonly feed: boolean
  /**
   * The id of the key with which its payloads were last written: of its input, and then of the entries that its holders
   * append. A worker without the key does not get the run. Null if they need none.
   */
  readonly keyId: string | null
  readonly status: RunStatus
  readonly readiness: Readiness
  /** Higher goes first. */
  readonly priority: number
  /** When it may next be claimed, in store time; null while it is leased, idle or over. */
  readonly due: number | null
  /** The number of its last journal entry. */
  readonly seq: number
  /** The entry that carries the input of the present incarnation; replay reads from there. */
  readonly base: number
  /** How many messages were ever put into its mailbox. */
  readonly inbox: number
  /** The names of the messages that wake it; null if any does. Set when it is parked, and valid until it is claimed. */
  readonly wakeNames: readonly string[] | null
  /** Another run waits for its end, or is cancelled with it. */
  readonly watched: boolean
  /** The request to its holder; null if there is none, or no holder. */
  readonly controlRequest: ControlRequest | null
  readonly undo: UndoState
  /**
   * Claims since a holder last committed anything: each but the last was a crash. An isolated claim counts only once the run
   * has begun. It is only a suspicion: it has consequences only after the run was performed alone.
   */
  readonly crashes: number
  /** The token of its last lease. */
  readonly token: number
  /** The session that holds it now. */
  readonly session: string | null
  /** The deadline of its claim, besides the heartbeat of the session; null if there is none. */
  readonly deadline: number | null
  /** When the run times out. */
  readonly timeoutAt: number | null
  /** When it fails unless it was begun by then; null once it was. */
  readonly expiresAt: number | null
  readonly createdAt: number
  /** When its last transition was committed: claims, messages and releases do not count. */
  readonly updatedAt: number
  readonly endedAt: number | null
  /** When it was removed. It is no longer leased, and its keys are free; its status stays. */
  readonly deletedAt: number | null
  readonly deleteReason: string | null
  /** Columns of its row that the engine cannot have written: they count as empty. Left out if there are none. */
  readonly damaged?: readonly string[]
}

/** A token holds only while the run is running or cancelling, and session and token both match. */
export function holds(run: Pick<Run, 'status' | 'session' | 'token'>, lease: Lease | null): boolean {
  return (
    lease !== null &&
    (run.status === 'running' || run.status === 'cancelling') &&
    run.session === lease.session &&
    run.token === lease.token
  )
}
