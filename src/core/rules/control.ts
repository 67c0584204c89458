// The control commands of clients: cancel, pause, resume, retry and remove. Only its holder writes the journal of a leased run,
// so such a run gets a control request on its row, which its holder applies; any other run changes at once.
//
//   cancel   no holder, nothing to undo         → cancelled
//            no holder, something to undo       → cancelling, to be claimed by a worker that can undo it
//            held                               → cancelling, with the control request: its holder stops, undoes and ends it
//            now                                → cancelled at once, held or not: the token grows, nothing is undone
//   pause    no holder                          → paused
//            held                               → a control request, applied at its next checkpoint
//   resume   paused                             → pending, with any repairs of its journal and its crash count reset
//            a request to pause                 → the request is gone
//   retry    failed                             → pending, with any repairs of its journal and without a bound on its time
//   remove   any                                → deleted: leased no more, its keys free, its status as it was
//
// One command comes from a process, not from a client: it lives, although it was declared dead while it performed a suspect in
// isolation (`worker/perform/suspect-witness.ts`).
//
//   acquit   no holder                          → one crash less, and due sooner; pending, if it was paused for its crashes
//            held                               refused: the outcome under that holder decides first

import { acquittalNote } from '../rows/engine-notes.ts'
import type { Draft } from '../model/entry.ts'
import { idle, over, ready, rewrite, type Rewrite } from './rewrite.ts'
import { isTerminal, type Note, type PauseReason, type Run } from '../model/run.ts'
import { diedIsolated } from './claims/suspect.ts'

export type ControlCommand = {
  /** Client-made: repeating a request that took effect answers as the first time. */
  readonly id: string
  readonly runId: string
} & Control

export type Control =
  | { readonly kind: 'cancel'; readonly mode: CancelMode; readonly reason: string | null }
  | ({ readonly kind: 'pause'; readonly reason: PauseReason } & PauseNote)
  | ({ readonly kind: 'resume' | 'retry' } & Revival)
  | { readonly kind: 'remove'; readonly reason: string | null }
  /** `seq` is the end of the journal in which the crash still counts, and in which only a takeover has paused the run. */
  | { readonly kind: 'acquit'; readonly seq: number }

/** An encrypted note is in the entry of a run without a holder, and in the control request to the holder of any other. */
export interface PauseNote extends Note {
  /** For the holder. @default the note itself */
  readonly requestNote?: Note
  /** The `seq` of the run that the note was encrypted for. @default any */
  readonly seq?: number
}

/** `cooperative`: attempts under way may end and are recorded, then everything is undone. `now`: nothing is awaited. */
export type CancelMode = 'cooperative' | 'now'

export interface Revival extends Note {
  /** Repairs of the journal, which take effect with it: `amended` entries. */
  readonly amend: readonly Extract<Draft, { kind: 'amended' }>[]
  /** The `seq` of the run that the repairs were made for, and the note was encrypted for; null if that is of no meaning. */
  readonly seq: number | null
}

export type ControlResult =
  /** It took effect, or had before. */
  | { readonly outcome: 'done'; readonly run: Run }
  /** The holder of the run will see to it. */
  | { readonly outcome: 'requested'; readonly run: Run }
  | { readonly outcome: 'refused'; readonly reason: ControlRefusal; readonly run: Run }
  | { readonly outcome: 'key-taken'; readonly by: string; readonly run: Run }
  | { readonly outcome: 'not-found' }

/**
 * `ended`: a run that is over does not move. `cancelling`: a cancellation cannot be withdrawn. `not-paused`, `not-failed`:
 * there is nothing to resume or retry. `undone`: the effects of its steps were undone. `changed`: the journal has grown since
 * it was read. `deleted`: it was removed.
 */
export type ControlRefusal = 'ended' | 'cancelling' | 'not-paused' | 'not-failed' | 'undone' | 'changed' | 'deleted'

