// Moves one part of a projection on, in one process. Any number of processes may have one for it; the lease of the row says whose
// turn it is.
//
//   standing by → leading   the row was claimed: nobody held it, or the lease of its holder is over
//   leading     → leading   a page of the feed is handled in batches, each with its position; at the end of the feed it waits for
//                           the poll, or until an entry is expected
//   leading     → standing by   the lease was lost: a beat or a position was refused, or it was paused
//   leading     → parked    an event failed as often as it may. What came before it is done. It stands by until it is resumed
//   any         → ended     it was stopped, or the store knows another definition, or the rebuild is live, or gone

import { isHoldfastError, type HoldfastError } from '../core/errors/error.ts'
import { withTimeout } from '../core/runtime/backoff.ts'
import { Deferred } from '../core/runtime/deferred.ts'
import type { Cancel } from '../core/runtime/ports.ts'
import type { Engine } from '../engine/engine.ts'
import type { Change, ProjectionAnswer, ProjectionPart, ProjectionRow, StoreProjections } from '../store.ts'
import { definitionsDiffer, type WorkedProjection } from './definition.ts'
import { failedEvent, logFailing, logParked, retryDelay } from './failed-event.ts'
import { feedPollMs, pageSize, type FeedReader } from './feed-reader.ts'
import { pendingEvents, type PendingEvent } from './projected-event.ts'
import { swapRebuild, beginRebuild } from './rebuild-transactions.ts'
import { advanceAlone, createBatchWriter, type BatchWriter, type Written } from './write-batch.ts'

/** How long a lease lasts unless it is kept. It is kept after a third of that, and one that stands by tries after a sixth. */
export const usualLeaseMs = 30_000
const beatPart = 1 / 3
const standByPart = 1 / 6

/** How long a handler that is being called may take when its projection is stopped. */
const stopMs = 5_000

export interface ProjectorParts {
  readonly engine: Engine
  readonly store: StoreProjections
  readonly reader: FeedReader
  readonly projection: WorkedProjection
  readonly part: ProjectionPart
  /** That of all parts of this projection in this process. */
  readonly session: string
  readonly leaseMs: number
  /** Whether a rebuild of this definition is there: then the live part may have another one until that is swapped. */
  readonly isRebuilding: () => boolean
}

interface Lease {
  readonly token: number
  position: number
}

export class Projector {
  /** Settles when it has ended: with null if it was stopped or is live, else with the reason. */
  readonly ended = new Deferred<HoldfastError | null>()
  private readonly parts: ProjectorParts
  private readonly writer: BatchWriter
  private readonly stopping = new AbortController()
  private lease: Lease | null = null
  private cancelBeat: Cancel = () => undefined
  private wakeUp: () => void = () => undefined
  private isWoken = false
  /** Passes follow one another: those of the loop, and those of `tick`. */
  private last: Promise<unknown> = Promise.resolve()
  /** The event that has failed last, and how often. */
  private failing: { readonly id: string; attempts: number; error: unknown } | null = null
  /** So many events are handled by themselves, because it is not known which of them fails. */
  private careful = 0

  constructor(parts: ProjectorParts) {
    this.parts = parts
    const { engine, store, projection } = parts
    const { signal } = this.stopping
    this.writer = createBatchWriter({ engine, store, projection, signal, isHeld: () => this.lease !== null })
  }

  get position(): number | null {
    return this.lease?.position ?? null
  }

  /** Goes on by itself from here on. */
  start(): void {
    void this.run()
  }

  /** It may have something to do. */
  readonly wake = (): void => {
    this.isWoken = true
    this.wakeUp()
  }

  async stop(reason: HoldfastError | null = null): Promise<void> {
    this.stopping.abort(new Error('The projection is being stopped'))
    this.cancelBeat()
    this.wake()
    await withTimeout(
      this.parts.engine.ports.clock,
      stopMs,
      this.last.catch(() => undefined),
    )
    const { lease } = this
    if (lease !== null) await this.command({ kind: 'release', token: lease.token }).catch(() => undefined)
    this.leave()
    this.ended.resolve(reason)
  }

  /**
   * Handles what is in the feed by now, if the lease can be had. Resolves with how many entries it has passed; null if another
   * process has the lease, or if the projection is paused or parked.
   */
  async tick(): Promise<number | null> {
    const passed = await this.inTurn(() => this.pass())
    return this.lease === null && passed.entries === 0 ? null : passed.entries
  }

  private async run(): Promise<void> {
    const { logger } = this.parts.engine.ports
    let failures = 0
    while (!this.isStopped) {
      this.isWoken = false
      let restMs: number
      try {
        restMs = (await this.inTurn(() => this.pass())).restMs
        failures = 0
      } catch (error) {
        if (isHoldfastError(error, 'PROJECTION_CONFLICT')) return void this.stop(error)
        // What a closing store answers says nothing.
        if (this.isStopped) return
        failures += 1
        restMs = retryDelay(failures)
        logger.warn(`Projection "${this.parts.projection.name}" could not go on; trying again soon.`, { error })
      }
      if (!this.isStopped) await this.rest(restMs)
    }
  }

