// Keeps this process's session alive, and with it all its leases. One row is written, however many runs are held.
//
//   healthy → unsure    a beat failed: no new leases are taken until one succeeds
//   unsure  → healthy   a beat succeeded and the session is still ours
//   any     → lost      no beat has succeeded for a whole lease, however that came: others may have taken over, so all
//                       work here is aborted; or the store says that the session has ended
//   lost    → healthy   under a new session. The old one is ended first: the store may not have noticed anything, and
//                       as long as it lived no worker could take over the runs that were aborted here.
//   any     → refused   the store is ahead of this code and says so, for good: the worker stops gracefully, and beats
//                       go on meanwhile, for a store that keeps the lease of a process that is about to leave
//
// Unknown leases, which the session holds without this process knowing, are looked for with every sixth beat only, because the
// store scans all leases of the session for it; and with the next beats after a call that may have leased runs was not
// answered. If the store could not look, the next beat asks again. A beat that met a row lock is followed by the next one soon,
// which does the rest.
//
// Other workers judge this process by the store's clock. It judges itself by its own, counted from when the last beat that
// succeeded was sent, and so never considers its lease alive for longer than they do. A beat that is never answered is no
// success, so a separate timer watches the lease.

import { HoldfastError, isHoldfastError } from '../core/errors/error.ts'
import type { Cancel } from '../core/runtime/ports.ts'
import type { ControlRequest } from '../core/model/run.ts'
import type { Engine } from '../engine/engine.ts'
import type { Beat, HeldClaim } from '../store.ts'

/** The events that the heartbeat reports to the worker. */
export interface HeartbeatListener {
  /** The claims that are held here, and whose deadlines should be extended. */
  claims(): readonly HeldClaim[]
  /**
   * The heartbeat that carried the last of these claims has succeeded, except for the runs whose rows another transaction has
   * locked.
   */
  claimsKept(busy: readonly string[]): void
  /** No lease may be taken now; or it may again. */
  pause(): void
  resume(): void
  /** The store does not work with this code any more: stop gracefully. May be called again. */
  refused(reason: HoldfastError): void
  /** Other sessions may hold the runs that are held here: stop them all. */
  leasesLost(reason: HoldfastError): void
  /** A single claim is lost. */
  claimLost(claim: HeldClaim): void
  /** The session holds these leases, and they are not among the claims that are held here. */
  unknownLeasesFound(unknownLeases: Beat['unknownLeases']): void
  /** There is a request to cancel or to pause a run that is held. */
  controlRequested(runId: string, controlRequest: ControlRequest): void
  /** More messages have arrived for a run that is held: this many by now. */
  messageArrived(runId: string, inbox: number): void
  /** A run that is held has used up the time for the whole run. */
  runTimedOut(runId: string): void
}

/** This many beats go by between two looks for unknown leases, if nothing suggests that there are some. */
const unknownLeasesEvery = 6

/** Until the next heartbeat, if the last one failed or met a row lock. */
const soonMs = 1_000

export class Heartbeat {
  private readonly engine: Engine
  private readonly listener: HeartbeatListener
  private readonly leaseMs: number
  private readonly everyMs: number
  private state: 'healthy' | 'unsure' | 'lost' = 'healthy'
  /** A session that is given up and not ended yet. */
  private givenUp: string | null = null
  private beatAt = 0
  /** The session of the last heartbeat that was answered: the next one need not open it. */
  private opened: string | null = null
  /** Unknown leases are looked for in this many beats. */
  private unknownLeasesIn = unknownLeasesEvery
  /** Another transaction had locked a row that the last heartbeat was about. */
  private isBusy = false
  /** The number of the last beat that was set. */
  private turn = 0
  private cancel: Cancel | null = null
  private cancelWatch: Cancel | null = null
  private stopped = false

  constructor(
    engine: Engine,
    listener: HeartbeatListener,
    options: { readonly leaseMs: number; readonly everyMs: number },
  ) {
    this.engine = engine
    this.listener = listener
    this.leaseMs = options.leaseMs
    this.everyMs = options.everyMs
  }

  /** Opens the session. Nothing may be leased before this settles. */
  async start(): Promise<void> {
    await this.beat()
    this.schedule(this.everyMs)
  }

  /** The last beat succeeded: the session is known to the store, and leases may be taken under it. */
  get isHealthy(): boolean {
    return this.state === 'healthy'
  }

  /** The next beat comes at once. */
  hurry(): void {
    this.schedule(0)
  }

  /** A call that may have leased runs to this session was not answered: the next beats look for unknown leases. */
  seekUnknownLeases(): void {
    this.unknownLeasesIn = 0
  }

