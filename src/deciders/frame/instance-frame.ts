// The frame of an instance that a worker has claimed: because inputs lie in its mailbox, because a timer is due, or because
// another run has started it. It decides the inputs in the order in which they came, up to 500 entries in one commit, and parks
// the run when it has seen all that had arrived.
//
//   new     → live     `start`: the journal is folded
//   live    → parked   a batch and the parking are one commit; nothing was due or had arrived since
//   parked  → live     `resume`, if the journal has not moved since
//   live    → gone     the instance is over, or its run is cancelled, paused, given back or lost
//
// Nothing is performed here, so a frame only ever waits for the store.

import type { DeciderInstance, DeciderModel, Decided } from '../../core/definition/decider-model.ts'
import type { Acknowledged, Claim, DepartureListener, Frame, Host } from '../../core/definition/definition.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import { isLeftToOthers, leftToOthers } from '../../core/errors/left-to-others.ts'
import type { Parking } from '../../core/model/transition.ts'
import { decidedTransition, type WrittenRun } from '../../core/deciding/decided-transition.ts'
import { failedTimers, logDeadTimers } from '../../core/runtime/fired-timers.ts'
import { fetchedEntries } from '../../core/deciding/read-entries.ts'
import { Mail } from './mail.ts'
import { LeavingFrame } from './leaving-frame.ts'

export class InstanceFrame extends LeavingFrame implements Frame {
  readonly arrived = null
  readonly wakeNames = []
  private readonly model: DeciderModel
  private readonly claim: Claim
  private readonly instanceId: string
  private readonly mail: Mail
  private instance: DeciderInstance
  private isParked = false
  /** How many messages had arrived, as far as the store has said. */
  private inbox: number

  constructor(model: DeciderModel, host: Host, claim: Claim) {
    super(host, claim)
    this.model = model
    this.claim = claim
    this.instanceId = claim.run.idempotencyKey ?? claim.run.id
    this.inbox = claim.run.inbox
    this.instance = this.opened()
    this.mail = new Mail(host, claim.run)
  }

  get seq(): number | null {
    return this.isParked ? this.committedSeq : null
  }

  start(listener: DepartureListener): void {
    this.listen(listener)
    this.go(async () => {
      await this.load()
      await this.drain()
    })
  }

  resume({ run, lease }: Claim, listener: DepartureListener): void {
    this.listen(listener)
    this.run = run
    this.lease = lease
    this.controlRequest = run.controlRequest
    this.hasToCancel = run.status === 'cancelling'
    this.inbox = Math.max(this.inbox, run.inbox)
    this.isParked = false
    this.go(() => this.drain())
  }

  messageArrived(inbox: number | null): void {
    if (inbox !== null) this.inbox = Math.max(this.inbox, inbox)
  }

  /** Control requests are seen before the next batch. */
  protected controlled(): void {}

  giveBack(): void {
    this.isGivingBack = true
  }

  abandon(): void {}

  /** The time for the run is over. */
  fail(error: unknown): void {
    this.failure ??= { error }
  }

  private failure: { readonly error: unknown } | null = null

  abort(reason: unknown): void {
    if (this.isParked) this.isGone = true
    else this.gone({ kind: 'lost', reason })
  }

  private go(work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      // What is no refusal of the store fails again if it is tried again at once.
      this.gone({ kind: 'lost', reason: error, isLater: isLasting(error) })
    })
  }

  private opened(): DeciderInstance {
    const { payloads, ports } = this.host
    const prepare: Host['prepare'] = (child) => this.host.prepare(child)
    return this.model.open({ runId: this.runId, id: this.instanceId, payloads, ports, prepare })
  }

  private async load(): Promise<void> {
    const isWanted = (): boolean => !this.isGone
    try {
      const { entries } = this.claim
      if (this.instance.apply(await fetchedEntries(this.host, entries, isWanted)) === 'folded') return
      const all = await this.host.journal?.(this.runId, this.run.seq)
      this.instance = this.opened()
      this.instance.apply(await fetchedEntries(this.host, all ?? entries, isWanted))
    } catch (error) {
      if (!isHoldfastError(error, 'EVENT_UNREADABLE')) throw error
      // Other code may well be able to fold it: nothing is written, and the run is tried again, less and less often.
      throw leftToOthers('EVENT_UNREADABLE', error.message, error.details)
    }
  }

  private async drain(): Promise<void> {
    while (!this.isGone) {
      if (this.isCancelled || this.controlRequest !== null) {
        if (await this.leaveControlled()) return
      }
      if (this.failure !== null) return this.leaveFailed(this.failure.error)
      if (this.isGivingBack) return this.gone({ kind: 'given-back' })
      const { inbox } = this
      await this.mail.read(inbox)
      if (this.isGone) return
      const offers = this.mail.offers(this.instance)
      const decided = this.instance.decide(offers, { now: this.host.now() })
      const isAll = this.mail.isWhole && decided.answers.length === offers.length && !decided.isCut
      const hasGivenUp = this.mail.decided(decided.answers)
      if (await this.commit(decided, isAll && !hasGivenUp ? { inbox, wakeNames: null } : null)) return
    }
  }

  /** True if the run is left. */
  private async commit(decided: Decided, parkIf: Parking | null): Promise<boolean> {
    const hasEntries = decided.append.length > 0
    if (!hasEntries && parkIf === null) return false
    const isLast = decided.end !== null || parkIf !== null
    const { host, committedSeq: seq, lease } = this
    const isWanted = (): boolean => !this.isGone
    let answer: Acknowledged
    let last: string | null
    try {
      const run: WrittenRun = { ...this.run, keyId: this.run.keyId, instanceId: this.instanceId }
      const transition = await decidedTransition({ host, run, seq, lease, decided, parkIf, isWanted })
      if (this.isGone) return true
      last = transition.append.at(-1)?.data ?? null
      this.isLeaving = isLast
      answer = await host.commit(transition)
      if (transition.keyId !== null && transition.keyId !== undefined)
        this.run = { ...this.run, keyId: transition.keyId }
    } catch (error) {
      if (hasEntries) this.instance.rollBack()
      if (!isHoldfastError(error, 'RUN_CANCELLING')) throw error
      this.hasToCancel = true
      return false
    } finally {
      this.isLeaving = false
    }
    if (hasEntries) this.instance.committed(answer.at)
    for (const failed of failedTimers(this.run, decided)) host.attemptFailed?.(failed)
    logDeadTimers(host.ports.logger, { ...this.run, instanceId: this.instanceId }, decided)
    this.mail.settled()
    this.inbox = Math.max(this.inbox, answer.inbox)
    this.acknowledged(answer)
    if (decided.end !== null) this.ended(decided.end, answer.seq, last)
    else if (parkIf !== null && answer.released) {
      this.isParked = true
      this.depart({ kind: 'parked' })
    }
    return decided.end !== null || this.isParked
  }

  private async leaveFailed(error: unknown): Promise<void> {
    const place = this.host.payloads.place(this.runId, this.committedSeq + 1, 'failed', null)
    const data = this.host.payloads.encodeFailure(error, place)
    await this.end({ kind: 'failed', name: null, meta: null, data }, 'failed')
  }
}

/** Whether an error is one that the worker does not know how to handle. */
function isLasting(error: unknown): boolean {
  if (!isHoldfastError(error)) return true
  if (error.code === 'BUG' || error.code === 'ENTRY_REJECTED' || error.code === 'CLOSED') return false
  return error.family !== 'conflict' && !isLeftToOthers(error)
}
