// The frame of a run that performs one effect of an instance. A first attempt that succeeds is one commit: the end of the run,
// together with what the instance decides because of it (`Host.settle`). What the instance cannot decide has failed like an
// attempt: it is performed again, and gives up at last.
//
//   new     → trying   `start`: the effect is read
//   trying  → pausing  the attempt failed, and is repeated soon
//   pausing → trying
//   trying  → gone     its end is committed; or the attempt failed and is repeated later, by the next claim
//   any     → gone     the run is cancelled, paused, given back or lost

import type { DeciderModel, EffectModel } from '../../core/definition/decider-model.ts'
import type { Claim, DepartureListener, EffectOutcome, Frame, Host } from '../../core/definition/definition.ts'
import { afterFailure } from '../../core/definition/retry.ts'
import { fatal } from '../../core/definition/retry-mark.ts'
import type { Services } from '../../core/definition/services.ts'
import { bug, HoldfastError, isHoldfastError, messageOf } from '../../core/errors/error.ts'
import { isLeftToOthers } from '../../core/errors/left-to-others.ts'
import type { AttemptMeta, Draft } from '../../core/model/entry.ts'
import type { Attempt, AttemptListener } from '../../core/runtime/attempt.ts'
import type { EffectOrigin } from '../../core/deciding/effect-run.ts'
import { runLine, shortMessage } from '../../core/rows/engine-notes.ts'
import { fetchPatiently } from '../../core/runtime/fetch.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import { quotedText } from '../../core/text/printable.ts'
import { typedInput } from '../api/identity.ts'
import { EffectAttempt, type AttemptedEffect } from './effect-attempt.ts'
import { LeavingFrame } from './leaving-frame.ts'

/** The effect, and how it is performed. */
export interface PerformedEffect {
  readonly decider: Pick<DeciderModel, 'type'>
  readonly type: string
  readonly model: EffectModel
}

export class EffectFrame extends LeavingFrame implements Frame, AttemptListener<null> {
  readonly seq = null
  readonly arrived = null
  readonly wakeNames = []
  /** Where the keys of steps begin: see `Attempt`. Effects have keys of their own. */
  readonly history = { input: { seq: 1 } }
  private readonly performed: PerformedEffect
  private readonly claim: Claim
  private readonly origin: EffectOrigin
  /** How often it has failed, since an operator retried it last. */
  private failures = 0
  private effect: unknown
  private isRead = false
  private hasFailed = false
  private attempt: Attempt | null = null
  private cancelPause: Cancel | null = null
  private cancelGrace: Cancel | null = null

  constructor(performed: PerformedEffect, host: Host, claim: Claim) {
    super(host, claim)
    this.performed = performed
    this.claim = claim
    this.origin = originOf(claim)
    for (const { kind } of claim.entries) {
      if (kind === 'attempt-failed') this.failures += 1
      else if (kind === 'retried') this.failures = 0
    }
  }

  start(listener: DepartureListener): void {
    this.listen(listener)
    this.go(async () => {
      if (this.isCancelled && (await this.leaveControlled())) return
      await this.begin()
    })
  }

  resume(): void {
    throw bug('The run of an effect is never parked', { runId: this.runId })
  }

  messageArrived(): void {}

  private go(work: () => Promise<void>): void {
    work().catch((error: unknown) => this.lose(error))
  }

  private lose(reason: unknown): void {
    this.stopWaiting()
    this.gone({ kind: 'lost', reason })
  }

  /** Reads the effect and performs it. One that cannot be read has failed, and so the operator finds why. */
  private async begin(): Promise<void> {
    this.cancelPause = null
    const [first] = this.claim.entries
    if (first === undefined || first.data === null) throw bug('An effect has no first entry', { runId: this.runId })
    const { payloads } = this.host
    const fetched = payloads.fetch(first.data)
    const text =
      typeof fetched === 'string' ? fetched : await fetchPatiently(this.host, fetched, first.data, () => !this.isGone)
    if (this.isGone) return
    try {
      this.effect = payloads.decode(text, payloads.place(this.runId, 1, 'started', null))
    } catch (error) {
      return this.afterFailure(error, 0)
    }
    this.isRead = true
    this.tryOnce()
  }

  /** One that could not be read is read again: it is never performed without what was asked for. */
  private tryAgain(): void {
    if (this.isRead) this.tryOnce()
    else this.go(() => this.begin())
  }

