// How the stay of a run in this process comes to its end: what is written last, the commit that goes with it, and what is
// made of the answer. Each way out ends in `leave`; a run that has something to undo takes the way through that first.
//
// The store may answer otherwise than was asked. A run that is being cancelled cannot end in another way: its last batch
// is refused, taken back without its last entry, and the run is cancelled. One that somebody wants paused or cancelled is
// not released for later: it goes on here, and that is obeyed.

import type { Acknowledged, Definition, Departure } from '../core/definition.ts'
import type { FailedMeta, FoundCall } from '../core/entry.ts'
import { HoldfastError, isHoldfastError } from '../core/error.ts'
import { afterFailure, type RetryPolicy } from '../core/retry.ts'
import { isTerminal, type Run, type Wish } from '../core/run.ts'
import type { Due } from '../core/due.ts'
import type { Dependants } from './dependants.ts'
import { describeDrift, foundCalls } from './drift.ts'
import type { RecordedEntry } from './history.ts'
import type { Mailbox } from './mailbox.ts'
import type { Phase } from './phase.ts'
import type { Settler } from './settler.ts'
import type { Stage } from './stage.ts'
import type { StepRunner } from './step-runner.ts'
import { watchedIn } from './waking.ts'
import type { Exit } from '../core/writer.ts'

/** How a run ends that has something to undo before, or attempts to wait for. */
export type Ending =
  | { readonly status: 'cancelled'; readonly reason: string | null }
  | { readonly status: 'failed'; readonly error: unknown; readonly cause: number | null }

export interface ConclusionOwner extends Stage {
  readonly mailbox: Mailbox
  readonly dependants: Dependants
  readonly run: Run
  readonly wish: Wish | null
  readonly settler: Settler
  readonly steps: StepRunner
  /** When this stay began, on the process's own clock. */
  readonly startedAt: number
  readonly phase: Phase
  /** There is something to undo. */
  readonly mustUndo: boolean
  /** Nothing of the body goes on: the last commit is about to be sent. */
  leaving(): void
  /** Tells the attempts that are running to stop, and takes nothing from them any more. */
  stop(reason: () => unknown): void
  /** The body goes no further; what there is to undo is undone, then the run ends. */
  unwind(): void
  /** The run is not this frame's any more. */
  gone(departure: Departure): void
  /** Where in the code these calls stand. */
  placesOf(calls: readonly FoundCall[]): Promise<readonly FoundCall[]>
}

export class Conclusion {
  /** How the run is to end; null while that is open. */
  ending: Ending | null = null
  private readonly owner: ConclusionOwner
  private readonly definition: Definition

  constructor(owner: ConclusionOwner, definition: Definition) {
    this.owner = owner
    this.definition = definition
  }

  returned(value: unknown): void {
    const { owner } = this
    if (owner.dependants.outlast(() => this.returned(value))) return
    const unasked = owner.settler.unasked()
    if (unasked !== undefined) return this.drifted(unasked)
    let data: string
    try {
      data = owner.encode(value, null)
    } catch (error) {
      return this.fail(error)
    }
    owner.writer.append({ kind: 'succeeded', name: null, meta: null, data })
    this.leave('succeeded')
  }

  threw(error: unknown): void {
    const { owner } = this
    const { history, host, writer } = owner
    const attempt = history.bodyFailures + 1
    const next =
      owner.steps.causeOf(error) === null
        ? afterFailure(this.bodyPolicy(), attempt, error, host.ports.random)
        : { retry: false as const }
    if (!next.retry) return owner.dependants.outlast(() => this.fail(error)) ? undefined : this.fail(error)
    const ms = Math.round(host.ports.clock.monotonic() - owner.startedAt)
    const meta = { attempt, ms, delayMs: next.delayMs }
    writer.append({ kind: 'attempt-failed', name: null, meta, data: owner.encodeFailure(error, null) })
    if (!this.pauses()) this.leave('pending', { at: null, afterMs: next.delayMs })
  }

  private bodyPolicy(): RetryPolicy {
    const { policy, history } = this.owner
    const { input } = history
    if (input.kind !== 'started' || input.meta === null) return policy
    return { ...policy, maxAttempts: input.meta.maxAttempts }
  }

  /** The run fails: at once, or when everything is undone. */
  fail(error: unknown): void {
    const { owner } = this
    const cause = owner.steps.causeOf(error)
    if (!owner.mustUndo) {
      this.appendFailed(error, cause, [])
      return this.leave('failed')
    }
    this.ending = { status: 'failed', error, cause }
    const data = owner.encodeFailure(error, null)
    owner.writer.append({ kind: 'failing', name: null, meta: failedMeta(cause, []), data })
    owner.stop(() => error)
    owner.unwind()
  }

  /** The journal says that the run fails, but not yet that everything is undone. */
  goOnFailing(error: unknown, cause: number | null): void {
    this.ending ??= { status: 'failed', error, cause }
    this.owner.unwind()
  }

  /** The run will be cancelled, when no attempt runs any more and everything is undone. */
  cancel(reason: string | null): void {
    if (this.ending?.status === 'cancelled' && this.ending.reason !== null) return
    this.ending = { status: 'cancelled', reason }
    this.owner.unwind()
  }

  /** What the body, and attempts that are running, are told of a cancellation. */
  whyCancelled(): HoldfastError {
    const { runId } = this.owner
    const reason = this.ending?.status === 'cancelled' ? this.ending.reason : null
    const told = reason === null ? '' : `: ${reason}`
    return new HoldfastError('RUN_CANCELLED', `Run ${runId} is being cancelled${told}`, { details: { runId, reason } })
  }

