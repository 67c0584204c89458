// A projection that a process projects: the live part and, while there is one, the rebuild.
//
// Every few seconds it looks whether a rebuild of its definition was asked for, by this process or by any other. The holder of
// that part works beside the live part, until it takes its place.

import { HoldfastError } from '../core/errors/error.ts'
import { Deferred } from '../core/runtime/deferred.ts'
import type { Cancel } from '../core/runtime/ports.ts'
import type { Engine } from '../engine/engine.ts'
import type { ProjectionCommand, ProjectionRow, StoreProjections } from '../store.ts'
import { definitionsDiffer, type WorkedProjection } from './definition.ts'
import type { FeedReader } from './feed-reader.ts'
import { lagOf, type Lag } from './lag.ts'
import { Projector } from './projector.ts'

/** A projection as this process moves it on, or stands by to. */
export interface RunningProjection {
  readonly name: string
  /** Settles when it has ended: with null if it was stopped, or with the reason. */
  readonly ended: Promise<HoldfastError | null>
  /** How far the read model is behind, whichever process moves it on. */
  lag(): Promise<Lag>
  /** Stops it in all processes, until it is resumed. */
  pause(): Promise<void>
  /** Lets a paused or parked one go on. */
  resume(): Promise<void>
  /** Leaves out the event at which it is parked, which is recorded. */
  skip(): Promise<void>
  /**
   * Handles all that is committed by now. Resolves with how many entries of the feed it has passed; null if another process moves
   * it on, or if it is paused or parked.
   */
  tick(): Promise<number | null>
  /** Gives the projection up here: another process that stands by goes on with it. */
  stop(): Promise<void>
}

export interface RunningProjectionParts {
  readonly engine: Engine
  readonly store: StoreProjections
  readonly reader: FeedReader
  readonly projection: WorkedProjection
  /** Goes on by itself. */
  readonly auto: boolean
  readonly leaseMs: number
}

/** How often it looks whether a rebuild was asked for elsewhere. */
const lookMs = 5_000

export class RunningWorkedProjection implements RunningProjection {
  readonly name: string
  private readonly parts: RunningProjectionParts
  private readonly session: string
  private readonly live: Projector
  private readonly over = new Deferred<HoldfastError | null>()
  private rebuild: Projector | null = null
  private isRebuilding = false
  /** It has said that the rebuild that was asked for cannot be. */
  private hasRefused = false
  private cancelLook: Cancel = () => undefined
  private isStopped = false

  constructor(parts: RunningProjectionParts) {
    const { engine, projection } = parts
    this.parts = parts
    this.name = projection.name
    this.session = engine.runIds.next(0)
    this.live = this.projector('live')
    void this.live.ended.promise.then((reason) => this.end(reason))
  }

  get ended(): Promise<HoldfastError | null> {
    return this.over.promise
  }

  /** Rejects with PROJECTION_CONFLICT if the store knows another definition, and no rebuild of this one. */
  async start(): Promise<void> {
    const { projection, auto } = this.parts
    const rows = await this.rows()
    const live = rows.find(({ part }) => part === 'live')
    this.noteRebuild(rows)
    if (live !== undefined && live.definition !== projection.definition && !this.isRebuilding)
      throw definitionsDiffer(projection.name, projection.definition, live.definition)
    if (!auto) return
    this.live.start()
    this.lookLater()
  }

  readonly wake = (): void => {
    this.live.wake()
    this.rebuild?.wake()
  }

  async lag(): Promise<Lag> {
    const { engine, store } = this.parts
    const row = (await this.rows()).find(({ part }) => part === 'live')
    return lagOf(engine, store, Math.max(row?.position ?? 0, this.live.position ?? 0))
  }

  async pause(): Promise<void> {
    await this.command({ kind: 'pause' })
    this.wake()
  }

  async resume(): Promise<void> {
    await this.command({ kind: 'resume' })
    this.wake()
  }

  async skip(): Promise<void> {
    const row = (await this.rows()).find(({ part }) => part === 'live')
    if (row?.failure === null || row === undefined) throw notParked(this.name)
    const { outcome } = await this.command({ kind: 'skip', position: row.failure.position })
    if (outcome === 'not-parked') throw notParked(this.name)
    this.wake()
  }

  async tick(): Promise<number | null> {
    this.parts.reader.expect()
    await this.look()
    if (this.rebuild !== null) await this.rebuild.tick()
    return this.live.tick()
  }

  async stop(): Promise<void> {
    this.isStopped = true
    this.cancelLook()
    await Promise.all([this.live.stop(), this.rebuild?.stop()])
  }

  private async end(reason: HoldfastError | null): Promise<void> {
    this.isStopped = true
    this.cancelLook()
    await this.rebuild?.stop()
    this.over.resolve(reason)
  }

  /** A rebuild was asked for here. */
  async look(): Promise<void> {
    this.noteRebuild(await this.rows())
    if (this.isRebuilding) this.beginRebuild()
  }

  private lookLater(): void {
    const { clock, logger } = this.parts.engine.ports
    const look = async (): Promise<void> => {
      await this.look().catch((error: unknown) => {
        if (!this.isStopped) logger.debug(`Could not look for a rebuild of projection "${this.name}".`, { error })
      })
      if (!this.isStopped) this.cancelLook = clock.after(lookMs, () => void look())
    }
    void look()
  }

  private noteRebuild(rows: readonly ProjectionRow[]): void {
    const { definition } = this.parts.projection
    this.isRebuilding = rows.some((row) => row.part === 'rebuild' && row.definition === definition)
    if (!this.isRebuilding) this.hasRefused = false
  }

  private beginRebuild(): void {
    const { projection, engine, auto } = this.parts
    if (this.rebuild !== null || this.isStopped) return
    if (projection.rebuild === null) {
      if (!this.hasRefused) engine.ports.logger.error(refusedRebuild(this.name), { projection: this.name })
      this.hasRefused = true
      return
    }
    const rebuild = this.projector('rebuild')
    this.rebuild = rebuild
    void rebuild.ended.promise.then(() => {
      this.rebuild = null
      this.isRebuilding = false
      // It is live, or gone: the live part goes on where it was, or where this one is.
      this.live.wake()
    })
    if (auto) rebuild.start()
  }

  private projector(part: ProjectionRow['part']): Projector {
    const { session } = this
    return new Projector({ ...this.parts, part, session, isRebuilding: () => this.isRebuilding })
  }

  private async rows(): Promise<readonly ProjectionRow[]> {
    return (await this.parts.store.projections()).filter(({ name }) => name === this.name)
  }

  private command(
    command: { readonly kind: 'pause' | 'resume' } | { readonly kind: 'skip'; readonly position: number },
  ): ReturnType<StoreProjections['commandProjection']> {
    const given: ProjectionCommand = { name: this.name, part: 'live', ...command }
    return this.parts.store.commandProjection(given)
  }
}

export function notParked(name: string): HoldfastError {
  return new HoldfastError(
    'WRONG_STATUS',
    `Projection "${name}" is not parked at that event: there is nothing to skip.`,
  )
}

function refusedRebuild(name: string): string {
  return `${cannotRebuild(name).message} Take back what was asked for: holdfast rebuild ${name} --abandon`
}

export function cannotRebuild(name: string): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    `Projection "${name}" cannot be built anew: say with projection({ rebuild: { begin, swap } }) where that is to be written.`,
  )
}
