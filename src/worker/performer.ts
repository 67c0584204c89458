// Moves leased runs on: finds or opens the frame of each, and sees to what is left when the frame departs.
// Whatever a run does, it cannot harm another one or the worker itself.

import type { Claim, Departure, Frame, Host } from '../core/definition.ts'
import type { Entry } from '../core/entry.ts'
import { bug, HoldfastError, isHoldfastError } from '../core/error.ts'
import { growingPauses } from '../core/pause.ts'
import type { Lease, Run, Wish } from '../core/run.ts'
import type { Engine } from '../engine/engine.ts'
import type { Fresh, HeldClaim, Loaded, LoadRequest } from '../store.ts'
import { mailRequest } from '../engine/mail-reader.ts'
import { noMail } from '../engine/mail.ts'
import { Isolation } from './isolation.ts'
import { giveUp } from './last-resort.ts'
import { Parked } from './parked.ts'
import type { Slots } from './slots.ts'

/** As long as this process lives, a run that it cannot give back is nobody's. */
const releaseTries = 20
/** How much of a journal is read at once. */
const entriesAtOnce = 1_000

const nothing: Loaded = { entries: [], messages: [] }

export interface PerformerOptions {
  /** How many waiting runs stay in memory. */
  readonly parked: number
  /** Called when nothing new may be taken, and when it may again. */
  readonly pause: () => void
  readonly resume: () => void
}

interface Held {
  readonly run: Run
  readonly lease: Lease
  readonly frame: Frame
  /** Settles when what is left of it has been seen to. */
  departed: Promise<void>
  /** When it was last known to be alive, for workflows whose claims have a deadline. */
  aliveAt: number
}

/** A claimed run about which something has to be read; its frame, if that is kept here. */
interface Unread {
  readonly run: Run
  readonly frame: Frame | null
  readonly request: LoadRequest
}

export interface Claims {
  readonly claims: readonly HeldClaim[]
  /** Those that let their deadline pass. */
  readonly overdue: readonly HeldClaim[]
}

export class Performer {
  private readonly engine: Engine
  private readonly host: Host
  private readonly slots: Slots
  private readonly parked: Parked
  private readonly isolation: Isolation
  private readonly held = new Map<string, Held>()
  /** Claims that were given back without having begun, and whose run may still be on its way here. */
  private readonly disowned = new Set<string>()

  constructor(engine: Engine, host: Host, slots: Slots, options: PerformerOptions) {
    this.engine = engine
    this.host = host
    this.slots = slots
    this.parked = new Parked(options.parked)
    const { pause, resume } = options
    const held = this.held
    this.isolation = new Isolation({
      pause,
      resume,
      get moving() {
        return held.size
      },
    })
  }

  /**
   * Begins runs that were just claimed, each in a slot that is already taken. Whatever they need to know is read at once: the
   * journals of those that are not known here, and the mail of those that are.
   */
  async beginAll(claimed: readonly Run[], fresh: readonly Fresh[] = []): Promise<void> {
    const unread: Unread[] = []
    const firsts = new Map(fresh.map(({ runId, entry }) => [runId, entry]))
    for (const run of await this.admitted(claimed)) {
      if (this.isStillLeaving(run, fresh)) continue
      this.supersede(run.id)
      const parked = this.parked.take(run.id)
      const frame = parked !== undefined && parked.seq === run.seq ? parked : null
      const first = firsts.get(run.id)
      if (frame !== null && !hasMail(frame, run)) this.resume(run, frame, null)
      else if (frame !== null) unread.push({ run, frame, request: mailRequest(run.id, frame.wants) })
      else if (first !== undefined) void this.beginLoaded(run, { entries: [first], messages: [] })
      else unread.push({ run, frame, request: { runId: run.id, after: run.base - 1, limit: entriesAtOnce } })
    }
    if (unread.length === 0) return
    try {
      const loaded = await this.engine.store.load(unread.map(({ request }) => request))
      unread.forEach(({ run, frame }, index) => {
        const read = loaded[index] ?? nothing
        if (frame === null) void this.beginLoaded(run, read)
        else this.resume(run, frame, read.messages)
      })
    } catch (error) {
      for (const { run } of unread) void this.unreadable(run, error)
    }
  }

  /** Begins a run that was just started here, in a slot that is already taken. */
  begin(run: Run, lease: Lease, entries: readonly Entry[]): void {
    if (!this.isolation.isAlone) return this.open({ run, lease, entries, messages: run.inbox === 0 ? [] : null })
    this.slots.give(1)
    void this.release(run, lease)
  }

