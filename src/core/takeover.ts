// What becomes of a run whose holder died, held it too long or gave it back, and of one whose time is over.
//
//   its holder died      a `crashed` entry; then, by what was asked of it and how often that happened:
//     being cancelled    → cancelled if there is nothing to undo, or if undoing it ended too many holders;
//                          otherwise cancelling, to be claimed by whoever goes on
//     asked to pause     → paused
//     too many crashes   → failed; or, if there is something to undo and that was not begun, `failing` and then pending,
//                          or paused if that was asked
//     otherwise          → pending
//   its time is over     → failed; or pending with `failing`, if there is something to undo
//   given back           as if its holder had died, but that was no crash, and no entry tells of it

import type { Draft } from './entry.ts'
import { over, ready, rewrite, type Rewrite } from './rewrite.ts'
import type { Run } from './run.ts'
import { cancelled, paused } from './steering.ts'

/** `crashed`: too many holders died. `timed-out`: the whole run took too long. `expired`: nobody began it in time. */
export type RescueFailure = 'crashed' | 'timed-out' | 'expired'

export interface TakeoverRules {
  /** A run whose holders died so many times in a row fails. */
  readonly maxCrashes: number
  /** What is written as the data of a `failed` entry, by reason. */
  readonly failures: Readonly<Record<RescueFailure, string>>
}

export interface Takeover extends Rewrite {
  /** Why the run was given up; null if it goes on. */
  readonly reason: RescueFailure | null
}

/** Takes a run from a holder that is dead or too late. */
export function takeOver(run: Run, rules: TakeoverRules, now: number): Takeover {
  // A holder that committed something and then died has crashed once, too.
  const crashes = Math.max(run.crashes, 1)
  const entry: Draft = { kind: 'crashed', name: null, meta: { session: run.session ?? '', crashes }, data: null }
  const isPoison = crashes >= rules.maxCrashes
  const taken = { ...run, crashes, session: null }
  if (run.status === 'cancelling' && (isPoison || run.undo === 'none')) {
    return { ...cancelled(taken, reasonOf(run), [entry], now), reason: null }
  }
  if (isPoison) return fail(taken, 'crashed', [entry], rules, now)
  if (run.status === 'running' && isOver(run.timeoutAt, now)) return fail(taken, 'timed-out', [entry], rules, now)
  return { ...letGo(taken, [entry], now), reason: null }
}

/** Ends a run that nobody holds and whose time is over. */
export function timeOut(run: Run, rules: TakeoverRules, now: number): Takeover {
  return fail(run, isOver(run.timeoutAt, now) ? 'timed-out' : 'expired', [], rules, now)
}

/** Takes a run back from a holder that gives it back. That claim was no crash; those before it were. */
export function giveBack(run: Run, now: number): Rewrite {
  const given = { ...run, crashes: Math.max(run.crashes - 1, 0), session: null }
  if (run.status === 'cancelling' && run.undo === 'none') return cancelled(given, reasonOf(run), [], now)
  return letGo(given, [], now)
}

function letGo(run: Run, before: readonly Draft[], now: number): Rewrite {
  if (run.status === 'cancelling') return rewrite(run, before, { undo: 'due', ...ready(run, now) }, now)
  if (run.wish?.kind === 'pause') return paused(run, run.wish.reason, run.wish.note, before, now)
  return rewrite(run, before, { status: 'pending', ...ready(run, now) }, now)
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
    return { ...letGo(failing, [...before, entry], now), reason: null }
  }
  const entry: Draft = { kind: 'failed', name: null, meta: null, data }
  return { ...rewrite(run, [...before, entry], { status: 'failed', ...over }, now), reason }
}

function reasonOf({ wish }: Run): string | null {
  return wish?.kind === 'cancel' ? wish.reason : null
}

function isOver(time: number | null, now: number): boolean {
  return time !== null && time <= now
}
