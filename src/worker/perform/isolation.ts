// Suspects (`core/rules/claims/suspect.ts`) may end the process that performs them. So each of them is performed in a process
// that does nothing else: a poisonous run harms only itself, and a death shows which run caused it. Ordinary runs do not wait
// for that: a suspect has its turn when there is nothing else to do. It begins when the runs that left for its sake are given
// back.
//
//   open     → asking    a suspect is due and nothing moves here, nor waits to: one is claimed in isolation
//   open     → draining  a suspect has been due for long, and something always moved: nothing new is taken for a moment
//   draining → asking    everything has left
//   draining → open      a run stays: ordinary runs go on, and suspects wait on. The next attempt may take twice as long
//   asking   → alone     a suspect was claimed, and the mark that it begins is written: a death counts from here on.
//                        A process that has lived for only a moment leaves suspects alone: where processes die young, by a
//                        bad deployment, a death says nothing about a run
//   asking   → open      there was none, or the mark could not be written: it is given back in the background, and nothing was
//                        counted. If other transactions hold the rows of all that are due, the worker asks again after a pause,
//                        longer each time
//   alone    → open      it has committed something and so is innocent, or has left; or it has been alone for long, and then
//                        ordinary runs go on beside it
//   alone    → draining  the same, but the next suspect has been due for long, too: the suspects of one death do not each wait
//                        for the whole patience. An innocent run is given back at its next checkpoint, and goes on elsewhere.
//                        Ordinary runs have their turn when this has lasted for long
//
// In every state but `open` no ordinary run is taken. So whenever it is open again, for any reason, it stays so for four times
// as long as it was closed, and a process that is never idle does other work for at least four fifths of its time. That delays
// no suspect where there is nothing else to do: an idle process asks at once, regardless of earlier turns.
//
// A suspect has its turn as soon as one process is idle, or has no step that outlasts the longest drain. Where every process
// always has such a step, it waits until one is idle: it would take the time of ordinary runs, and no drain would ever be long
// enough.
//
// The rescuer reports when a suspect is due.

import { runLine, runName } from '../../core/rows/engine-notes.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { randomFraction, type Cancel } from '../../core/runtime/ports.ts'
import type { Run } from '../../core/model/run.ts'
import type { Engine } from '../../engine/engine.ts'
import type { ClaimSelector } from '../../store.ts'
import { Contention } from '../contention.ts'
import type { Performer } from './performer.ts'
import type { Slots } from './slots.ts'

/**
 * How long a suspect waits for a process that has nothing else to do, before one takes nothing new for its sake; half a lease
 * if that is less, and up to twice as long by chance. It has waited for a lease already, until its holder was found dead,
 * and is to go on within three.
 */
const patienceMs = 30_000
/**
 * How long that may last the first time, or a lease; twice as long each time that it was not enough, up to the longest. Where
 * steps take minutes, a suspect that waits for one of them has to wait for minutes anyway.
 */
const drainMs = 5_000
const longestDrainMs = 300_000
/**
 * How many times as long as the process was closed ordinary runs have their turn then. Without it a step of an hour kept a
 * process closed for 74 % of its first ten minutes and for 90 % of the hour, for one suspect.
 */
const othersTurns = 4
/** How long a suspect is alone at most: its first step may take an hour, and ordinary runs have waited for it long enough. */
const aloneMs = 30_000
/** How long suspects may be performed one after the other before ordinary runs have a turn. */
const closedMs = 30_000
/** A process is young for so long, or for two leases if that is less. Restarts of a bad deployment come sooner. */
const youngMs = 10_000

/** The worker, as the isolation of its suspects sees it. */
export interface IsolationWorker {
  /** Ordinary runs have all the slots they want: none waits to be claimed, and leases may be taken. */
  readonly isFree: boolean
  /** The session is known to be alive. Any worker may take over a lease under a session that has not opened yet. */
  readonly mayLease: boolean
  /** A suspect is about to be marked: if it is lost, that counts, unless this process lives to say otherwise. */
  watch(run: Run): void
  /** Nothing new may be taken; or it may again. */
  pause(): void
  resume(): void
}

export interface IsolationOptions {
  readonly selectors: readonly ClaimSelector[]
  readonly leaseMs: number
}

export class IsolatedRuns {
  private readonly engine: Engine
  private readonly slots: Slots
  private readonly performer: Pick<Performer, 'beginIsolated' | 'gaveBack' | 'giveBack' | 'leave'>
  private readonly worker: IsolationWorker
  private readonly options: IsolationOptions
  /** Until when this process is young, in its own time. */
  private readonly youngUntil: number
  private state: 'open' | 'draining' | 'asking' | 'alone' = 'open'
  private readonly patienceMs: number
  private readonly firstDrainMs: number
  private drainMs: number
  /** Since when no ordinary run is taken, and until when ordinary runs have their turn, in the time of this process. */
  private closedAt = 0
  private openUntil = 0
  /** Until when an idle process leaves suspects alone whose rows other transactions hold, in its own time. */
  private contendedUntil = Number.NEGATIVE_INFINITY
  private readonly contention: Contention
  /** When the next suspect is due, in the time of this process; null if none is known. */
  private dueAt: number | null = null
  /** The suspect that is performed alone. */
  private suspect: string | null = null
  /** How many commits of it are on their way. */
  private commits = 0
  private cancelDue: Cancel = () => undefined
  /** Cancels the timer that bounds the present state; while it is open, that of the patience. */
  private cancelBound: Cancel | null = null
  private pendingClaim: Promise<void> = Promise.resolve()
  private stopped = false

