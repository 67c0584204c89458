// The frame of a run that is moved from outside: by messages, by times and by the results of what it lets perform. It reads
// the mailbox first in, first out, records what its program makes of each occasion as one transition, performs what the
// program asks for, and parks the run when only a message or time can move it on.
//
//   new     → live     `start`: the journal is folded
//   live    → parking  nothing is performed, and everything that arrived was seen: a commit to `waiting` is on its way
//   parking → parked   that commit was answered; the lease is gone
//   parking → live     a message or a control request had arrived: look again
//   parked  → live     `resume`, under a new lease, with nothing having happened to the journal in between
//   live    → leaving  the run is over, or it is to be paused or cancelled: the last commit is on its way
//   leaving → gone     that commit was answered
//   leaving → live     it was refused, because the run is being cancelled
//   any     → gone     the lease or the journal went elsewhere, or `abort`

import { Alarm } from '../../src/core/runtime/alarm.ts'
import type { Place } from '../../src/core/payload/place.ts'
import type { Claim, Departure, DepartureListener, Frame, Host } from '../../src/core/definition/definition.ts'
import type { Draft, EntryKind } from '../../src/core/model/entry.ts'
import { HoldfastError, isHoldfastError } from '../../src/core/errors/error.ts'
import type { Exit } from '../../src/core/runtime/exit.ts'
import { isTerminal, type Run, type ControlRequest } from '../../src/core/model/run.ts'
import { JournalWriter } from '../../src/core/runtime/journal-writer.ts'
import { silentListener } from '../../src/core/runtime/silent-host.ts'
import { effective } from './effective.ts'
import { Leaving } from './leaving.ts'
import { Labour, type LabourOwner } from './labour.ts'
import { Mailbox, readPayload } from './mailbox.ts'
import { firstDue, parkedDue, timesOf } from './program.ts'
import type { Applied, Moment, Occasion, Program, Proposal, Timer } from './program.ts'

type Phase = 'new' | 'live' | 'parking' | 'parked' | 'leaving' | 'gone'

/** So many occasions go together at most. */
const mostAtOnce = 100

export class Drainer extends Leaving implements Frame, LabourOwner {
  readonly host: Host
  readonly runId: string
  /** What the idempotency keys of an incarnation begin with. */
  readonly history: { readonly input: { readonly seq: number } }
  readonly program: Program
  readonly writer: JournalWriter
  private readonly claim: Claim
  private readonly mailbox: Mailbox
  private readonly labour: Labour
  private readonly alarm: Alarm
  run: Run
  private controlRequest: ControlRequest | null
  private phase: Phase = 'new'
  private isTurnDue = false
  /** The journal or the mailbox is on its way: nothing is decided meanwhile. */
  private isReading = false
  private cancelled: { reason: string | null } | null = null
  /** The time for the run was over while it was being parked. */
  private failure: { readonly error: unknown } | null = null
  private listener = silentListener

  constructor(program: Program, host: Host, claim: Claim) {
    super()
    this.program = program
    this.host = host
    this.claim = claim
    this.run = claim.run
    this.runId = claim.run.id
    this.history = { input: { seq: claim.run.base } }
    this.controlRequest = claim.run.controlRequest
    this.writer = new JournalWriter(host, claim, this)
    this.alarm = new Alarm(this)
    this.mailbox = new Mailbox(host, claim.run)
    this.labour = new Labour(this)
  }

  get seq(): number | null {
    return this.phase === 'parked' ? this.writer.seq : null
  }

  get isCancelled(): boolean {
    return this.cancelled !== null
  }

  start(listener: DepartureListener): void {
    this.listener = listener
    this.phase = 'live'
    if (this.run.status === 'cancelling') this.cancel(reasonOf(this.controlRequest))
    else this.reading(this.replay())
  }

  resume(claim: Claim, listener: DepartureListener): void {
    this.listener = listener
    this.run = claim.run
    this.controlRequest = claim.run.controlRequest
    this.writer.renew(claim)
    this.phase = 'live'
    if (this.run.status === 'cancelling') this.cancel(reasonOf(this.controlRequest))
    else this.scheduleTurn()
  }

  applyControl(controlRequest: ControlRequest): void {
    this.controlRequests(controlRequest)
  }

  controlRequests(controlRequest: ControlRequest | null): void {
    if (this.controlRequest?.kind === 'cancel' || (controlRequest === null && this.controlRequest === null)) return
    this.controlRequest = controlRequest
    if (this.phase !== 'live') return
    if (controlRequest?.kind === 'cancel') this.cancel(controlRequest.reason)
    else this.scheduleTurn()
  }

  fail(error: unknown): void {
    if (this.phase === 'live' && this.cancelled === null) this.leaveFailed(error, null)
    else if (this.phase === 'parking') this.failure = { error }
  }

  readonly arrived = null
  readonly isLeaving = false
  readonly isVacant = false
  readonly wakeNames = []
  messageArrived(inbox: number | null): void {
    if (inbox !== null) this.writer.heard(inbox)
    this.scheduleTurn()
  }

  abort(reason: unknown): void {
    if (this.phase === 'new' || this.phase === 'parked') this.phase = 'gone'
    else this.writer.lose(reason)
  }