  /** A claim that nobody here knew of is given back: should its run be about to begin after all, it must not. */
  disown(runId: string, token: number): void {
    this.disowned.add(`${runId} ${token}`)
  }

  private open(claim: Claim): void {
    const { run, lease } = claim
    if (this.isVoid(run, lease)) return
    const definition = this.engine.registry.find(run.type, run.version)
    try {
      if (definition === undefined) throw bug(`A run of "${run.type}" was claimed that nobody here can perform`)
      const frame = definition.open(this.host, claim)
      this.follow(this.hold(run, lease, frame), frame.start())
    } catch (error) {
      void giveUp(this.engine, run, lease, error)
      this.slots.give(1)
      this.isolation.left()
    }
  }

  /** True if a claim was given back, or lost with its session, before it could begin: then its slot is free again. */
  private isVoid({ id }: Run, { session, token }: Lease): boolean {
    const isDisowned = this.disowned.delete(`${id} ${token}`)
    if (!isDisowned && session === this.engine.session) return false
    this.slots.give(1)
    this.isolation.left()
    return true
  }

  isMoving(runId: string): boolean {
    return this.held.has(runId)
  }

  isParked(runId: string): boolean {
    return this.parked.has(runId)
  }

  /** What is moving here. The deadlines of the lively move on. */
  claims(lively: ReadonlySet<string>): Claims {
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
    return { claims, overdue }
  }

  /** A run is not held here any more: stops it, if it is still moving under that token, or under any. */
  lose(runId: string, token: number | null, reason: unknown): void {
    const held = this.held.get(runId)
    if (token === null || held?.lease.token === token) held?.frame.abort(reason)
  }

  /** Somebody wants a run that may be moving here cancelled or paused. */
  obey(runId: string, wish: Wish): void {
    this.held.get(runId)?.frame.obey(wish)
  }

  /** More messages have arrived for a run that may be moving here: so many, null if nobody has counted. */
  mailed(runId: string, inbox: number | null): void {
    this.held.get(runId)?.frame.mail(inbox)
  }

  /** Ends a run that is moving here, after it has undone what there is to undo. */
  fail(runId: string, error: unknown): void {
    this.held.get(runId)?.frame.fail(error)
  }

  /** Stops everything at once and says what was held. */
  abort(reason: unknown): readonly (Lease & { readonly runId: string })[] {
    const held = [...this.held.values()]
    this.held.clear()
    for (const { frame } of held) frame.abort(reason)
    this.parked.clear()
    return held.map(({ run, lease }) => ({ ...lease, runId: run.id }))
  }

  /**
   * A run that is woken as soon as it was parked may be claimed here before the answer to the parking has come. It waits for
   * that, which does not take long: then it goes on without replay.
   */
  private isStillLeaving(run: Run, fresh: readonly Fresh[]): boolean {
    const held = this.held.get(run.id)
    if (held?.frame.isLeaving !== true) return false
    void held.departed.then(() => this.beginAll([run], fresh))
    return true
  }

  /**
   * A claim that lasted too long may come back to the worker that was too slow. The old one is nobody's any more, and what
   * waits until nothing moves here must not wait for it.
   */
  private supersede(runId: string): void {
    const held = this.held.get(runId)
    if (held === undefined) return
    const reason = new HoldfastError('LEASE_LOST', `Run ${runId} was claimed anew while it was moving here.`)
    this.held.delete(runId)
    held.frame.abort(reason)
    this.lost(held.run, held.lease, reason)
  }

  /** What may begin of what was claimed; the rest is given back before. */
  private async admitted(claimed: readonly Run[]): Promise<readonly Run[]> {
    const chosen = this.isolation.choose(claimed)
    if (chosen.length === claimed.length) return claimed
    const others = claimed.filter((run) => !chosen.includes(run))
    this.slots.give(others.length)
    await Promise.all(others.map((run) => this.release(run, leaseOf(run))))
    return chosen
  }

  private async beginLoaded(run: Run, { entries: first, messages }: Loaded): Promise<void> {
    try {
      const entries = [...first]
      while (entries.length < run.seq - run.base + 1) {
        const after = run.base - 1 + entries.length
        const [page] = await this.engine.store.load([{ runId: run.id, after, limit: entriesAtOnce, mail: noMail }])
        if (page === undefined || page.entries.length === 0) throw bug('A journal is shorter than its run says')
        entries.push(...page.entries)
      }
      this.open({ run, lease: leaseOf(run), entries, messages })
    } catch (error) {
      await this.unreadable(run, error)
    }
  }

