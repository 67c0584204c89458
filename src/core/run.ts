// What a run is, seen from outside its journal: one row that says where the run stands and who may move it.
//
// The status machine. A move that is not told here is refused by every store.
//
//   pending    → running    a worker claims it, or the process that starts it leases it at once (eager start)
//              → paused     an operator, or maintenance
//              → cancelled  nobody holds it, so a cancellation takes effect at once
//              → failed     it expired before anyone began it, or the time for the whole run is over
//   running    → waiting    every outstanding call of its body is a wait: the run is parked and holds no lease
//              → pending    given back: a retry that is due later, a shutdown; or taken over from a dead session, or
//                           from a holder that is past its deadline
//              → succeeded  the body returned
//              → failed     the body, or a bound on crashes, attempts or time, gave up
//              → paused     its code and its journal disagree (drift), or a wish to pause reached a checkpoint
//              → cancelling a cancellation while it is leased
//              → cancelled  a cancellation that does not wait for the holder
//   waiting    → running    a condition came true and a worker claimed it
//              → paused, cancelled, failed   as for pending
//   paused     → pending    resumed
//              → cancelled  cancelled while paused
//   cancelling → cancelled  its undo work is done
//
// Terminal statuses lead nowhere.

export type RunStatus =
  'pending' | 'running' | 'waiting' | 'paused' | 'cancelling' | 'succeeded' | 'failed' | 'cancelled'

const moves: Readonly<Record<RunStatus, readonly RunStatus[]>> = {
  pending: ['running', 'paused', 'cancelled', 'failed'],
  running: ['waiting', 'pending', 'succeeded', 'failed', 'paused', 'cancelling', 'cancelled'],
  waiting: ['running', 'paused', 'cancelled', 'failed'],
  paused: ['pending', 'cancelled'],
  cancelling: ['cancelled'],
  succeeded: [],
  failed: [],
  cancelled: [],
}

export const runStatuses = Object.keys(moves) as RunStatus[]

/** Tells whether a run may go from one status to the other. */
export function mayMove(from: RunStatus, to: RunStatus): boolean {
  return moves[from].includes(to)
}

export type TerminalStatus = 'succeeded' | 'failed' | 'cancelled'

/** Tells whether a status is final. */
export function isTerminal(status: RunStatus): status is TerminalStatus {
  return status === 'succeeded' || status === 'failed' || status === 'cancelled'
}

/**
 * How a run is scheduled, apart from what it is doing: `ready` to be claimed, `timed` until it is due,
 * `blocked` by a limit, `leased` to a worker, or `idle` because nothing but a message or an operator can move it.
 */
export type Readiness = 'ready' | 'timed' | 'blocked' | 'leased' | 'idle'

/** A time-bound claim on a run. The token only ever grows, and it grows when the run is claimed. */
export interface Lease {
  readonly session: string
  readonly token: number
}

export interface Run {
  readonly id: string
  readonly shard: number
  readonly type: string
  readonly version: number
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
  /** Claims since a holder last committed anything: each but the last was a crash. */
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
}

/** A token holds only while the run is running or cancelling, and session and token both match. */
export function holds(run: Pick<Run, 'status' | 'session' | 'token'>, lease: Lease): boolean {
  return (
    (run.status === 'running' || run.status === 'cancelling') &&
    run.session === lease.session &&
    run.token === lease.token
  )
}
