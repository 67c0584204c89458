// What a run is, seen from outside its journal: one row that says where the run stands and who may move it.
//
// The status machine. A move that is not told here is refused by every store.
//
//   pending    → running    a worker claims it, or the process that starts it leases it at once (eager start)
//              → paused     an operator, or maintenance
//              → cancelling a cancellation of a run that has something to undo: a worker claims it to do that
//              → cancelled  nobody holds it and there is nothing to undo, so a cancellation takes effect at once
//              → failed     it expired before anyone began it, or the time for the whole run is over
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
//              → pending    its time is over, and it has something to undo before it fails
//              → paused, cancelling, cancelled, failed   as for pending
//   paused     → pending    resumed
//              → cancelling, cancelled   cancelled while paused
//   cancelling → cancelling given back, or taken over: somebody else goes on with its undo work
//              → cancelled  its undo work is done
//   failed     → pending    an operator's retry, which stands in the journal
//
// Terminal statuses lead nowhere else.

import type { KeyScope } from './key.ts'

export type RunStatus =
  'pending' | 'running' | 'waiting' | 'paused' | 'cancelling' | 'succeeded' | 'failed' | 'cancelled'

const moves: Readonly<Record<RunStatus, readonly RunStatus[]>> = {
  pending: ['running', 'paused', 'cancelling', 'cancelled', 'failed'],
  running: ['waiting', 'pending', 'succeeded', 'failed', 'paused', 'cancelling', 'cancelled'],
  waiting: ['running', 'pending', 'paused', 'cancelling', 'cancelled', 'failed'],
  paused: ['pending', 'cancelling', 'cancelled'],
  cancelling: ['cancelling', 'cancelled'],
  succeeded: [],
  failed: ['pending'],
  cancelled: [],
}

export const runStatuses = Object.keys(moves) as RunStatus[]

/** Tells whether a run may go from one status to the other. */
export function mayMove(from: RunStatus, to: RunStatus): boolean {
  return moves[from].includes(to)
}

export type TerminalStatus = 'succeeded' | 'failed' | 'cancelled'

/** Tells whether a status is final, but for an operator's retry. */
export function isTerminal(status: RunStatus): status is TerminalStatus {
  return status === 'succeeded' || status === 'failed' || status === 'cancelled'
}

/**
 * How a run is scheduled, besides what it is doing: `ready` to be claimed, `timed` until it is due, `isolated` because it may
 * have ended its processes and is claimed only to be performed alone, `blocked` by a limit, `leased` to a worker, or `idle`
 * because nothing but a message or an operator can move it.
 */
export type Readiness = 'ready' | 'timed' | 'isolated' | 'blocked' | 'leased' | 'idle'

/** A time-bound claim on a run. The token only ever grows, and it grows when the run is claimed. */
export interface Lease {
  readonly session: string
  readonly token: number
}

/**
 * What a run would have to undo: nothing; the recorded steps that have an `undo`, if it should fail or be cancelled; or
 * those now, because it has failed and the undo work is all that is left to do.
 */
export type UndoState = 'none' | 'possible' | 'due'

/** What somebody asks of the holder of a run. It lies on the row, because only the holder may write the journal. */
export type ControlRequest =
  | { readonly kind: 'cancel'; readonly reason: string | null; readonly at: number }
  | ({ readonly kind: 'pause'; readonly reason: PauseReason; readonly at: number } & Note)

/** What somebody says about what they do to a run: as a text, or as a codec has encrypted it for the entry that will hold it. */
export interface Note {
  readonly note: string | null
  /** Left out if the note is a text. */
  readonly sealedNote?: string
  /**
   * The `seq` for which a note was encrypted that is asked of a holder: nobody knows where its entry will stand. The holder writes
   * it anew for that; a store that pauses the run in place of a holder cannot, and keeps this with the entry.
   */
  readonly sealedFor?: number
}

/** Why a run was paused: by people, or because its processes died. One more reason, drift, is found by the engine itself. */
export type PauseReason = 'operator' | 'maintenance' | 'crashes'

/** Why a run is to be cancelled, if it is and somebody has said so. */
export function cancelReasonOf(controlRequest: ControlRequest | null | undefined): string | null {
  return controlRequest?.kind === 'cancel' ? controlRequest.reason : null
}

/** Tells whether somebody says the same again. */
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
  /** What its start said about it, as the text of a JSON object; null if nothing. */
  readonly metadata: string | null
  /** The feed tells of its journal: of every entry that is appended from when on this is so. */
  readonly feed: boolean
  /**
   * The id of the key that its payloads were last written with: of its input, and then of what its holders append. Whoever
   * lacks it is not given the run. Null if they need none.
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
  /**
   * The names of the messages that wake it; null if any does. It says so when it is parked, and that counts until it is claimed.
   */
  readonly wakeNames: readonly string[] | null
  /** Somebody is to be told of its end, or ends with it. */
  readonly watched: boolean
  /** What its holder is asked to do; null if nothing, or if nobody holds it. */
  readonly controlRequest: ControlRequest | null
  readonly undo: UndoState
  /**
   * Claims since a holder last committed anything: each but the last was a crash. An isolated claim counts only once the run
   * has begun. This is a suspicion: it decides about a run only after the run was performed alone.
   */
  readonly crashes: number
  /** The token of its last lease. */
  readonly token: number
  /** Who holds it now. */
  readonly session: string | null
  /** When its holder must be done with it, beyond keeping its session alive; null if there is no such bound. */
  readonly deadline: number | null
  /** When the whole run is over, however far it is. */
  readonly timeoutAt: number | null
  /** When it fails unless it was begun by then; null once it was. */
  readonly expiresAt: number | null
  readonly createdAt: number
  /** When its last transition was committed: claims, messages and give-backs do not count. */
  readonly updatedAt: number
  readonly endedAt: number | null
  /** When it was removed. It is leased no more, and its keys are free; its status stays what it was. */
  readonly deletedAt: number | null
  readonly deleteReason: string | null
  /** Columns of its row that the engine cannot have written: they count as empty. Left out if there are none. */
  readonly damaged?: readonly string[]
}

/** A token holds only while the run is running or cancelling, and session and token both match. */
export function holds(run: Pick<Run, 'status' | 'session' | 'token'>, lease: Lease): boolean {
  return (
    (run.status === 'running' || run.status === 'cancelling') &&
    run.session === lease.session &&
    run.token === lease.token
  )
}