  private async unreadable(run: Run, error: unknown): Promise<void> {
    this.engine.ports.logger.warn(`The journal of run ${run.id} could not be read now; it is given back.`, { error })
    this.slots.give(1)
    this.isolation.left()
    await this.release(run, leaseOf(run))
  }

  private resume(run: Run, frame: Frame, messages: Claim['messages']): void {
    const lease = leaseOf(run)
    if (this.isVoid(run, lease)) return
    this.follow(this.hold(run, lease, frame), frame.resume({ run, lease, entries: [], messages }))
  }

  private hold(run: Run, lease: Lease, frame: Frame): Held {
    return { run, lease, frame, departed: Promise.resolve(), aliveAt: this.engine.ports.clock.monotonic() }
  }

  private follow(held: Held, departure: Promise<Departure>): void {
    const { id } = held.run
    this.held.set(id, held)
    held.departed = departure.then((how) => {
      const wasHeld = this.held.get(id) === held && this.held.delete(id)
      if (wasHeld && how.kind === 'continued') return this.beginAnew(held, how)
      this.slots.give(1)
      // What was aborted is given back by whoever aborted it.
      if (wasHeld) this.depart(held, how)
      this.isolation.left()
    })
  }

  /** Goes on in the same slot and under the same lease, if this process knows what the run has become. */
  private beginAnew({ run, lease }: Held, { as, input, inbox }: Extract<Departure, { kind: 'continued' }>): void {
    const anew: Run = { ...run, ...as, seq: input.seq, base: input.seq, inbox, undo: 'none', crashes: 0 }
    if (this.engine.registry.find(as.type, as.version) === undefined) {
      this.slots.give(1)
      this.isolation.left()
      return void this.release(anew, lease)
    }
    // At once, without a look at the mailbox: between two frames the run would be known to nobody here.
    this.open({ run: anew, lease, entries: [input], messages: inbox === 0 ? [] : null })
  }

  private depart({ run, lease, frame }: Held, departure: Departure): void {
    switch (departure.kind) {
      case 'ended': {
        const { status, seq, data, reason } = departure
        return this.engine.endings.ended({ runId: run.id, status, seq, data, reason })
      }
      case 'parked':
        this.parked.put(run.id, frame)
        return this.engine.onReady()
      case 'released':
      // The run was aborted while it began anew: whoever aborted it has given it back.
      case 'continued':
        return this.engine.onReady()
      case 'lost':
        return this.lost(run, lease, departure.reason)
    }
  }

  private lost(run: Run, lease: Lease, reason: unknown): void {
    const { logger } = this.engine.ports
    const details = { run: run.id, type: run.type, error: reason }
    if (isHoldfastError(reason, 'RUN_CANCELLED')) {
      logger.info(`Run ${run.id} was cancelled at once: what was being done here is aborted.`, details)
    } else if (isHoldfastError(reason) && reason.family === 'conflict') {
      logger.warn(`Run ${run.id} went on elsewhere: what was done here since the last commit is not recorded.`, details)
    } else if (isHoldfastError(reason, 'ENTRY_REJECTED') || isHoldfastError(reason, 'BUG')) {
      void giveUp(this.engine, run, lease, reason)
    } else {
      logger.warn(`Run ${run.id} was stopped here and is given back.`, details)
      void this.release(run, lease)
    }
  }

  private async release(run: Run, lease: Lease): Promise<void> {
    const pause = growingPauses(this.engine.ports)
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.engine.store.release([{ ...lease, runId: run.id }])
      } catch (error) {
        const { logger } = this.engine.ports
        if (tries === releaseTries)
          return logger.error(`Run ${run.id} could not be given back.`, { run: run.id, error })
        await pause()
      }
    }
  }
}

/** Something has come that the frame may wait for. */
function hasMail({ arrived, wants }: Frame, { inbox }: Run): boolean {
  return arrived !== null && inbox > arrived && wants?.length !== 0
}

function leaseOf(run: Run): Lease {
  if (run.session === null) throw bug('A claimed run has no holder', { runId: run.id })
  return { session: run.session, token: run.token }
}