  lost(reason: unknown): void {
    if (this.phase === 'gone') return
    this.gone({ kind: 'lost', reason })
    this.stop(reason)
  }

  /** Something new may be performed. */
  get mayBegin(): boolean {
    return (
      this.phase === 'live' && this.cancelled === null && this.controlRequest?.kind !== 'pause' && !this.isGivingBack
    )
  }

  scheduleTurn(): void {
    if (this.isTurnDue) return
    this.isTurnDue = true
    this.host.ports.turns.next(this.turn)
  }

  private readonly turn = (): void => {
    this.isTurnDue = false
    if (this.phase === 'live' && !this.isReading) this.guard(() => this.proceed())
  }

  /** Whatever the program does wrong ends its own run, with nothing half recorded. */
  guard(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.writer.discard()
      this.leaveFailed(error, null)
    }
  }

  private proceed(): void {
    if (this.cancelled !== null) return this.leaveCancelled(this.cancelled)
    if (this.controlRequest?.kind === 'pause') return this.leavePaused(this.controlRequest)
    if (this.isGivingBack && !this.labour.isPerforming) {
      return this.writer.barrier(() => (this.phase === 'live' ? this.gone({ kind: 'given-back' }) : undefined))
    }
    for (let count = 1; this.program.outcome === null && this.takeNext(); count += 1) {
      if (count % mostAtOnce === 0) this.writer.flush()
    }
    const { outcome } = this.program
    if (outcome === null) this.goOn()
    else if ('failure' in outcome) this.leaveFailed(outcome.failure, outcome.cause)
    else this.leaveSucceeded(outcome.output)
  }

  private goOn(): void {
    const { writer, host } = this
    this.labour.begin()
    if (writer.arrived > this.mailbox.seen) return this.reading(this.look())
    if (this.labour.isBusy) {
      if (host.now() >= this.mailbox.lookAt) return this.reading(this.look())
      this.alarm.set(Math.min(this.mailbox.lookAt, ...timesOf(this.awaited())))
      return writer.flush()
    }
    if (writer.isIdle) return void this.park()
    writer.barrier(() => this.scheduleTurn())
  }

  /** Records the next occasion: what became true first, in store time. False if there is none now. */
  private takeNext(): boolean {
    if (this.program.isNew) return this.record({ kind: 'start' })
    const timer = firstDue(this.program.timers, this.host.now())
    for (const occasion of this.mailbox.occasions) {
      if (timer !== null && timer.dueAt <= occasion.message.at) break
      if (!this.record(occasion)) continue
      this.mailbox.occasions.delete(occasion)
      return true
    }
    return timer !== null && this.record(timer)
  }

  /** Appends what follows from an occasion, and folds it as a replay will. False if nothing follows now. */
  record(occasion: Occasion): boolean {
    let entries: readonly Prepared[]
    try {
      const proposals = this.program.decide(occasion, this.host.now())
      if (proposals === null) return false
      entries = this.prepare(proposals)
    } catch (error) {
      this.host.ports.logger.warn(`Run ${this.runId} could not decide what follows from a ${occasion.kind}.`, { error })
      entries = this.prepare(this.program.refuse(occasion, error))
    }
    this.append(entries, occasion.kind === 'message' ? occasion.message.id : null)
    return true
  }

  /** Appends an entry that only reports something. */
  note(proposal: Proposal): void {
    this.append(this.prepare([proposal]), null)
  }

  private append(entries: readonly Prepared[], takes: string | null): void {
    const since: Moment = { at: null }
    entries.forEach(({ draft, value }, index) => {
      this.writer.append(draft, index === 0 && takes !== null ? { takes } : null)
      this.apply({ ...draft, value, seq: this.writer.seq, since })
    })
    this.writer.whenDurable((at) => {
      since.at = at
      this.scheduleTurn()
    })
  }

  /** Payloads as the journal will have them, and values as they will be read from it. */
  private prepare(proposals: readonly Proposal[]): readonly Prepared[] {
    const { payloads } = this.host
    return proposals.map((proposal, index) => {
      const { value, error, ...rest } = proposal
      const place = payloads.place(this.runId, this.writer.seq + 1 + index, rest.kind, rest.name)
      if ('error' in proposal) {
        return { draft: { ...rest, data: payloads.encodeFailure(error, place) } as Draft, value: error }
      }
      if (value === undefined) return { draft: { ...rest, data: null } as Draft, value }
      const data = payloads.encode(value, place)
      return { draft: { ...rest, data } as Draft, value: payloads.decode(data, place) }
    })
  }

  private apply(entry: Applied): void {
    if (entry.kind !== 'attempt-failed') return this.program.apply(entry)
    const work = entry.name === null ? undefined : this.program.work.get(entry.name)
    if (work === undefined) return
    const { attempt, delayMs } = entry.meta
    work.failures = attempt
    work.retry = { due: { at: null, afterMs: delayMs }, since: entry.since }
  }

  private *awaited(): Iterable<Timer> {
    yield* this.program.timers.values()
    for (const { state, retry } of this.program.work.values()) if (state === 'idle' && retry !== null) yield retry
  }

  private async park(): Promise<void> {
    this.phase = 'parking'
    this.alarm.set(null)
    try {
      const parked = await this.writer.park(parkedDue(this.awaited()), null, this.mailbox.seen)
      if (this.phase !== 'parking') return
      this.phase = parked ? 'parked' : 'live'
      if (parked) return this.depart({ kind: 'parked' })
    } catch (error) {
      return this.writer.lose(error)
    }
    if (this.controlRequest?.kind === 'cancel') this.cancel(this.controlRequest.reason)
    else if (this.failure !== null) this.leaveFailed(this.failure.error, null)
    else this.scheduleTurn()
  }

  private reading(read: Promise<void>): void {
    this.isReading = true
    this.writer.flush()
    read.then(
      () => {
        this.isReading = false
        this.scheduleTurn()
      },
      (error: unknown) => {
        this.isReading = false
        if (this.phase === 'live') this.leaveFailed(error, null)
      },
    )
  }

  private async replay(): Promise<void> {
    for (const entry of effective(this.claim.entries)) {
      const { data, at, transition: _, ...rest } = entry
      const place = this.host.payloads.place(this.runId, rest.seq, rest.kind, rest.name)
      const value = data === null ? undefined : await readPayload(this.host, data, place, () => this.phase === 'live')
      if (rest.kind !== 'damaged') this.apply({ ...rest, value, since: { at } })
    }
    await this.mailbox.sort(this.claim.messages ?? [])
  }

  private async look(): Promise<void> {
    try {
      await this.mailbox.look(this.writer.arrived)
    } catch (error) {
      // Given back: the session that holds the run next reads it.
      this.writer.lose(error)
    }
  }

  /** Stops what is performed, but takes what it gives back all the same, and then ends the run. */
  private cancel(reason: string | null): void {
    this.cancelled = { reason: reason ?? this.cancelled?.reason ?? null }
    this.alarm.set(null)
    const because = reason === null ? '' : `: ${reason}`
    this.labour.abort(new HoldfastError('RUN_CANCELLED', `Run ${this.runId} is being cancelled${because}`))
    this.scheduleTurn()
  }

  private leaveCancelled({ reason }: { readonly reason: string | null }): void {
    const { writer } = this
    if (this.labour.isPerforming) return writer.flush()
    // Only the answer to a commit says who wants it and why, if it was this holder's last one that was refused.
    if (this.controlRequest === null && !writer.isDurable) return writer.barrier(() => this.scheduleTurn())
    this.leave({ kind: 'cancelled', name: null, meta: { reason, notUndone: [] }, data: null }, 'cancelled')
  }

  private leavePaused({ reason, note }: Extract<ControlRequest, { kind: 'pause' }>): void {
    if (this.labour.isPerforming) return this.writer.flush()
    this.leave({ kind: 'paused', name: null, meta: { reason, note }, data: null }, 'paused')
  }

  private leaveSucceeded(output: unknown): void {
    const data = this.host.payloads.encode(output, this.nextPlace('succeeded'))
    this.leave({ kind: 'succeeded', name: null, meta: null, data }, 'succeeded')
  }

  private leaveFailed(error: unknown, cause: number | null): void {
    if (this.phase !== 'live') return
    const data = this.host.payloads.encodeFailure(error, this.nextPlace('failed'))
    const meta = cause === null ? null : { cause, notUndone: [] }
    this.leave({ kind: 'failed', name: null, meta, data }, 'failed')
  }

  private leave(last: Draft, status: NonNullable<Exit['status']>): void {
    this.phase = 'leaving'
    this.stop(new Error(`Run ${this.runId} is not performed here any more.`))
    this.writer.append(last)
    this.writer.leave({ status, due: null, continues: null }).then(
      () => this.left(status),
      (error: unknown) => this.refused(error),
    )
  }

  private left(status: NonNullable<Exit['status']>): void {
    if (this.phase !== 'leaving') return
    if (!isTerminal(status)) return this.gone({ kind: 'released' })
    const { data } = this.writer.lastSent
    this.gone({ kind: 'ended', status, seq: this.writer.seq, data, reason: this.cancelled?.reason ?? null })
  }

  private refused(error: unknown): void {
    if (!isHoldfastError(error, 'RUN_CANCELLING')) return this.writer.lose(error)
    this.writer.takeBack()
    this.phase = 'live'
    this.cancel(reasonOf(this.controlRequest))
  }

  private depart(departure: Departure): void {
    const { listener } = this
    void Promise.resolve(departure).then((how) => listener.departed(how))
  }

  private gone(departure: Departure): void {
    this.phase = 'gone'
    this.depart(departure)
  }

  private stop(reason: unknown): void {
    this.alarm.set(null)
    this.labour.stop(reason)
  }

  private nextPlace(kind: EntryKind): Place {
    return this.host.payloads.place(this.runId, this.writer.seq + 1, kind, null)
  }
}

type Prepared = { readonly draft: Draft; readonly value: unknown }

function reasonOf(controlRequest: ControlRequest | null): string | null {
  return controlRequest?.kind === 'cancel' ? controlRequest.reason : null
}