  /** Ends the session; its runs must have been given back before. */
  async stop(): Promise<void> {
    this.stopped = true
    this.cancel?.()
    this.cancelWatch?.()
    const { store, session } = this.engine
    // The next worker of this Holdfast must not begin with a session that is over.
    this.engine.renewSession()
    await store.beat({ session, leaseMs: this.leaseMs, end: true })
  }

  /** Sets the next heartbeat. One that is on its way and never answered sets none, so the code that gives it up does. */
  private schedule(ms: number): void {
    if (this.stopped) return
    this.cancel?.()
    this.turn += 1
    const { turn } = this
    this.cancel = this.engine.ports.clock.after(ms, () => void this.tick(turn))
  }

  private async tick(turn: number): Promise<void> {
    if (this.isOverdue && this.state === 'healthy') this.lose('This process stood still for longer than its lease.')
    try {
      await this.beat()
      if (turn === this.turn) this.schedule(this.isBusy ? Math.min(this.everyMs, soonMs) : this.everyMs)
    } catch (error) {
      if (this.stopped || turn !== this.turn) return
      this.turnUnsure()
      // Other calls than this one may not have been answered either.
      this.seekUnknownLeases()
      if (isHoldfastError(error, 'SCHEMA_TOO_NEW')) this.listener.refused(error)
      else this.engine.ports.logger.warn('A heartbeat failed; no new work is taken until one succeeds.', { error })
      this.schedule(Math.min(this.everyMs, soonMs))
    }
  }

  private async beat(): Promise<void> {
    const { engine, listener, leaseMs } = this
    const { store, session } = engine
    if (this.givenUp !== null) {
      await store.beat({ session: this.givenUp, leaseMs, end: true })
      this.givenUp = null
    }
    const sentAt = engine.ports.clock.monotonic()
    const held = listener.claims()
    const seeksUnknownLeases = this.unknownLeasesIn <= 0
    this.unknownLeasesIn = (seeksUnknownLeases ? unknownLeasesEvery : this.unknownLeasesIn) - 1
    const beatAnswer = await store.beat({
      session,
      leaseMs,
      opens: session !== this.opened,
      held,
      seeksUnknownLeases,
    })
    const {
      alive,
      lost,
      busy = [],
      unknownLeases,
      unknownLeasesSkipped = false,
      controlRequests,
      messages,
      timedOut,
      now,
    } = beatAnswer
    engine.clock.observe(now)
    this.opened = session
    if (this.stopped) return
    // The session was given up while this heartbeat was on its way: the code that did so beats for the next session.
    if (session !== engine.session) return
    if (!alive) {
      this.lose('Other workers declared this process dead and recovered its runs.')
      return this.beat()
    }
    this.beatAt = sentAt
    this.watch()
    this.isBusy = busy.length > 0
    listener.claimsKept(busy)
    if (seeksUnknownLeases && !unknownLeasesSkipped) listener.unknownLeasesFound(unknownLeases)
    // Whether they are unknown leases indeed shows with the next look, a beat later.
    if (unknownLeases.length > 0 || unknownLeasesSkipped) this.unknownLeasesIn = 0
    if (lost.length > 0) for (const claim of held) if (lost.includes(claim.runId)) listener.claimLost(claim)
    for (const { runId, controlRequest } of controlRequests) listener.controlRequested(runId, controlRequest)
    for (const { runId, inbox } of messages) listener.messageArrived(runId, inbox)
    for (const runId of timedOut) listener.runTimedOut(runId)
    if (this.state === 'healthy') return
    this.state = 'healthy'
    listener.resume()
  }

  private get isOverdue(): boolean {
    return this.engine.ports.clock.monotonic() - this.beatAt > this.leaseMs
  }

  /** Gives up when the lease runs out before another beat succeeds. */
  private watch(): void {
    const { clock } = this.engine.ports
    this.cancelWatch?.()
    this.cancelWatch = clock.after(Math.max(0, this.beatAt + this.leaseMs - clock.monotonic()), () => {
      if (this.state !== 'lost') this.lose('No heartbeat has succeeded for a whole lease.')
      this.schedule(0)
    })
  }

  private turnUnsure(): void {
    if (this.state !== 'healthy') return
    this.state = 'unsure'
    this.listener.pause()
  }

  private lose(why: string): void {
    const isFirst = this.state !== 'lost'
    this.turnUnsure()
    this.state = 'lost'
    this.givenUp = this.engine.session
    this.engine.renewSession()
    // A new session may be found dead, too, before it held anything.
    if (isFirst)
      this.listener.leasesLost(new HoldfastError('LEASE_LOST', `${why} What was being done here is aborted.`))
  }
}