  private tryOnce(): void {
    this.cancelPause = null
    const { model, type } = this.performed
    const attempt = new EffectAttempt(this, this.attempted(type), this.failures + 1)
    this.attempt = attempt
    if (model.timeoutMs !== null) attempt.limit(model.timeoutMs, (error) => this.failed(null, attempt, error))
    attempt.run((tools) => model.perform(this.effect, tools), null, this)
  }

  private attempted(type: string): AttemptedEffect {
    return {
      type,
      effectId: this.effectId,
      workflow: { type: this.performed.decider.type, id: this.origin.id },
      createdAt: new Date(this.run.createdAt),
      services: this.host.services as Services,
    }
  }

  /** The number of its entry in the journal of the instance. */
  private get effectId(): string {
    return this.origin.effect.slice(this.origin.effect.lastIndexOf('#') + 1)
  }

  succeeded(_task: null, attempt: Attempt, value: unknown): void {
    this.attemptOver()
    this.go(() => this.settleSuccess(attempt, value))
  }

  failed(_task: null, attempt: Attempt, error: unknown): void {
    this.attemptOver()
    this.go(() => this.afterFailure(error, attempt.ms))
  }

  private attemptOver(): void {
    this.attempt = null
    this.cancelGrace?.()
    this.cancelGrace = null
  }

  private async settleSuccess(attempt: Attempt, value: unknown): Promise<void> {
    if (this.isGone) return
    if (this.isCancelled && (await this.leaveControlled())) return
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    let data: string
    try {
      if (value !== undefined) typedInput(value, this.performed.decider.type)
      data = this.host.payloads.encode(value, this.nextPlace('succeeded'))
    } catch (error) {
      // It was performed: another attempt would return the same, and do it once more.
      return this.afterFailure(fatal(noResult(this.performed, error)), attempt.ms)
    }
    const draft: Draft = { kind: 'succeeded', name: null, meta: null, data }
    const failure = await this.settle(draft, 'succeeded', this.outcome(meta, { value }))
    if (failure !== null) await this.afterFailure(failure.error, attempt.ms)
  }

  /** Its handler threw, its time was over, or the instance could not decide what it returned. */
  private async afterFailure(error: unknown, ms: number): Promise<void> {
    if (this.isGone) return
    if (isLeftToOthers(error)) return this.lose(error)
    if (this.isCancelled && (await this.leaveControlled())) return
    const { host, performed } = this
    const number = this.failures + 1
    const after = afterFailure(performed.model.policy, number, error, host.ports.random)
    const meta = { attempt: number, ms }
    if (!after.retry) return this.giveUp(meta, error)
    const { delayMs } = after
    const data = host.payloads.encodeFailure(error, this.nextPlace('attempt-failed'))
    const draft: Draft = { kind: 'attempt-failed', name: null, meta: { ...meta, delayMs }, data }
    const isSoon = delayMs <= host.inlineRetryMs && !this.mustLeave
    const left = isSoon ? { status: null } : { status: 'pending' as const, due: { at: null, afterMs: delayMs } }
    const answer = await host.commit(await this.transitionOf(draft, left))
    this.failures = number
    host.attemptFailed?.({ run: this.run, step: performed.type, kind: 'do', attempt: number, delayMs, error })
    this.acknowledged(answer)
    if (this.isGone) return
    if (!isSoon && answer.released) return this.gone({ kind: 'released' })
    if (this.mustLeave) return this.leaveAtCheckpoint()
    this.cancelPause = host.ports.clock.after(delayMs, () => this.tryAgain())
  }

  private async giveUp(meta: AttemptMeta, error: unknown): Promise<void> {
    const data = this.host.payloads.encodeFailure(error, this.nextPlace('failed'))
    const draft: Draft = { kind: 'failed', name: null, meta: null, data }
    const failure = await this.settle(draft, 'failed', this.outcome(meta, { effect: this.effect, error }))
    // The instance could not decide that it gave up: it records that by itself, from its mailbox.
    if (failure !== null) await this.end(draft, 'failed')
    if (this.hasFailed) this.logFailure(meta.attempt, error)
  }

  /** An operator learns of it even if the decider does not ask. */
  private logFailure(attempt: number, error: unknown): void {
    const { host, run, origin, performed } = this
    const text =
      `gave up: effect ${this.effectId} of instance ${quotedText(origin.id)} of decider ${quotedText(performed.decider.type)}, ` +
      `attempt ${attempt}: ${shortMessage(error)}`
    const details = { run: run.id, type: run.type, id: origin.id, effect: origin.effect, attempt, error }
    host.ports.logger.error(runLine(run, text), details)
  }

