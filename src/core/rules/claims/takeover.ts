// Decides about a run whose holder died, held it too long or gave it back, and about one whose time is over.
//
//   its holder died      a `crashed` entry; then, by its control request and its number of crashes:
//     being cancelled    → cancelled if there is nothing to undo, or if undoing it ended too many holders: no way leads from
//                          there to a pause, and it must not go on for ever;
//                          otherwise cancelling, to be claimed by another worker
//     its time is over   → failed, as below
//     too many crashes   → paused, also in the middle of its undo work; or, if its workflow wants that, failed, or `failing`
//                          and then pending if there is something to undo and that was not begun
//     asked to pause     → paused, for the reason of the request, however many crashes there were: a process that lives takes
//                          back a pause for crashes (`control.ts`), and not that one
//     otherwise          → pending, to be claimed by any worker, or in isolation if it is a suspect (`suspect.ts`)
//   its time is over     → failed; or pending with `failing`, if there is something to undo
//   given back           as if its holder had died, but without a crash and without an entry

import { crashNote } from '../../rows/engine-notes.ts'
import type { Draft } from '../../model/entry.ts'
import { over, ready, rewrite, type Rewrite } from '../rewrite.ts'
import type { Run } from '../../model/run.ts'
import { cancelled, paused } from '../control.ts'

/** `crashed`: too many holders died. `timed-out`: the whole run took too long. `expired`: no worker began it in time. */
export type RescueFailure = 'crashed' | 'timed-out' | 'expired'

/** The treatment of a run that ended too many processes. */
export type OnCrashes = 'pause' | 'fail'

export interface TakeoverRules {
  /** A run with this many crashes is tried no more. From 3: only a run that died in isolation has as many. */
  readonly maxCrashes: number
  /** The rules of the workflows that the caller knows. @default none */
  readonly workflows?: readonly CrashRule[]
  /** The data of a `failed` entry, by reason. */
  readonly failures: Readonly<Record<RescueFailure, string>>
}

export interface RescueRequest extends TakeoverRules {
  /** At most this many runs at once. */
  readonly limit: number
}

export interface Rescued {
  /** How many sessions were found dead. */
  readonly sessionsEnded: number
  /** Runs that were taken from their holders and did not end with that. */
  readonly takenOver: readonly TakenOver[]
  /** Runs that were ended, and why. */
  readonly ended: readonly {
    readonly runId: string
    readonly type: string
    readonly reason: RescueFailure | 'cancelled'
  }[]
  /** Those of `takenOver` that were paused, because too many of their holders died. */
  readonly paused: readonly string[]
  /** When the next suspect without a holder is due, of any type; null if there is none. */
  readonly suspects: number | null
  /** There may be more to do: rescue again at once. */
  readonly more: boolean
  /** When the next session, deadline or timeout that is known now runs out, if nothing happens; null if there is none. */
  readonly next: number | null
  readonly now: number
}

export interface TakenOver {
  readonly runId: string
  readonly type: string
  /** The session that held it. */
  readonly session: string
  readonly crashes: number
}

export interface CrashRule {
  readonly type: string
  readonly version: number
  /** Null for the bound of the caller. */
  readonly maxCrashes: number | null
  readonly onCrashes: OnCrashes
}

export interface Takeover extends Rewrite {
  /** Why the run was given up; null if it goes on. */
  readonly reason: RescueFailure | null
  /** It was paused because too many holders died. */
  readonly isConvicted: boolean
}

/** Takes a run from a holder that is dead or too late. */
export function takeOver(run: Run, rules: TakeoverRules, now: number): Takeover {
  // A holder that committed something and then died has crashed once, too.
  const crashes = Math.max(run.crashes, 1)
  const entry: Draft = { kind: 'crashed', name: null, meta: { session: run.session ?? '', crashes }, data: null }
  const rule = rules.workflows?.find(({ type, version }) => type === run.type && version === run.version)
  const isPoison = crashes >= (rule?.maxCrashes ?? rules.maxCrashes)
  const taken = { ...run, crashes, session: null }
  if (run.status === 'cancelling' && (isPoison || run.undo === 'none')) {
    return goesOn(cancelled(taken, cancelReasonIn(run), [entry], now))
  }
  if (run.status === 'running' && isOver(run.timeoutAt, now)) return fail(taken, 'timed-out', [entry], rules, now)
  if (isPoison && rule?.onCrashes === 'fail') return fail(taken, 'crashed', [entry], rules, now)
  if (isPoison && run.controlRequest?.kind !== 'pause') {
    return {
      ...paused(taken, { reason: 'crashes', note: crashNote(crashes) }, [entry], now),
      reason: null,
      isConvicted: true,
    }
  }
  return goesOn(letGo(taken, [entry], now))
}

/** Ends a run that has no holder and whose time is over. */
export function timeOut(run: Run, rules: TakeoverRules, now: number): Takeover {
  return fail(run, isOver(run.timeoutAt, now) ? 'timed-out' : 'expired', [], rules, now)
}

/**
 * Takes a run back from a holder that gives it back. That claim was no crash; those before it were, and the holder may say
 * how many: an isolated claim did not count before the run began.
 */
export function giveBack(run: Run, now: number, earlier = run.crashes - 1): Rewrite {
  const crashes = Math.max(Math.min(run.crashes, earlier), 0)
  const given = { ...run, crashes, session: null }
  if (run.status === 'cancelling' && run.undo === 'none') return cancelled(given, cancelReasonIn(run), [], now)
  return letGo(given, [], now)
}

function letGo(run: Run, before: readonly Draft[], now: number): Rewrite {
  if (run.status === 'cancelling') return rewrite(run, before, { undo: 'due', ...ready(run, now) }, now)
  if (run.controlRequest?.kind === 'pause') return paused(run, run.controlRequest, before, now)
  return rewrite(run, before, { status: 'pending', ...ready(run, now) }, now)
}

function goesOn(write: Rewrite): Takeover {
  return { ...write, reason: null, isConvicted: false }
}

function fail(
  run: Run,
  reason: RescueFailure,
  before: readonly Draft[],
  { failures }: TakeoverRules,
  now: number,
): Takeover {
  const data = failures[reason]
  if (run.undo === 'possible') {
    const entry: Draft = { kind: 'failing', name: null, meta: null, data }
    const failing = { ...run, undo: 'due', crashes: 0, timeoutAt: null, expiresAt: null } as const
    return goesOn(letGo(failing, [...before, entry], now))
  }
  const entry: Draft = { kind: 'failed', name: null, meta: null, data }
  return { ...rewrite(run, [...before, entry], { status: 'failed', ...over }, now), reason, isConvicted: false }
}

function cancelReasonIn({ controlRequest }: Run): string | null {
  return controlRequest?.kind === 'cancel' ? controlRequest.reason : null
}

function isOver(time: number | null, now: number): boolean {
  return time !== null && time <= now
}
