// Steps that are transactions: the writes of the function through `tx` and the entry of the step are committed together, or
// not at all.
//
//   waiting  → begun      the store has a connection for it: from here on its timeout counts, and not while it waits in line
//   begun    → performed  the transaction is open and the function has returned: the attempt is sealed, so that no timeout
//                         or end of the run can take its outcome from it any more
//   performed → placed    its entry has its place, and is committed inside the transaction with all that gathered before it
//   placed   → landed     COMMIT was answered: the body sees the result
//   begun    → failed     the function threw, or its result cannot be stored: rolled back, an attempt like any other
//   placed   → failed     the entry or the COMMIT failed, and it is certain that nothing was written: the failure takes the
//                         place of the result
//   waiting, begun → over the attempt was aborted: the code that aborted it has recorded its outcome. The transaction is torn
//                         down at once, whether its function notices or not
//   placed   → lost       the store refused the entry (rolled back), or the outcome of COMMIT is unknown. The run is given up
//                         here. Its next holder finds the entry in the journal, or finds that it never will be there: until
//                         COMMIT is decided, the transaction holds the row lock of the run
//
// From the first moment to the last nothing else of the run is sent: the store could not know the order. So it begins when
// the turn is over and all waits that the body has made in it are durable (step-runner.ts).

import type { Attempt } from '../../core/runtime/attempt.ts'
import type { Acknowledged, Host } from '../../core/definition/definition.ts'
import { bug, isHoldfastError } from '../../core/errors/error.ts'
import type { RecordedOutcome, StepCall } from '../frame/body-call.ts'
import type { FrameState } from '../frame/frame-state.ts'
import { runNotThere } from '../api/misuse.ts'
import type { Undoables } from './undoables.ts'

/** What a transaction asks of the runner of the steps, which begins it. */
interface Steps {
  readonly undoables: Undoables
  /** The attempt begins, and with it the time that it may take. */
  limit(call: StepCall, attempt: Attempt): void
  /** Appends the result of the function. */
  place(call: StepCall, attempt: Attempt, value: unknown): RecordedOutcome
  landed(call: StepCall, outcome: RecordedOutcome): void
  failed(call: StepCall, attempt: Attempt, error: unknown, place?: number | null): void
}

/** How far a transaction got. */
interface Progress {
  placed: RecordedOutcome | null
  answer: Acknowledged | null
  isRefused: boolean
}

export class TransactionStep {
  private readonly state: FrameState
  private readonly steps: Steps

  constructor(state: FrameState, steps: Steps) {
    this.state = state
    this.steps = steps
  }

  begin(call: StepCall, attempt: Attempt): void {
    const { state } = this
    const torn = new AbortController()
    state.writer.hold(attempt)
    attempt.onAbort = () => {
      torn.abort(attempt.abortReason)
      this.letGo(attempt)
    }
    void this.run(call, attempt, torn.signal).catch((error: unknown) => state.writer.lose(error))
  }

  private async run(call: StepCall, attempt: Attempt, signal: AbortSignal): Promise<void> {
    const { transact } = this.state.host
    if (transact === null) throw bug('A transaction began where there are none')
    const progress: Progress = { placed: null, answer: null, isRefused: false }
    const done = await transact((tx, commit) => this.perform(call, attempt, { tx, commit }, progress), {
      signal,
      isolation: call.isolation,
    })
    const { placed, answer, isRefused } = progress
    if (done.outcome === 'committed') return this.landed(call, attempt, placed, answer)
    if (done.outcome === 'unknown' || isRefused) return this.state.writer.lose(done.error)
    if (placed !== null && call.undo !== undefined) this.steps.undoables.drop(call)
    if (placed === null) this.letGo(attempt)
    if (attempt.close()) this.steps.failed(call, attempt, done.error, placed?.seq ?? null)
    this.state.scheduleTurn()
  }

  /** The work inside the transaction; a rejection rolls it back. */
  private async perform(
    call: StepCall,
    attempt: Attempt,
    { tx, commit }: { readonly tx: unknown; readonly commit: Host['commit'] },
    progress: Progress,
  ): Promise<void> {
    // A run that is being cancelled begins nothing.
    if (attempt.isAborted) throw attempt.abortReason
    this.steps.limit(call, attempt)
    const value = await this.stepOfHoldfast(call, attempt, tx)
    if (!attempt.seal()) throw attempt.abortReason
    const placed = this.steps.place(call, attempt, value)
    progress.placed = placed
    try {
      progress.answer = await this.state.writer.carry(attempt, placed.seq, commit)
    } catch (error) {
      progress.isRefused = isHoldfastError(error) && error.family === 'conflict'
      throw isHoldfastError(error, 'RUN_NOT_FOUND') ? runNotThere(call.name) : error
    }
  }

  /** Named as every function is that awaits one of the user's (`stepMark`). */
  private async stepOfHoldfast(call: StepCall, attempt: Attempt, tx: unknown): Promise<unknown> {
    return await this.state.inside(call.name, () => attempt.call((tools) => call.perform(tools, tx)))
  }

  private landed(call: StepCall, attempt: Attempt, placed: RecordedOutcome | null, answer: Acknowledged | null): void {
    const { state, steps } = this
    if (placed === null || answer === null) throw bug('A transaction was committed without its entry')
    state.writer.landed(attempt, answer)
    if (attempt.close()) steps.landed(call, placed)
    state.scheduleTurn()
  }

  private letGo(attempt: Attempt): void {
    this.state.writer.release(attempt)
    this.state.scheduleTurn()
  }
}
