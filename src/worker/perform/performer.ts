// Moves leased runs on: finds or opens the frame of each, and handles its departure. No run can harm another one or the
// worker itself.

import { runLine } from '../../core/rows/engine-notes.ts'
import type { Acknowledged, Claim, Departure, Frame, Host } from '../../core/definition/definition.ts'
import type { Entry } from '../../core/model/entry.ts'
import { bug, HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import { isLeftToOthers } from '../../core/errors/left-to-others.ts'
import { ChurningMap } from '../../core/runtime/churning-map.ts'
import type { Lease, Run, ControlRequest } from '../../core/model/run.ts'
import type { Engine } from '../../engine/engine.ts'
import type { ClaimSelector, Fresh, ReleasedLease, HeldClaim } from '../../store.ts'
import { DeferredReleases } from '../release/deferred-releases.ts'
import { endWithoutFrame } from './last-resort.ts'
import { HeldRun } from './held-run.ts'
import { hasMessage, leaseOf, loadAll, journalToRead, mailboxToRead, type Reader, type Unread } from './load.ts'
import { Parked } from './parked-frames.ts'
import { Releases } from '../release/releases.ts'
import type { Slots } from './slots.ts'
import { VoidClaims } from './void-claims.ts'
import { quotedText } from '../../core/text/printable.ts'

export interface PerformerOptions {
  /** How many waiting runs stay in memory. */
  readonly cachedRuns: number
  /** Called when the time for a run that is moving here is over, and again while it goes on all the same. */
  readonly timedOut: (runId: string) => void
}

export interface Claims {
  readonly claims: readonly HeldClaim[]
  /** Those that let their deadline pass. */
  readonly overdue: readonly HeldClaim[]
}

export class Performer implements Reader {
  private readonly engine: Engine
  private readonly host: Host
  private readonly slots: Slots
  private readonly parked: Parked
  private readonly timedOut: PerformerOptions['timedOut']
  private readonly held = new ChurningMap<HeldRun>()
  private readonly releases: Releases
  private readonly deferred: DeferredReleases
  private readonly voidClaims = new VoidClaims()
  /** With the async context of the worker: a departure comes in that of the body that left, which the next body must not see. */
  private readonly inContext: (work: () => void) => void
  /** Nothing may begin any more, and what moves is to be given back. */
  private isGivingBack = false

  constructor(engine: Engine, host: Host, slots: Slots, options: PerformerOptions) {
    this.engine = engine
    this.host = host
    this.slots = slots
    this.parked = new Parked(options.cachedRuns)
    this.releases = new Releases(engine)
    this.deferred = new DeferredReleases(engine, (run, lease) => this.releases.release(run, lease))
    this.timedOut = options.timedOut
    this.inContext = engine.ports.scopes?.snapshot() ?? ((work) => work())
  }

  /** Begins a suspect, in a slot that is already taken. Its crash count was written before. */
  beginIsolated(run: Run): Promise<void> {
    this.releases.isolatedRun = run
    return this.beginAll([run])
  }

  /** Gives a claimed suspect back that never began. */
  giveBack(run: Run): void {
    this.releases.isolatedRun = run
    this.releases.release(run, leaseOf(run))
  }

  /** Gives a claimed run back that never began: it cannot be read here, or no slot was free for it. */
  decline(run: Run): void {
    this.releases.release(run, leaseOf(run))
  }

  /**
   * Begins runs that were just claimed, each in a slot that is already taken. One call reads all they need: the journals of
   * runs that are not known here, and the messages of those that are.
   */
  async beginAll(claimed: readonly Run[], fresh: readonly Fresh[] = []): Promise<void> {
    const unread: Unread[] = []
    const firsts = new Map(fresh.map(({ runId, entry }) => [runId, entry]))
    for (const run of claimed) {
      if (this.isStillLeaving(run, fresh)) continue
      this.supersede(run.id)
      const parked = this.parked.take(run.id)
      const frame = parked !== undefined && parked.seq === run.seq ? parked : null
      const first = firsts.get(run.id)
      // Only the whole journal opens a frame: with less, recorded steps would be performed again.
      const isWhole = first?.seq === run.seq
      if (frame !== null && !hasMessage(frame, run)) this.resume(run, frame, null)
      else if (frame !== null) unread.push(mailboxToRead(run, frame))
      else if (first !== undefined && isWhole) this.open({ run, lease: leaseOf(run), entries: [first], messages: [] })
      else unread.push(journalToRead(run))
    }
    await this.voidClaims.whileReading(unread, loadAll(this.engine.store, unread, this))
  }

  /** Begins a run that was just started here, in a slot that is already taken. */
  begin(run: Run, lease: Lease, entries: readonly Entry[]): void {
    this.open({ run, lease, entries, messages: run.inbox === 0 ? [] : null })
  }

  /** A claim that was unknown here is given back: if its run is about to begin after all, it must not. */
  disown(runId: string, token: number): void {
    this.voidClaims.disowned.add(this.engine.session, runId, token)
  }

  open(claim: Claim): void {
    const { run, lease } = claim
    if (this.isVoid(run, lease)) return
    const definition = this.engine.registry.find(run.type, run.version)
    let held: HeldRun | null = null
    try {
      if (definition === undefined)
        throw bug(`A run of ${quotedText(run.type)} was claimed, and no definition of it is registered here`)
      const frame = definition.open(this.host, claim)
      held = this.newHeld(run, lease, frame)
      frame.start(held)
      this.hold(held)
    } catch (error) {
      this.forget(held, error)
      void endWithoutFrame(this.engine, run, lease, error)
    }
  }

  /** A frame that could not begin: its run is not held here, and its slot is free. */
  private forget(held: HeldRun | null, error: unknown): void {
    this.slots.give(1)
    if (held === null) return
    held.isForgotten = true
    held.cancelTimeout?.()
    if (this.held.get(held.run.id) === held) this.held.delete(held.run.id)
    held.frame.abort(error)
  }

  /** True if a claim was given back, or lost with its session, before it could begin: then its slot is free again. */
  private isVoid(run: Run, lease: Lease): boolean {
    const { session, token } = lease
    const isOurs = !this.voidClaims.disowned.take(run.id, token) && session === this.engine.session
    if (isOurs && !this.isGivingBack && !this.voidClaims.isControlled(run.id)) return false
    if (isOurs) this.releases.release(run, lease)
    this.slots.give(1)
    return true
  }

  /** A run that may be moving here leaves at its next checkpoint, and goes on where there is time for it. */
  leave(runId: string): void {
    this.held.get(runId)?.frame.giveBack()
  }

  /** Every run leaves at its next checkpoint, and none begins. */
  giveBackAll(): void {
    this.isGivingBack = true
    for (const { frame } of this.held.values()) frame.giveBack()
  }

  /** Stops waiting for attempts under way. Returns the number of runs concerned. */
  abandonAll(): number {
    const held = [...this.held.values()]
    for (const { frame } of held) frame.abandon()
    return held.length
  }

  /** Settles when everything that was left has been tried to be given back. */
  gaveBack(): Promise<void> {
    return this.releases.settled()
  }

  /** Those of the selectors that may be claimed now. */
  claimable(selectors: readonly ClaimSelector[]): readonly ClaimSelector[] {
    return this.deferred.claimable(selectors)
  }

  /** Whether that run is moving here, or any. */
  isMoving(runId?: string): boolean {
    return runId === undefined ? this.held.size > 0 : this.held.has(runId)
  }

  /** Whether a claim of that run is held: it is moving here, or kept until others can have it. */
  holds(runId: string): boolean {
    return this.held.has(runId) || this.deferred.has(runId)
  }

  isParked(runId: string): boolean {
    return this.parked.has(runId)
  }

  /** The claims of runs that are moving or kept here. The deadlines of the lively and of the kept ones are extended. */
  claims(lively: ReadonlyMap<string, number>): Claims {
    const now = this.engine.ports.clock.monotonic()
    const [claims, overdue]: [HeldClaim[], HeldClaim[]] = [[], []]
    for (const [runId, held] of this.held) {
      const { token } = held.lease
      const ms = this.engine.registry.find(held.run.type, held.run.version)?.leaseMs ?? null
      const isLively = lively.has(runId)
      const inbox = held.frame.arrived
      const wanted = inbox === null ? {} : { inbox }
      const claim: HeldClaim = { runId, token, extendMs: isLively ? ms : null, ...wanted }
      if (isLively) held.aliveAt = now
      if (ms !== null && now - held.aliveAt > ms) overdue.push(claim)
      else claims.push(claim)
    }
    return { claims: [...claims, ...this.deferred.claims()], overdue }
  }

  /** A run is not held here any more: stops it, if it is still moving under that token, or under any. */
  lose(runId: string, token: number | null, reason: unknown): void {
    const held = this.held.get(runId)
    if (token === null || held?.lease.token === token) held?.frame.abort(reason)
    this.deferred.drop(runId, token)
  }

  /** A run that may be moving here has a control request, or null: it was withdrawn. */
  applyControl(runId: string, controlRequest: ControlRequest | null): void {
    this.held.get(runId)?.frame.applyControl(controlRequest)
    if (controlRequest !== null) this.deferred.controlRequested(runId)
  }

  /** There is a control request for a run that may be read here, or kept until others can have it; or it has ended. */
  controlRequested(runId: string): void {
    this.voidClaims.controlRequested(runId)
    this.deferred.controlRequested(runId)
  }

  /** More messages have arrived for a run that may be moving here: `inbox` is their number, null if they were not counted. */
  messageArrived(runId: string, inbox: number | null): void {
    this.held.get(runId)?.frame.messageArrived(inbox)
  }

  /** A run has sent the commit with which it leaves: its slot is free, until the store answers otherwise. */
  leaving(runId: string, committed: Promise<Acknowledged>): void {
    const held = this.held.get(runId)
    if (held?.frame.isVacant !== true || !this.slots.vacate()) return
    held.hasVacated = true
    const goesOn = (): void => {
      if (!held.hasVacated || this.held.get(runId) !== held) return
      held.hasVacated = false
      this.slots.retake()
    }
    committed.then(({ released }) => (released ? undefined : goesOn()), goesOn)
  }

  /** Ends a run that is moving here, after it has undone what there is to undo. */
  fail(runId: string, error: unknown): void {
    this.held.get(runId)?.frame.fail(error)
  }

  /** Stops everything at once and returns the leases that were held. */
  abort(reason: unknown): readonly ReleasedLease[] {
    const held = [...this.held.values()]
    this.held.clear()
    for (const { frame } of held) frame.abort(reason)
    this.parked.clear()
    const leases = held.map(({ run, lease }) => this.releases.of(run, lease))
    return [...leases, ...this.releases.takeLeft(), ...this.deferred.clear()]
  }

  /**
   * A run that is woken as soon as it was parked may be claimed here before the answer to the parking has come. It waits for
   * that, which does not take long: then it goes on without replay.
   */
  private isStillLeaving(run: Run, fresh: readonly Fresh[]): boolean {
    const held = this.held.get(run.id)
    if (held?.frame.isLeaving !== true) return false
    const before = held.next
    held.next = () => {
      before?.()
      void this.beginAll([run], fresh)
    }
    return true
  }

  /**
   * A run whose claim lasted too long may be claimed again by the worker that was too slow. The old claim is void, and work
   * that waits until nothing moves here must not wait for it.
   */
  private supersede(runId: string): void {
    this.deferred.drop(runId, null)
    const held = this.held.get(runId)
    if (held === undefined) return
    const reason = new HoldfastError('LEASE_LOST', `Run ${runId} was claimed anew while it was moving here.`)
    this.held.delete(runId)
    held.frame.abort(reason)
    this.lost(held.run, held.lease, reason)
  }

  unreadable(run: Run, error: unknown): void {
    const line = runLine(run, 'is given back: its journal could not be read now.')
    this.engine.ports.logger.warn(line, { run: run.id, type: run.type, error })
    this.slots.give(1)
    this.releases.release(run, leaseOf(run))
  }

  /** Its journal stays incomplete until an operator acts: given back at once, the run would be claimed again at once. */
  incomplete(run: Run, error: HoldfastError): void {
    this.slots.give(1)
    this.deferred.addUnreadable(run, leaseOf(run), error)
  }

  resume(run: Run, frame: Frame, messages: Claim['messages']): void {
    const lease = leaseOf(run)
    if (this.isVoid(run, lease)) return
    const held = this.newHeld(run, lease, frame)
    try {
      frame.resume({ run, lease, entries: [], messages }, held)
      this.hold(held)
    } catch (error) {
      this.forget(held, error)
      this.lost(run, lease, error)
    }
  }

  private newHeld(run: Run, lease: Lease, frame: Frame): HeldRun {
    return new HeldRun(this, run, lease, frame, this.engine.ports.clock.monotonic())
  }

  private hold(held: HeldRun): void {
    this.held.set(held.run.id, held)
    held.watchTimeout(this.engine, this.timedOut)
  }

  /** The frame of a run has left. Only that held run says so. */
  departed(held: HeldRun, how: Departure): void {
    this.inContext(() => {
      this.settle(held, how)
      held.next?.()
    })
  }

  private settle(held: HeldRun, how: Departure): void {
    const { id, timeoutAt } = held.run
    held.cancelTimeout?.()
    const wasHeld = this.held.get(id) === held && this.held.delete(id)
    if (wasHeld && how.kind === 'continued') return this.beginAnew(held, how)
    if (held.hasVacated) this.slots.left()
    else this.slots.give(1)
    // The code that aborts a run also gives it back.
    if (wasHeld) this.depart(held, how)
    if (how.kind === 'ended') return
    this.engine.runEnds.leftHere(id)
    // The run has no holder any more, and its timeout still counts.
    if (timeoutAt !== null) this.engine.onDeadline(timeoutAt)
  }

  /** Goes on in the same slot and under the same lease, if this process knows the workflow that the run has become. */
  private beginAnew({ run, lease }: HeldRun, { as, input, inbox }: Extract<Departure, { kind: 'continued' }>): void {
    const anew: Run = { ...run, ...as, seq: input.seq, base: input.seq, inbox, undo: 'none', crashes: 0 }
    if (this.engine.registry.find(as.type, as.version) === undefined) {
      this.slots.give(1)
      this.engine.unclaimedWarning.expect(as.type, run.id)
      return this.releases.release(anew, lease)
    }
    // At once, without reading the mailbox: between two frames the run would be unknown here.
    this.open({ run: anew, lease, entries: [input], messages: inbox === 0 ? [] : null })
  }

  private depart({ run, lease, frame }: HeldRun, departure: Departure): void {
    switch (departure.kind) {
      case 'ended': {
        const { status, seq, data, reason } = departure
        return this.engine.runEnds.ended({ runId: run.id, status, seq, data, reason })
      }
      case 'parked':
        this.parked.put(run.id, frame)
        return this.engine.onReady()
      case 'released':
      // The run was aborted while it began anew: the code that aborted it has given it back.
      case 'continued':
        return this.engine.onReady()
      case 'given-back':
        return this.releases.release(run, lease)
      case 'lost':
        if (departure.isLater === true) return this.deferred.addFailed(run, lease, departure.reason)
        return this.lost(run, lease, departure.reason)
    }
  }

  private lost(run: Run, lease: Lease, reason: unknown): void {
    const { logger } = this.engine.ports
    const details = { run: run.id, type: run.type, error: reason }
    if (isHoldfastError(reason, 'RUN_CANCELLED')) {
      logger.info(runLine(run, 'was cancelled at once; its steps here are aborted.'), details)
    } else if (isHoldfastError(reason) && reason.family === 'conflict') {
      logger.warn(runLine(run, 'is no longer held here; uncommitted work is not recorded.'), details)
    } else if (isLeftToOthers(reason)) {
      this.deferred.add(run, lease, reason)
    } else if (isHoldfastError(reason, 'ENTRY_REJECTED') || isHoldfastError(reason, 'BUG')) {
      void endWithoutFrame(this.engine, run, lease, reason)
    } else {
      logger.warn(runLine(run, 'was stopped here and is given back.'), details)
      this.releases.release(run, lease)
    }
  }
}