export interface ControlDecision {
  readonly answer: ControlResult
  /** The change to be written; null if there is none. */
  readonly write: Rewrite | null
}

/** Decides. `keyHolder` is the live run that has the business key of this one, for a retry. */
export function control(run: Run, request: Control, now: number, keyHolder: string | null = null): ControlDecision {
  switch (request.kind) {
    case 'cancel':
      return request.mode === 'now' ? cancelNow(run, request.reason, now) : cancel(run, request.reason, now)
    case 'pause':
      return pause(run, request, now)
    case 'resume':
      return resume(run, request, now)
    case 'retry':
      return retry(run, request, now, keyHolder)
    case 'remove':
      return remove(run, request.reason, now)
    case 'acquit':
      return acquit(run, request.seq, now)
  }
}

function cancel(run: Run, reason: string | null, now: number): ControlDecision {
  if (isTerminal(run.status)) return refused(run, 'ended')
  if (run.status === 'cancelling')
    return { answer: { outcome: run.session === null ? 'done' : 'requested', run }, write: null }
  if (run.session !== null) {
    const controlRequest = { kind: 'cancel', reason, at: now } as const
    // Nothing but its undo work is left, and that has no bound on its time.
    return controlRequests(rewrite(run, [], { status: 'cancelling', controlRequest, timeoutAt: null }, now))
  }
  if (run.undo === 'none') return done(cancelled(run, reason, [], now))
  return done(beginCancelling(run, reason, now))
}

/**
 * Cancels a run because its parent has ended; null if there is nothing to do. It does not end here, because the runs that
 * wait on it would have to be notified, too: a worker claims it, undoes its steps, and ends it.
 */
export function cancelForParent(run: Run, reason: string, now: number): Rewrite | null {
  if (isTerminal(run.status) || run.status === 'cancelling' || run.deletedAt !== null) return null
  if (run.session !== null) return cancel(run, reason, now).write
  return beginCancelling(run, reason, now)
}

function beginCancelling(run: Run, reason: string | null, now: number): Rewrite {
  const entry: Draft = { kind: 'cancelling', name: null, meta: { reason }, data: null }
  const change = { status: 'cancelling', undo: 'due', timeoutAt: null, expiresAt: null, ...ready(run, now) } as const
  return rewrite(run, [entry], change, now)
}

function cancelNow(run: Run, reason: string | null, now: number): ControlDecision {
  return isTerminal(run.status) ? refused(run, 'ended') : done(cancelled(run, reason, [], now))
}

/** Ends a run as cancelled. Its holder, if it has one, is refused from here on. */
export function cancelled(run: Run, reason: string | null, before: readonly Draft[], now: number): Rewrite {
  const entry: Draft = { kind: 'cancelled', name: null, meta: { reason, notUndone: [] }, data: null }
  const token = run.session === null ? run.token : run.token + 1
  return rewrite(run, [...before, entry], { status: 'cancelled', token, ...over }, now)
}

function pause(run: Run, request: Extract<Control, { kind: 'pause' }>, now: number): ControlDecision {
  if (isTerminal(run.status)) return refused(run, 'ended')
  if (run.status === 'cancelling') return refused(run, 'cancelling')
  // A pause for crashes may be taken back by a process that lives. An operator who pauses such a run now wants it to stay so.
  if (run.status === 'paused' && !diedIsolated(run)) return { answer: { outcome: 'done', run }, write: null }
  const { reason, requestNote, seq } = request
  if (run.session === null) {
    return seq !== undefined && seq !== run.seq ? refused(run, 'changed') : done(paused(run, request, [], now))
  }
  const { note, sealedNote, sealedFor } = requestNote ?? request
  const sealed = sealedNote === undefined ? {} : { sealedNote, ...(sealedFor === undefined ? {} : { sealedFor }) }
  return controlRequests(rewrite(run, [], { controlRequest: { kind: 'pause', reason, note, ...sealed, at: now } }, now))
}