  private get standByMs(): number {
    return standByPart * this.parts.leaseMs
  }

  private get isStopped(): boolean {
    return this.stopping.signal.aborted
  }

  private inTurn<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const next = this.last.catch(() => undefined).then(work)
    this.last = next
    return next
  }

  private rest(ms: number): Promise<void> {
    if (this.isWoken || this.isStopped) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.parts.engine.ports.clock.after(ms, () => this.wakeUp())
      this.wakeUp = () => {
        cancel()
        this.wakeUp = () => undefined
        resolve()
      }
    })
  }

  /** Until the end of the feed, or until the lease is lost. */
  private async pass(): Promise<{ readonly entries: number; readonly restMs: number }> {
    let entries = 0
    if (this.lease === null && !(await this.claim())) return { entries, restMs: this.standByMs }
    while (!this.isStopped) {
      const { lease } = this
      if (lease === null) return { entries, restMs: 0 }
      const from = lease.position
      const page = await this.parts.reader.read(from)
      if (page.length > 0) await this.handle(page)
      entries += lease.position - from
      const isAtEnd =
        page.length < pageSize && this.lease === lease && lease.position === (page.at(-1)?.position ?? from)
      if (isAtEnd && this.parts.part === 'rebuild' && (await this.swap())) return { entries, restMs: 0 }
      if (isAtEnd && page.length === 0) return { entries, restMs: feedPollMs }
      if (this.lease !== lease) return { entries, restMs: this.isStandingBy ? this.standByMs : 0 }
    }
    return { entries, restMs: 0 }
  }

  /** It was parked here, or paused elsewhere: there is no hurry. */
  private isStandingBy = false

  private async claim(): Promise<boolean> {
    const { projection, part, session, isRebuilding, leaseMs } = this.parts
    const { definition, startAt, name } = projection
    const end = startAt === 'end' && part === 'live' ? (await this.parts.store.feedEnd()).position : 0
    const claim = { kind: 'claim', definition, session, leaseMs, startAt: end } as const
    const { outcome, row } = await this.parts.store.commandProjection({ name, part, ...claim })
    this.isStandingBy = outcome !== 'done'
    if (outcome === 'different' && row !== null && !isRebuilding())
      throw definitionsDiffer(name, definition, row.definition)
    if (outcome === 'not-found' || (outcome === 'different' && part === 'rebuild')) {
      // The rebuild was given up, or is live by now.
      void this.stop()
      return false
    }
    if (outcome !== 'done' || row === null) return false
    this.lead(row)
    return row.begun || this.begin(row)
  }

  /** Makes the place of a rebuild. */
  private async begin(row: ProjectionRow): Promise<boolean> {
    const { engine, projection } = this.parts
    let hasBegun = false
    try {
      hasBegun = await beginRebuild({ engine, projection, row, signal: this.stopping.signal })
    } finally {
      if (!hasBegun) this.leave()
    }
    return hasBegun
  }

  private lead({ token, position }: ProjectionRow): void {
    this.lease = { token, position }
    this.failing = null
    this.careful = 0
    this.noteMoved()
    this.beatLater()
  }

  private leave(): void {
    if (this.lease !== null && this.parts.part === 'live') this.parts.engine.projected.left(this.parts.projection.name)
    this.lease = null
    this.cancelBeat()
  }

  private noteMoved(): void {
    const { engine, part, projection } = this.parts
    if (this.lease !== null && part === 'live') engine.projected.moved(projection.name, this.lease.position)
  }

  private beatLater(): void {
    this.cancelBeat()
    this.cancelBeat = this.parts.engine.ports.clock.after(beatPart * this.parts.leaseMs, () => void this.beat())
  }

  private async beat(): Promise<void> {
    const { lease } = this
    if (lease === null || this.isStopped) return
    try {
      const { outcome } = await this.command({ kind: 'beat', token: lease.token, leaseMs: this.parts.leaseMs })
      if (outcome !== 'done' && this.lease === lease) {
        this.isStandingBy = true
        this.leave()
        this.wake()
      }
    } catch {
      // The lease may be over by the time that the store answers: then its next writer is refused.
    }
    if (this.lease === lease) this.beatLater()
  }

  /** Handles a page: its events in batches, and everything between them by the way. */
  private async handle(page: readonly Change[]): Promise<void> {
    const { engine, projection } = this.parts
    const end = page.at(-1)?.position ?? 0
    let pending = pendingEvents(engine, projection, page)
    while (!this.isStopped && this.lease !== null) {
      if (pending.length === 0) {
        if (this.lease.position < end) this.noteWritten(await this.write([], end), [])
        return
      }
      const batch = pending.slice(0, this.batchSize(pending))
      const next = pending[batch.length]
      const written = await this.write(batch, next === undefined ? end : next.change.position - 1)
      const done = this.noteWritten(written, batch)
      pending = pending.slice(done)
      if (done < batch.length && !(await this.recover(written, pending))) return
    }
  }

  /** An event that has failed is tried by itself. */
  private batchSize(pending: readonly PendingEvent[]): number {
    const { failing } = this
    if (this.careful > 0 || pending[0]?.id === failing?.id) return 1
    const at = pending.findIndex(({ id }) => id === failing?.id)
    const { batch } = this.parts.projection
    return at === -1 ? batch : Math.min(at, batch)
  }

  private write(events: readonly PendingEvent[], to: number): Promise<Written> {
    const { projection, part, session, store } = this.parts
    const lease = this.lease as Lease
    const { name } = projection
    const advance = { name, part, kind: 'advance', session, token: lease.token, from: lease.position, to } as const
    const written = events.length === 0 ? advanceAlone(store, advance) : this.writer.write(events, advance)
    return written.then((outcome) => {
      const reached = outcome.outcome === 'done' ? to : outcome.outcome === 'failed' ? outcome.to : lease.position
      if (this.lease === lease) lease.position = reached
      this.noteMoved()
      return outcome
    })
  }

  /** How many of these events are done. */
  private noteWritten(written: Written, batch: readonly PendingEvent[]): number {
    if (written.outcome === 'lost') this.leave()
    if (written.outcome !== 'done')
      return written.outcome === 'failed' && written.at !== null && this.parts.projection.kind === 'anywhere'
        ? written.at
        : 0
    this.careful = Math.max(0, this.careful - batch.length)
    if (batch.some(({ id }) => id === this.failing?.id)) this.failing = null
    return batch.length
  }

  /** False if the page is over for now. */
  private async recover(written: Written, pending: readonly PendingEvent[]): Promise<boolean> {
    const [first] = pending
    if (written.outcome === 'lost' || first === undefined) return false
    if (written.outcome === 'away') await this.pause(retryDelay(1))
    return written.outcome === 'failed' ? this.afterFailure(written, pending, first) : true
  }

  /** `first` is the first of the events that are not done. */
  private async afterFailure(
    { at, error }: Extract<Written, { readonly outcome: 'failed' }>,
    pending: readonly PendingEvent[],
    first: PendingEvent,
  ): Promise<boolean> {
    const { projection, engine } = this.parts
    const { kind, batch } = projection
    const isFirst = at === 0 || kind === 'anywhere' || this.careful > 0 || first.id === this.failing?.id
    if (!isFirst) {
      // Those before it have not happened either: they come first, and then it comes by itself.
      const failed = at === null ? undefined : pending[at]
      if (failed === undefined) this.careful = batch
      else this.failing = { id: failed.id, attempts: 1, error }
      return true
    }
    if (this.failing?.id !== first.id) this.failing = { id: first.id, attempts: 0, error }
    const { failing } = this
    failing.attempts += 1
    failing.error = error
    if (failing.attempts >= projection.maxAttempts) {
      await this.park(first, failing)
      return false
    }
    if (failing.attempts === 1) logFailing(engine.ports.logger, projection.name, first, error)
    await this.pause(retryDelay(failing.attempts))
    return !this.isStopped
  }

  /** For so long, or until it is stopped. */
  private pause(ms: number): Promise<void> {
    const { signal } = this.stopping
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const cancel = this.parts.engine.ports.clock.after(ms, done)
      signal.addEventListener('abort', done)
    })
  }

  private async park(
    event: PendingEvent,
    { attempts, error }: { readonly attempts: number; readonly error: unknown },
  ): Promise<void> {
    const { engine, projection, part } = this.parts
    const lease = this.lease as Lease
    const failure = failedEvent(projection.name, part, event, { attempts, error })
    await this.command({ kind: 'park', token: lease.token, failure })
    this.isStandingBy = true
    this.leave()
    logParked(engine.ports.logger, projection.name, failure, error)
  }

  /** The rebuild has reached the end of the feed: makes it live. False if the live part was further on. */
  private async swap(): Promise<boolean> {
    const { engine, projection, part, session } = this.parts
    const lease = this.lease as Lease
    const holder = { name: projection.name, part, session, token: lease.token }
    const done = await swapRebuild({ engine, projection, holder, signal: this.stopping.signal })
    if (!done) return false
    void this.stop()
    return true
  }

  private command(
    command: { readonly token: number } & (
      | { readonly kind: 'release' }
      | { readonly kind: 'beat'; readonly leaseMs: number }
      | { readonly kind: 'park'; readonly failure: NonNullable<ProjectionRow['failure']> }
    ),
  ): Promise<ProjectionAnswer> {
    const { projection, part, session, store } = this.parts
    return store.commandProjection({ name: projection.name, part, session, ...command })
  }
}