  constructor(
    engine: Engine,
    slots: Slots,
    performer: Pick<Performer, 'beginIsolated' | 'gaveBack' | 'giveBack' | 'leave'>,
    worker: IsolationWorker,
    options: IsolationOptions,
  ) {
    this.engine = engine
    this.slots = slots
    this.performer = performer
    this.worker = worker
    this.options = options
    this.patienceMs = Math.min(options.leaseMs / 2, patienceMs)
    this.firstDrainMs = Math.min(options.leaseMs, drainMs)
    this.drainMs = this.firstDrainMs
    this.contention = new Contention(engine.ports.random)
    this.youngUntil = this.now + Math.min(2 * options.leaseMs, youngMs)
  }

  /** A suspect is due in this many milliseconds, negative if it was due before; null if there is none. */
  onSuspects(dueInMs: number | null): void {
    if (this.stopped) return
    this.cancelDue()
    this.dueAt = dueInMs === null ? null : this.now + dueInMs
    if (dueInMs !== null) this.lookIn(dueInMs)
    else if (this.state === 'draining') this.open()
    else if (this.state === 'open') this.bound(null)
  }

  /** A run has left, nothing was found to claim, or leases may be taken again. */
  look(): void {
    if (this.state === 'alone' && this.slots.inUse === 0) return this.openOrGoOn()
    if (this.stopped || !this.isDue || this.state === 'asking' || this.state === 'alone') return
    const isIdle = this.slots.inUse === 0
    if (isIdle && !this.worker.mayLease) return
    if (isIdle && (this.state === 'draining' || this.worker.isFree)) {
      // A drain comes after the patience of suspects only, and nothing else is taken meanwhile.
      const contendedMs = this.state === 'draining' ? 0 : this.contendedUntil - this.now
      const restMs = Math.max(this.restMs, contendedMs)
      if (restMs > 0) this.lookIn(restMs)
      else this.ask()
    } else if (this.state === 'open' && this.cancelBound === null) {
      // All workers know of the same suspect, and one is enough for it.
      const jitter = Math.round(this.patienceMs * randomFraction(this.engine.ports.random))
      this.bound(this.leftMs + jitter, () => this.drain())
    }
  }

  /** A run commits something: once that has succeeded, it is no suspect any more. */
  sent(runId: string, committed: Promise<unknown>): void {
    if (runId !== this.suspect) return
    this.commits += 1
    const acquit = (): void => {
      if (this.suspect === runId && this.state === 'alone') this.openOrGoOn()
    }
    const refused = (): void => {
      if (this.suspect === runId) this.commits -= 1
    }
    committed.then(acquit, refused)
  }

  /** Settles when nothing is being claimed any more. */
  async stop(): Promise<void> {
    this.stopped = true
    this.cancelDue()
    this.bound(null)
    await this.pendingClaim
  }

  private get now(): number {
    return this.engine.ports.clock.monotonic()
  }

  private get isDue(): boolean {
    return this.dueAt !== null && this.dueAt <= this.now
  }

  /**
   * How long ordinary runs go on: the suspect that is due waits for its patience, ordinary runs have their turn, or this
   * process is young.
   */
  private get leftMs(): number {
    const { now } = this
    return Math.max(this.restMs, (this.dueAt ?? now) + this.patienceMs - now, this.openUntil - now)
  }

  /** How long this process is still young. */
  private get restMs(): number {
    return Math.max(0, this.youngUntil - this.now)
  }

  private lookIn(ms: number): void {
    this.cancelDue()
    // Whole milliseconds, upwards: a fraction of one that is lost on the way would be waited for again and again.
    this.cancelDue = this.engine.ports.clock.after(Math.ceil(Math.max(0, ms)), () => this.look())
  }

  /**
   * A run was always moving here. If the suspect that waits can be performed here at all, nothing new is taken for a moment.
   */
  private drain(): void {
    this.bound(null)
    this.pendingClaim = this.claim(0).then(
      ({ more }) => {
        if (!more || this.stopped || this.state !== 'open') return
        this.close()
        this.wait()
      },
      // The rescuer reports again.
      () => undefined,
    )
  }

  /**
   * Nothing new is taken until every run has left; if one stays, ordinary runs go on, and the drain may take longer next
   * time.
   */
  private wait(): void {
    this.state = 'draining'
    this.bound(this.drainMs, () => {
      this.drainMs = Math.min(longestDrainMs, 2 * this.drainMs)
      this.open()
    })
    this.look()
  }

