// The projections of one Holdfast: those that this process projects, and what an operator does with those of the store.

import { leaseBounds, toMs, type Duration } from '../core/definition/duration.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { checkBoolean } from '../core/text/check-option.ts'
import { quotedText } from '../core/text/printable.ts'
import { checkOptions, didYouMean, shown } from '../core/text/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import { projectionsOf } from '../engine/store/optional-parts.ts'
import type {
  FailedEvent,
  ProjectionAnswer,
  ProjectionCommand,
  ProjectionRow,
  ProjectionStatus,
  SkippedEvent,
  StoreProjections,
} from '../store.ts'
import type { MemoryProjection, Projection, WorkedProjection } from './definition.ts'
import { FeedReader } from './feed-reader.ts'
import { lagOf, type Lag } from './lag.ts'
import { MemoryFold } from './memory-fold.ts'
import { usualLeaseMs } from './projector.ts'
import { cannotRebuild, notParked, RunningWorkedProjection, type RunningProjection } from './running-projection.ts'

export interface ProjectOptions {
  /** It goes on by itself. With false only `tick()` moves it on, in tests. @default true */
  readonly auto?: boolean
  /**
   * For how long a process that is gone keeps others from going on. The lease is kept after a third of that. @default '30s'
   */
  readonly lease?: Duration
}

/** A read model in the memory of this process. */
export interface RunningMemoryProjection<Model> extends RunningProjection {
  /** The read model as far as it is. */
  readonly model: Model
}

/** A projection as the store knows it. */
export interface ProjectionView {
  readonly name: string
  readonly status: ProjectionStatus
  /** The last entry of the feed that it has passed. */
  readonly position: number
  readonly lag: Lag
  /** Whether a process moves it on now. */
  readonly isHeld: boolean
  /** The event at which it is parked. */
  readonly failure: FailedEvent | null
  /** The latest events that were skipped. */
  readonly skipped: readonly SkippedEvent[]
  /** How far a rebuild is; null if there is none. */
  readonly rebuild: {
    readonly position: number
    /** The last position of the feed. */
    readonly of: number
    readonly status: ProjectionStatus
    readonly failure: FailedEvent | null
  } | null
}

interface Running {
  stop(): Promise<void> | void
  wake(): void
  look?(): Promise<void>
}

export class Projections {
  private readonly engine: Engine
  private readonly reader: FeedReader
  private readonly running = new Map<string, Running>()

  constructor(engine: Engine) {
    this.engine = engine
    this.reader = new FeedReader(engine.store, engine.ports.clock)
    const wakeAll = (): void => {
      for (const one of this.running.values()) one.wake()
    }
    this.reader.onEntries.add(wakeAll)
    engine.projected.onAwaited.add(() => {
      this.reader.expect()
      wakeAll()
    })
  }

  async project(
    projection: Projection,
    options: ProjectOptions = {},
  ): Promise<RunningProjection | RunningMemoryProjection<unknown>> {
    const { engine, reader } = this
    engine.assertOpen()
    checkOptions(options, ['auto', 'lease'], 'project()')
    checkBoolean(options.auto, 'project({ auto })')
    const { auto = true, lease = usualLeaseMs } = options
    const leaseMs = toMs(lease, 'project({ lease })', leaseBounds)
    assertProjection(projection)
    const { name } = projection
    if (this.running.has(name)) {
      const message = `This Holdfast projects ${quotedText(name)} already. Two projections need two names.`
      throw new HoldfastError('PROJECTION_CONFLICT', message, { details: { name } })
    }
    if (projection.kind === 'memory') return this.fold(projection, auto)
    const store = this.store()
    if (projection.kind === 'transaction' && engine.transactions === null) {
      throw new HoldfastError(
        'INVALID_OPTION',
        `This store has no transactions for projection ${quotedText(name)} to write in. Use a store of SQLite or Postgres, or ` +
          'subscription() or memoryProjection() instead.',
      )
    }
    const running = new RunningWorkedProjection({ engine, store, reader, projection, auto, leaseMs })
    this.keep(name, running, running.ended)
    try {
      await running.start()
    } catch (error) {
      this.forget(name)
      throw error
    }
    return running
  }

  private keep(name: string, running: Running, ended: Promise<unknown>): void {
    this.running.set(name, running)
    this.engine.projected.joined(name)
    void ended.then(() => this.forget(name))
  }

  private forget(name: string): void {
    this.running.delete(name)
    this.engine.projected.gone(name)
  }