  protected override ended(...end: Parameters<LeavingFrame['ended']>): void {
    this.hasFailed = end[0] === 'failed'
    super.ended(...end)
  }

  private outcome(meta: AttemptMeta, result: EffectOutcome['result']): EffectOutcome {
    const { parentId, version } = this.run
    const instance = { type: this.performed.decider.type, version, id: this.origin.id }
    return { runId: parentId ?? '', instance, name: this.origin.effect, meta, result }
  }

  /** Ends the run. Answers with the error if the instance cannot decide the outcome: then nothing is committed. */
  private async settle(
    draft: Draft,
    status: 'succeeded' | 'failed',
    outcome: EffectOutcome,
  ): Promise<{ readonly error: unknown } | null> {
    const { host } = this
    this.isLeaving = true
    try {
      const transition = await this.transitionOf(draft, { status })
      if (this.isGone) return null
      const answer = await (host.settle?.(outcome, transition) ?? host.commit(transition))
      this.ended(status, answer.seq, transition.append.at(-1)?.data ?? null)
      return null
    } catch (error) {
      if (isHoldfastError(error, 'RUN_CANCELLING')) {
        this.hasToCancel = true
        await this.leaveControlled()
        return null
      }
      if (isHoldfastError(error) && undecidable.has(error.code)) return { error }
      throw error
    } finally {
      this.isLeaving = false
    }
  }

  protected controlled(): void {
    if (this.isCancelled) this.cancelAttempt()
    if (this.attempt === null && this.cancelPause !== null) this.leaveAtCheckpoint()
  }

  /** The attempt learns of it and may end; its result counts no more. */
  private cancelAttempt(): void {
    const { attempt, host } = this
    if (attempt === null) return
    attempt.signalAbort(new HoldfastError('RUN_CANCELLED', `Run ${this.runId} is being cancelled.`))
    this.cancelGrace ??= host.ports.clock.after(host.abortGraceMs, () => {
      if (!attempt.close()) return
      this.attemptOver()
      this.go(async () => void (await this.leaveControlled()))
    })
  }

  /** Nothing is under way: the run can be left as it is. */
  private leaveAtCheckpoint(): void {
    this.stopWaiting()
    this.go(async () => {
      if (await this.leaveControlled()) return
      if (this.isGivingBack) this.gone({ kind: 'given-back' })
      else this.tryAgain()
    })
  }

  private stopWaiting(): void {
    this.cancelPause?.()
    this.cancelPause = null
    this.cancelGrace?.()
    this.cancelGrace = null
  }

  giveBack(): void {
    this.isGivingBack = true
    if (this.attempt === null && this.cancelPause !== null) this.leaveAtCheckpoint()
  }

  abandon(): void {
    const { attempt } = this
    if (attempt === null) return
    attempt.abort(new HoldfastError('LEASE_LOST', `Run ${this.runId} is given back: this process stops.`))
    this.attemptOver()
    this.gone({ kind: 'given-back' })
  }

  fail(error: unknown): void {
    this.attempt?.abort(error)
    this.attemptOver()
    this.stopWaiting()
    this.go(() => this.giveUp({ attempt: this.failures + 1, ms: 0 }, error))
  }

  abort(reason: unknown): void {
    this.attempt?.abort(reason)
    this.attempt = null
    this.lose(reason)
  }

  private nextPlace(kind: Draft['kind']) {
    return this.host.payloads.place(this.runId, this.committedSeq + 1, kind, null)
  }
}

function noResult({ decider, type }: PerformedEffect, cause: unknown): HoldfastError {
  const message =
    `The handler of effect ${quotedText(type)} of decider ${quotedText(decider.type)} was performed, and returned what is no ` +
    `input: ${messageOf(cause)} Return an input, or nothing.`
  return new HoldfastError('INVALID_INPUT', message, { cause })
}

/** The decider could not decide it. Everything else says something about the store. */
const undecidable: ReadonlySet<HoldfastError['code']> = new Set(['DECIDE_FAILED', 'DECIDE_UNSAFE', 'EVENT_UNREADABLE'])

function originOf({ run }: Claim): EffectOrigin {
  const { id, effect } = JSON.parse(run.metadata ?? '{}') as Partial<EffectOrigin>
  if (typeof id === 'string' && typeof effect === 'string') return { id, effect }
  throw new HoldfastError('BUG', `Run ${run.id} of ${run.type} does not say which effect it performs.`)
}
