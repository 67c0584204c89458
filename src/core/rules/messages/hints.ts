// Hints: notifications to the listeners of a store, so that they need not wait for their next poll. `Hints` notifies
// listeners in the next microtask, so that no listener and no error of one interferes with the call that gave the hint. A
// store whose commit takes longer than that gives its hints after the commit.

import { nearDeadline } from '../claims/deadline.ts'
import { isTerminal, type Run } from '../../model/run.ts'

export type Hint =
  | { readonly kind: 'ready'; readonly type: string }
  | { readonly kind: 'ended'; readonly runId: string }
  /** A message came for a run that a session holds. */
  | { readonly kind: 'message'; readonly runId: string }
  /** There is a control request for a run that a session holds, or the run was removed. */
  | { readonly kind: 'control'; readonly runId: string }
  /** The time of a run that no session holds is over soon, and then a rescue must end it. */
  | { readonly kind: 'deadline'; readonly at: number }
  /** There is a chore: `doChores`. */
  | { readonly kind: 'chore' }

/** The hints about a row that was written. `before` is its status before that; undefined for a new row. */
export function hintsOf(before: Run['status'] | undefined, run: Run, now: number): readonly Hint[] {
  const hints: Hint[] = []
  const { id: runId, type, status, readiness } = run
  if (isTerminal(status) && (before === undefined || !isTerminal(before))) hints.push({ kind: 'ended', runId })
  if (readiness === 'ready' || readiness === 'timed') hints.push({ kind: 'ready', type })
  if (isControlled(run)) hints.push({ kind: 'control', runId })
  const at = nearDeadline(run, now)
  if (at !== null) hints.push({ kind: 'deadline', at })
  return hints
}

/** Whether the session that holds the run is to learn of a control request, or that the run was removed. */
export function isControlled({ session, controlRequest, deletedAt }: Run): boolean {
  return session !== null && (controlRequest !== null || deletedAt !== null)
}

export class Hints {
  private readonly listeners = new Set<(hint: Hint) => void>()
  private undelivered: Hint[] = []

  listen(onHint: (hint: Hint) => void): () => void {
    this.listeners.add(onHint)
    return () => this.listeners.delete(onHint)
  }

  close(): void {
    this.listeners.clear()
  }

  give(hint: Hint): void {
    if (this.listeners.size === 0) return
    if (this.undelivered.push(hint) === 1) void Promise.resolve().then(this.notifyListeners)
  }

  private readonly notifyListeners = (): void => {
    const hints = this.undelivered
    this.undelivered = []
    for (const hint of hints) for (const listener of this.listeners) listener(hint)
  }
}