  /** Everything is undone, but for these. */
  unwound(notUndone: readonly string[]): void {
    const { ending, owner } = this
    if (ending === null || this.waitsForDependants()) return
    if (ending.status === 'failed') this.appendFailed(ending.error, ending.cause, notUndone)
    else {
      const meta = { reason: ending.reason, notUndone }
      owner.writer.append({ kind: 'cancelled', name: null, meta, data: null })
    }
    this.leave(ending.status)
  }

  /** Children may have to end first: then the run is released until it looks again. */
  private waitsForDependants(): boolean {
    const { dependants, wish, history } = this.owner
    const ms = dependants.lookAgainIn(wish?.at ?? history.cancelling?.at ?? history.failing?.at ?? null)
    if (typeof ms === 'number') {
      dependants.note()
      this.releaseFor(ms)
    }
    return ms !== null
  }

  /** Pauses the run here, if somebody wants that. */
  pauses(): boolean {
    const { wish, writer } = this.owner
    if (wish?.kind !== 'pause' || this.ending?.status === 'cancelled') return false
    const { reason, note } = wish
    writer.append({ kind: 'paused', name: null, meta: { reason, note }, data: null })
    this.leave('paused')
    return true
  }

  /** Releases a run whose undo work goes on later. */
  releaseFor(ms: number): void {
    this.leave(this.ending?.status === 'cancelled' ? 'cancelling' : 'pending', { at: null, afterMs: ms })
  }

  drifted(unasked: RecordedEntry): void {
    const { owner } = this
    const found = foundCalls(owner.settler.all())
    owner.leaving()
    // What the changed code said is not what the run should go on with.
    owner.writer.discard()
    void owner.placesOf(found).then((places) => {
      if (owner.phase !== 'leaving') return
      const meta = describeDrift(unasked, places)
      const { id, type } = owner.run
      const error = new HoldfastError('DRIFT', meta.message, { details: { ...meta } })
      owner.host.ports.logger.error(meta.message, { run: id, type, error })
      owner.writer.append({ kind: 'paused', name: null, meta, data: null })
      this.leave('paused')
    })
  }

  async continueAs(target: Definition | null, input: unknown): Promise<never> {
    const { owner } = this
    const { type, version, validate } = target ?? this.definition
    const value = await validate(input)
    await new Promise<void>((resolve) => {
      if (!owner.dependants.outlast(resolve)) resolve()
    })
    if (owner.isWriting) {
      const unasked = owner.settler.unasked()
      if (unasked === undefined) {
        const data = owner.encode(value, null)
        const unwatches = [...watchedIn(owner.resting.conditions)]
        const attachment = unwatches.length === 0 ? null : { unwatches }
        owner.writer.append({ kind: 'continued', name: null, meta: { type, version }, data }, attachment)
        this.send({ status: null, due: null, continues: { type, version } })
      } else this.drifted(unasked)
    }
    return new Promise(() => undefined)
  }

  private appendFailed(error: unknown, cause: number | null, notUndone: readonly string[]): void {
    const { owner } = this
    const data = owner.encodeFailure(error, null)
    owner.writer.append({ kind: 'failed', name: null, meta: failedMeta(cause, notUndone), data })
  }

  private leave(status: NonNullable<Exit['status']>, due: Due | null = null): void {
    // Of a run that ends, the store need not look for what nobody has read if there is nothing.
    const emptyAt = isTerminal(status) ? this.owner.mailbox.emptyAt : undefined
    this.send({ status, due, continues: null, emptyAt })
  }

  private send(exit: Exit): void {
    const { owner } = this
    owner.leaving()
    owner.writer.leave(exit).then(
      (answer) => this.answered(exit, answer),
      (error: unknown) => this.refused(exit, error),
    )
  }

  private answered({ status, continues }: Exit, { released, at }: Acknowledged): void {
    const { owner } = this
    const { writer } = owner
    // Meanwhile the run was lost here: whatever the answer asks for is somebody else's to do.
    if (owner.phase !== 'leaving') return
    const last = writer.lastSent
    if (continues !== null) {
      const input = { ...last, seq: writer.seq, at, transition: null }
      return owner.gone({ kind: 'continued', as: continues, input, inbox: writer.arrived })
    }
    if (status !== null && isTerminal(status)) {
      const reason = this.ending?.status === 'cancelled' ? this.ending.reason : null
      return owner.gone({ kind: 'ended', status, seq: writer.seq, data: last.data, reason })
    }
    if (released) return owner.gone({ kind: 'released' })
    // Somebody wants the run cancelled or paused: it stays until that is done.
    if (owner.wish?.kind === 'cancel') return this.cancel(owner.wish.reason)
    if (!this.pauses()) writer.lose(new Error('The run was neither released nor is anything wanted of it.'))
  }

  private refused({ continues }: Exit, error: unknown): void {
    const { owner } = this
    if (owner.phase !== 'leaving') return
    if (isHoldfastError(error, 'RUN_CANCELLING')) {
      owner.writer.takeBack()
      return this.cancel(reasonOf(owner.wish) ?? reasonOf(error.details['wish'] as Wish | null | undefined))
    }
    if (continues === null || !isHoldfastError(error, 'RUN_EXISTS')) return owner.writer.lose(error)
    owner.writer.takeBack()
    this.fail(error)
  }
}

export function reasonOf(wish: Wish | null | undefined): string | null {
  return wish?.kind === 'cancel' ? wish.reason : null
}

function failedMeta(cause: number | null, notUndone: readonly string[]): FailedMeta | null {
  return cause === null && notUndone.length === 0 ? null : { cause, notUndone }
}