  private ask(): void {
    if (this.state === 'open') this.close()
    this.state = 'asking'
    this.drainMs = this.firstDrainMs
    this.bound(null)
    this.slots.take(1)
    this.pendingClaim = this.claim(1).then(
      ({ runs: [run] }) => (run === undefined ? this.leave() : this.begin(run)),
      (error: unknown) => {
        this.engine.ports.logger.warn('The store did not hand out a suspect run; asking again later.', { error })
        this.leave()
      },
    )
  }

  private async claim(limit: number): ReturnType<Engine['store']['claim']> {
    const { session, store, clock } = this.engine
    const { selectors } = this.options
    const since = this.dueAt ?? this.now
    this.dueAt = null
    const { keys } = this.engine.payloads
    const request = { session, selectors, limit, isolated: true, ...(keys === null ? {} : { keys }) }
    const claimed = await store.claim(request)
    clock.observe(claimed.now)
    if (claimed.more && claimed.runs.length === 0 && limit > 0) this.contendedUntil = this.now + this.contention.met()
    else if (limit > 0) this.contention.over()
    const nextInMs = claimed.more ? since - this.now : claimed.nextDue === null ? null : claimed.nextDue - claimed.now
    this.onSuspects(nextInMs)
    return claimed
  }

  private async begin(run: Run): Promise<void> {
    const { engine } = this
    const { id: runId, token, session, crashes } = run
    const held = [{ runId, token, extendMs: null, begun: crashes + 1 }]
    try {
      if (this.stopped || session === null) throw new Error('The worker is shutting down.')
      const { leaseMs } = this.options
      // The lease of a run that was given back for its sake may still be ours: a death would count against that run.
      await this.performer.gaveBack()
      this.worker.watch(run)
      const {
        alive,
        lost,
        busy = [],
      } = await engine.store.beat({
        session,
        leaseMs,
        opens: false,
        held,
        seeksUnknownLeases: false,
      })
      // A lost run is begun by its next holder.
      if (!alive || lost.length > 0) return this.leave()
      // A run that begins without the mark would crash uncounted.
      if (busy.length > 0) throw new HoldfastError('STORE_UNAVAILABLE', 'Another transaction has locked its row.')
    } catch (error) {
      engine.ports.logger.warn(runLine(run, 'could not begin alone; it is given back.'), {
        run: runId,
        type: run.type,
        error,
      })
      this.performer.giveBack(run)
      return this.leave()
    }
    engine.ports.logger.info(runLine(run, `is performed alone: ${crashes} processes died while they performed it.`), {
      run: runId,
      type: run.type,
      crashes,
    })
    this.state = 'alone'
    this.suspect = runId
    this.commits = 0
    this.bound(aloneMs, () => void this.unmark({ session, runId, type: run.type, token, crashes }))
    await this.performer.beginIsolated(run)
  }

  /**
   * The run is no longer alone: from here on a death says nothing about it. If a commit of the run is on its way, that commit
   * clears the mark by itself; were it to land first, this would make a suspect again of an innocent run.
   */
  private async unmark(claim: {
    session: string
    runId: string
    type: string
    token: number
    crashes: number
  }): Promise<void> {
    if (this.commits > 0) return this.open()
    const { session, runId, type, token, crashes } = claim
    const held = [{ runId, token, extendMs: null, begun: crashes }]
    try {
      const { busy = [] } = await this.engine.store.beat({
        session,
        leaseMs: this.options.leaseMs,
        opens: false,
        held,
        seeksUnknownLeases: false,
      })
      if (busy.length > 0) throw new HoldfastError('STORE_UNAVAILABLE', 'Another transaction has locked its row.')
    } catch (error) {
      this.engine.ports.logger.warn(`The mark of ${runName({ id: runId, type })} could not be taken back.`, {
        run: runId,
        type,
        error,
      })
    }
    if (this.suspect === runId && this.state === 'alone') this.open()
  }

  /** No run is performed alone after all. */
  private leave(): void {
    // Before the slot is free, so that no claim follows at once.
    this.letOthersIn()
    this.slots.give(1)
    this.worker.resume()
  }

  private close(): void {
    this.closedAt = this.now
    this.worker.pause()
  }

  private open(): void {
    this.letOthersIn()
    this.worker.resume()
  }

  /** The only way back to `open`. */
  private letOthersIn(): void {
    this.state = 'open'
    this.suspect = null
    this.openUntil = this.now + Math.max(this.patienceMs, othersTurns * (this.now - this.closedAt))
    this.bound(null)
  }

  /** The suspect is no longer alone. If other suspects have waited for long, they are next, unless that lasts too long. */
  private openOrGoOn(): void {
    const isOverdue = this.isDue && (this.dueAt ?? 0) + this.patienceMs <= this.now
    if (!isOverdue || this.stopped || this.now - this.closedAt > closedMs) return this.open()
    if (this.suspect !== null && this.slots.inUse > 0) this.performer.leave(this.suspect)
    this.suspect = null
    this.wait()
  }

  private bound(ms: number | null, then: () => void = () => undefined): void {
    this.cancelBound?.()
    this.cancelBound = ms === null ? null : this.engine.ports.clock.after(ms, then)
  }
}
