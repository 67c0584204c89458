// What the frames of instances and of effects share: control requests, and the one departure.
//
//   new    → live  `start`
//   live   → gone  the last commit was answered; or the run is lost, aborted or given back. The listener is called once, later

import type { Acknowledged, Claim, Departure, DepartureListener, Host } from '../../core/definition/definition.ts'
import type { Draft } from '../../core/model/entry.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import { cancelReasonOf, type ControlRequest, type Run } from '../../core/model/run.ts'
import type { NextStatus, Transition } from '../../core/model/transition.ts'
import { keepPatiently } from '../../core/runtime/fetch.ts'
import { silentListener } from '../../core/runtime/silent-host.ts'
import { WrittenKey } from '../../core/payload/written-key.ts'

/** How a transition leaves its run. */
export interface Left {
  readonly status: NextStatus | null
  readonly due?: Transition['due']
  readonly applies?: 'pause'
}

export abstract class LeavingFrame {
  readonly host: Host
  readonly runId: string
  run: Run
  readonly isVacant = false
  isLeaving = false
  protected lease: Claim['lease']
  protected controlRequest: ControlRequest | null
  /** The run is being cancelled: it can only be ended as that. */
  protected hasToCancel: boolean
  protected isGivingBack = false
  /** The number of the last entry that is committed. */
  protected committedSeq: number
  protected key: WrittenKey
  protected isGone = false
  private listener = silentListener

  constructor(host: Host, { run, lease }: Claim) {
    this.host = host
    this.run = run
    this.runId = run.id
    this.lease = lease
    this.controlRequest = run.controlRequest
    this.hasToCancel = run.status === 'cancelling'
    this.committedSeq = run.seq
    this.key = new WrittenKey(run.keyId)
  }

  protected listen(listener: DepartureListener): void {
    this.listener = listener
  }

  /** A request that is new here: the frame leaves at its next checkpoint. */
  protected abstract controlled(): void

  applyControl(controlRequest: ControlRequest | null): void {
    if (this.controlRequest?.kind === 'cancel' || (controlRequest === null && this.controlRequest === null)) return
    this.controlRequest = controlRequest
    if (controlRequest !== null && !this.isGone) this.controlled()
  }

  get isCancelled(): boolean {
    return this.hasToCancel || this.controlRequest?.kind === 'cancel'
  }

  /** The run has to be left for a control request, or because this process gives it back. */
  protected get mustLeave(): boolean {
    return this.isCancelled || this.controlRequest !== null || this.isGivingBack
  }

  /** The transition with which the frame appends one entry. */
  protected async transitionOf(draft: Draft, { status, due = null, applies }: Left): Promise<Transition> {
    const kept = await this.kept(draft)
    return {
      id: this.host.transitionId(),
      runId: this.runId,
      guard: { seq: this.committedSeq, lease: this.lease },
      append: [kept],
      status,
      due,
      parkIf: null,
      undo: null,
      continues: null,
      takes: [],
      keyId: this.key.changed,
      feed: this.run.feed,
      ...(applies === undefined ? {} : { applies }),
    }
  }

  private async kept(draft: Draft): Promise<Draft> {
    const { payloads } = this.host
    if (draft.data === null) return draft
    const seq = this.committedSeq + 1
    this.key.note(payloads.keyOf(draft.data), seq)
    if (payloads.isKeptAsIs(draft.data)) return draft
    const place = payloads.place(this.runId, seq, draft.kind, draft.name)
    return { ...draft, data: await keepPatiently(this.host, draft.data, place, () => !this.isGone) }
  }

  protected acknowledged(answer: Acknowledged): void {
    this.committedSeq = answer.seq
    this.key.settle(answer.seq)
    this.applyControl(answer.controlRequest)
  }

  /** Ends a cancelled run, or stops one that is to be paused. False if there was no request any more. */
  protected async leaveControlled(): Promise<boolean> {
    const request = this.controlRequest
    try {
      if (this.isCancelled) {
        const reason = cancelReasonOf(request)
        await this.end({ kind: 'cancelled', name: null, meta: { reason, notUndone: [] }, data: null }, 'cancelled')
      } else if (request?.kind === 'pause') {
        const { reason } = request
        const { note, sealedNote = null } = this.host.payloads.appliedNote(this.runId, this.committedSeq + 1, request)
        const draft: Draft = { kind: 'paused', name: null, meta: { reason, note }, data: sealedNote }
        await this.host.commit(await this.transitionOf(draft, { status: 'paused', applies: 'pause' }))
        this.gone({ kind: 'released' })
      } else return false
    } catch (error) {
      if (isHoldfastError(error, 'RUN_RESUMED')) {
        this.controlRequest = null
        return false
      }
      if (!isHoldfastError(error, 'RUN_CANCELLING')) throw error
      this.hasToCancel = true
      return this.leaveControlled()
    }
    return true
  }

  /** Commits the last entry of the run, alone. */
  protected async end(draft: Draft, status: 'succeeded' | 'failed' | 'cancelled'): Promise<void> {
    this.isLeaving = true
    try {
      const transition = await this.transitionOf(draft, { status })
      const { seq } = await this.host.commit(transition)
      this.ended(status, seq, transition.append.at(-1)?.data ?? null)
    } finally {
      this.isLeaving = false
    }
  }

  protected ended(status: 'succeeded' | 'failed' | 'cancelled', seq: number, data: string | null): void {
    const reason = status === 'cancelled' ? cancelReasonOf(this.controlRequest) : null
    this.gone({ kind: 'ended', status, seq, data, reason })
  }

  /** The frame leaves for good. The listener is never called while it calls the frame. */
  protected gone(departure: Departure): void {
    if (this.isGone) return
    this.isGone = true
    this.depart(departure)
  }

  protected depart(departure: Departure): void {
    const { listener } = this
    void Promise.resolve().then(() => listener.departed(departure))
  }
}