  private fold(projection: MemoryProjection, auto: boolean): RunningMemoryProjection<unknown> {
    const { engine, reader } = this
    const fold = new MemoryFold(engine, reader, projection)
    const running = { stop: () => fold.stop(), wake: auto ? fold.wake : () => undefined }
    this.keep(projection.name, running, fold.ended.promise)
    engine.projected.moved(projection.name, 0)
    if (auto) fold.wake()
    return {
      name: projection.name,
      ended: fold.ended.promise,
      get model() {
        return fold.model
      },
      lag: () => lagOf(engine, this.store(), fold.position),
      pause: async () => fold.pause(),
      resume: async () => fold.resume(),
      skip: async () => {
        if (fold.failure === null) throw notParked(projection.name)
        fold.skip()
      },
      tick: async () => {
        reader.expect()
        return fold.status === 'active' ? fold.tick() : null
      },
      stop: async () => fold.stop(),
    }
  }

  async list(): Promise<readonly ProjectionView[]> {
    this.engine.assertOpen()
    const store = this.store()
    const [rows, end] = [await store.projections(), await store.feedEnd()]
    await this.engine.learnTime()
    const now = this.engine.clock.now()
    const views: ProjectionView[] = []
    for (const row of rows.filter(({ part }) => part === 'live')) {
      const { name, status, position, failure, skipped } = row
      const shadow = rows.find((one) => one.name === name && one.part === 'rebuild')
      const isHeld = row.session !== null && (row.aliveUntil ?? 0) > now
      const rebuild =
        shadow === undefined
          ? null
          : { position: shadow.position, of: end.position, status: shadow.status, failure: shadow.failure }
      const lag = await lagOf(this.engine, store, position)
      views.push({ name, status, position, lag, isHeld, failure, skipped, rebuild })
    }
    return views
  }

  async pause(projection: string | Projection): Promise<void> {
    await this.control(projection, { kind: 'pause' })
  }

  async resume(projection: string | Projection): Promise<void> {
    const name = nameOf(projection)
    await this.control(name, { kind: 'resume' })
    await this.store().commandProjection({ name, part: 'rebuild', kind: 'resume' })
    this.running.get(name)?.wake()
  }

  async skip(projection: string | Projection, position: number): Promise<void> {
    const { outcome } = await this.control(projection, { kind: 'skip', position })
    if (outcome === 'not-parked') throw notParked(nameOf(projection))
  }

  async rebuild(projection: string | WorkedProjection): Promise<void> {
    const name = nameOf(projection)
    if (typeof projection !== 'string' && projection.rebuild === null) throw cannotRebuild(name)
    const definition = typeof projection === 'string' ? null : projection.definition
    await this.control(name, { kind: 'rebuild', definition })
    await this.running.get(name)?.look?.()
  }

  async abandonRebuild(projection: string | Projection): Promise<void> {
    await this.store().commandProjection({ name: nameOf(projection), part: 'rebuild', kind: 'remove' })
  }

  async remove(projection: string | Projection): Promise<void> {
    await this.control(projection, { kind: 'remove' })
  }

  async close(): Promise<void> {
    await Promise.all([...this.running.values()].map(async (one) => one.stop()))
  }

  /** A command for the live part. Rejects with PROJECTION_UNKNOWN if there is none. */
  private async control(
    projection: string | Projection,
    command:
      | { readonly kind: 'pause' | 'resume' | 'remove' }
      | { readonly kind: 'skip'; readonly position: number }
      | { readonly kind: 'rebuild'; readonly definition: string | null },
  ): Promise<ProjectionAnswer> {
    this.engine.assertOpen()
    const name = nameOf(projection)
    const given: ProjectionCommand = { name, part: 'live', ...command }
    const answer = await this.store().commandProjection(given)
    if (answer.outcome === 'not-found') throw unknownProjection(name, liveNames(await this.store().projections()))
    this.running.get(name)?.wake()
    return answer
  }

  private store(): StoreProjections {
    const store = projectionsOf(this.engine.store)
    if (store !== null) return store
    throw new HoldfastError('INVALID_OPTION', 'This store keeps no projections. Those of Holdfast itself do.')
  }
}

function nameOf(projection: string | Projection): string {
  if (typeof projection === 'string') return projection
  assertProjection(projection)
  return projection.name
}

function assertProjection(given: Projection): void {
  const { name, kind, from } = (given ?? {}) as Partial<Projection>
  if (typeof name === 'string' && kind !== undefined && from instanceof Set) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `A projection is what projection(), subscription() or memoryProjection() returns. Got ${shown(given)}.`,
  )
}

function liveNames(rows: readonly ProjectionRow[]): readonly string[] {
  return rows.flatMap((row) => (row.part === 'live' ? [row.name] : []))
}

/** PROJECTION_UNKNOWN. One in memory has no row, so the process that projects it is the only one that knows it. */
export function unknownProjection(name: string, known: readonly string[]): HoldfastError {
  return new HoldfastError(
    'PROJECTION_UNKNOWN',
    `There is no projection ${quotedText(name)} in this store: no process has projected it yet, or it is a memoryProjection(), ` +
      `which the process that projects it controls.${didYouMean(name, known)}`,
    { details: { name, known } },
  )
}
