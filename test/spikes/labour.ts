// Performs the work of one run, all of it side by side: at least once, with the same idempotency key on every attempt, and
// never before everything that was recorded earlier is durable. What an attempt gives back is one occasion.

import { Attempt, type AttemptListener } from '../../src/core/runtime/attempt.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Host } from '../../src/core/definition/definition.ts'
import { afterFailure } from '../../src/core/definition/retry.ts'
import type { JournalWriter } from '../../src/core/runtime/journal-writer.ts'
import { timeOf, type Occasion, type Program, type Proposal, type Work } from './program.ts'

export interface LabourOwner {
  readonly host: Host
  readonly runId: string
  readonly run: Pick<Run, 'type'>
  readonly history: { readonly input: { readonly seq: number } }
  readonly program: Program
  readonly writer: JournalWriter
  readonly isCancelled: boolean
  readonly mayBegin: boolean
  scheduleTurn(): void
  record(occasion: Occasion): boolean
  note(proposal: Proposal): void
  /** Ends the run if this throws. */
  guard(act: () => void): void
}

export class Labour implements AttemptListener<Work> {
  private readonly owner: LabourOwner

  constructor(owner: LabourOwner) {
    this.owner = owner
  }

  get isPerforming(): boolean {
    return this.all.some(({ state }) => state === 'running')
  }

  /** Something is performed, about to be, or tried again so soon that the run does not park. */
  get isBusy(): boolean {
    const { inlineRetryMs } = this.owner.host
    return this.all.some(({ state, retry }) => state !== 'idle' || (retry?.due.afterMs ?? Infinity) <= inlineRetryMs)
  }

  /** Begins everything whose time has come. */
  begin(): void {
    const now = this.owner.host.now()
    for (const work of this.all) {
      if (work.state !== 'idle') continue
      const time = work.retry === null ? now : timeOf(work.retry)
      if (time === null || time > now) continue
      work.state = 'queued'
      this.beginWhenDurable(work)
    }
  }

  /** Asks what is performed to stop; what it gives back still counts. */
  abort(reason: unknown): void {
    for (const { attempt } of this.all) attempt?.signalAbort(reason)
  }

  /** Stops everything and takes nothing from it any more. */
  stop(reason: unknown): void {
    for (const work of this.all) {
      work.attempt?.abort(reason)
      work.attempt = null
      work.state = 'idle'
    }
  }

  succeeded(work: Work, attempt: Attempt, value: unknown): void {
    this.over(work)
    this.owner.guard(() => this.owner.record({ kind: 'performed', work, meta: metaOf(attempt), value }))
  }

  failed(work: Work, attempt: Attempt, error: unknown): void {
    const { owner } = this
    this.over(work)
    // It was asked to stop, and nothing comes after it: its error is no news.
    if (attempt.isAborted) return
    const meta = metaOf(attempt)
    const next = afterFailure(owner.program.policy, meta.attempt, error, owner.host.ports.random)
    owner.guard(() => {
      if (!next.retry) owner.record({ kind: 'gave-up', work, meta, error })
      else owner.note({ kind: 'attempt-failed', name: work.name, meta: { ...meta, delayMs: next.delayMs }, error })
    })
  }

  private beginWhenDurable(work: Work): void {
    const { owner } = this
    if (!owner.mayBegin) {
      work.state = 'idle'
      return owner.scheduleTurn()
    }
    // Asked anew each time: more may have been appended since the last time.
    if (!owner.writer.isDurable) return owner.writer.barrier(() => this.beginWhenDurable(work))
    work.state = 'running'
    work.attempt = new Attempt(owner, work.name, work.failures + 1)
    work.attempt.run(work.perform, work, this)
  }

  private over(work: Work): void {
    work.state = 'idle'
    work.attempt = null
    this.owner.scheduleTurn()
  }

  private get all(): readonly Work[] {
    return [...this.owner.program.work.values()]
  }
}

function metaOf({ attempt, ms }: Attempt): { readonly attempt: number; readonly ms: number } {
  return { attempt, ms }
}