/** Pauses a run that has no holder. */
export function paused(run: Run, pausing: Pausing, before: readonly Draft[], now: number): Rewrite {
  const entry = pausedEntry(pausing)
  return rewrite(run, [...before, entry], { status: 'paused', controlRequest: null, ...idle }, now)
}

/** Why a run is paused. */
export type Pausing = Note & { readonly reason: PauseReason }

/** The entry of a pause that was requested. */
export function pausedEntry({ reason, note, sealedNote, sealedFor }: Pausing): Draft {
  const meta = { reason, note, ...(sealedFor === undefined ? {} : { sealedFor }) }
  return { kind: 'paused', name: null, meta, data: sealedNote ?? null }
}

function resume(run: Run, { note, sealedNote, amend, seq }: Revival, now: number): ControlDecision {
  if (run.status === 'running' && run.controlRequest?.kind === 'pause')
    return done(rewrite(run, [], { controlRequest: null }, now))
  if (run.status !== 'paused') return refused(run, isTerminal(run.status) ? 'ended' : 'not-paused')
  if (seq !== null && seq !== run.seq) return refused(run, 'changed')
  const entry: Draft = { kind: 'resumed', name: null, meta: { note }, data: sealedNote ?? null }
  // The operator who resumes it has seen why it stopped: it is no suspect any more.
  const cleared = { ...run, crashes: 0 }
  return done(rewrite(cleared, [...amend, entry], { status: 'pending', ...ready(cleared, now) }, now))
}

function retry(run: Run, revival: Revival, now: number, keyHolder: string | null): ControlDecision {
  const { note, sealedNote, amend, seq } = revival
  if (run.status !== 'failed') return refused(run, 'not-failed')
  if (run.deletedAt !== null) return refused(run, 'deleted')
  if (run.undo === 'due') return refused(run, 'undone')
  if (seq !== null && seq !== run.seq) return refused(run, 'changed')
  if (keyHolder !== null) return { answer: { outcome: 'key-taken', by: keyHolder, run }, write: null }
  const entry: Draft = { kind: 'retried', name: null, meta: { note }, data: sealedNote ?? null }
  const cleared = { ...run, crashes: 0 }
  const change = { status: 'pending', timeoutAt: null, expiresAt: null, ...ready(cleared, now) } as const
  return done(rewrite(cleared, [...amend, entry], change, now))
}

function remove(run: Run, reason: string | null, now: number): ControlDecision {
  if (run.deletedAt !== null) return { answer: { outcome: 'done', run }, write: null }
  // Its holder may end it; no other worker ever gets it.
  const rest = run.session === null ? idle : {}
  return done(rewrite(run, [], { deletedAt: now, deleteReason: reason, ...rest }, now))
}

function acquit(run: Run, seq: number, now: number): ControlDecision {
  if (isTerminal(run.status)) return refused(run, 'ended')
  if (run.deletedAt !== null) return refused(run, 'deleted')
  if (run.session !== null || seq !== run.seq) return refused(run, 'changed')
  const isStopped = run.status === 'paused'
  // Only crashes in isolation are taken back, and only while they count.
  if (!diedIsolated(run) || !(isStopped || run.readiness === 'isolated')) {
    return { answer: { outcome: 'done', run }, write: null }
  }
  const entry: Draft = { kind: 'resumed', name: null, meta: { note: acquittalNote }, data: null }
  const less = { ...run, crashes: run.crashes - 1 }
  return done(rewrite(less, [entry], { status: isStopped ? 'pending' : run.status, ...ready(less, now) }, now))
}

function done(write: Rewrite): ControlDecision {
  return { answer: { outcome: 'done', run: write.run }, write }
}

function controlRequests(write: Rewrite): ControlDecision {
  return { answer: { outcome: 'requested', run: write.run }, write }
}

function refused(run: Run, reason: ControlRefusal): ControlDecision {
  return { answer: { outcome: 'refused', reason, run }, write: null }
}
