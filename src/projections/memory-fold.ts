// A read model in the memory of this process: the fold of the feed from its first entry on. It has no lease and no position in the
// store; every process that projects it has its own.

import { messageOf, type HoldfastError } from '../core/errors/error.ts'
import { Deferred } from '../core/runtime/deferred.ts'
import type { Cancel } from '../core/runtime/ports.ts'
import type { Engine } from '../engine/engine.ts'
import type { FailedEvent } from '../store.ts'
import type { MemoryProjection } from './definition.ts'
import { feedPollMs, type FeedReader } from './feed-reader.ts'
import { pendingEvents, readEvent, toolsOf, type PendingEvent } from './projected-event.ts'

export class MemoryFold<Model> {
  readonly ended = new Deferred<HoldfastError | null>()
  model: Model
  position = 0
  status: 'active' | 'paused' | 'parked' = 'active'
  failure: FailedEvent | null = null
  private readonly engine: Engine
  private readonly reader: FeedReader
  private readonly projection: MemoryProjection<Model>
  private last: Promise<unknown> = Promise.resolve()
  private cancel: Cancel = () => undefined
  private isStopped = false

  constructor(engine: Engine, reader: FeedReader, projection: MemoryProjection<Model>) {
    this.engine = engine
    this.reader = reader
    this.projection = projection
    this.model = projection.init()
  }

  readonly wake = (): void => {
    this.cancel()
    if (!this.isStopped) void this.run()
  }

  private async run(): Promise<void> {
    await this.tick().catch((error: unknown) => {
      if (!this.isStopped)
        this.engine.ports.logger.warn(
          `Projection "${this.projection.name}" could not read the feed; trying again soon.`,
          {
            error,
          },
        )
    })
    this.cancel()
    if (!this.isStopped) this.cancel = this.engine.ports.clock.after(feedPollMs, () => void this.run())
  }

  /** Until the end of the feed as it is now; how many entries it has passed. */
  tick(): Promise<number> {
    const next = this.last.catch(() => undefined).then(() => this.pass())
    this.last = next
    return next
  }

  stop(): void {
    this.isStopped = true
    this.cancel()
    this.engine.projected.left(this.projection.name)
    this.ended.resolve(null)
  }

  pause(): void {
    this.status = 'paused'
  }

  resume(): void {
    this.status = 'active'
    this.failure = null
    this.engine.projected.failedAt(this.projection.name, null)
    this.wake()
  }

  /** Leaves out the event at which it is parked. */
  skip(): void {
    if (this.failure !== null) this.moved(this.failure.position)
    this.resume()
  }

  private async pass(): Promise<number> {
    const from = this.position
    while (!this.isStopped && this.status === 'active') {
      const page = await this.reader.read(this.position)
      const last = page.at(-1)
      if (last === undefined) break
      for (const one of pendingEvents(this.engine, this.projection, page)) {
        if (this.isStopped || this.status !== 'active') return this.position - from
        await this.apply(one)
      }
      if (this.status === 'active') this.moved(last.position)
    }
    return this.position - from
  }

  private async apply(one: PendingEvent): Promise<void> {
    const { position } = one.change
    try {
      const { handler, event } = await readEvent(this.engine, one, () => !this.isStopped)
      const next = (await handler(this.model, event, toolsOf(one))) as Model | undefined
      if (next !== undefined) this.model = next
      this.moved(position)
    } catch (error) {
      // It is a function of what came before: it would fail again.
      this.moved(position - 1)
      const { type, id, change } = one
      const failed = { position, id, type, of: change.type, instance: change.key, attempts: 1 }
      this.status = 'parked'
      this.failure = { ...failed, error: messageOf(error) }
      this.engine.projected.failedAt(this.projection.name, this.failure)
      this.engine.ports.logger.error(
        `Projection "${this.projection.name}" is parked at event ${id} ("${type}"): ${messageOf(error)} Other projections go on. Repair ` +
          'the cause and start this process anew, or skip() the event: its model goes no further.',
        { projection: this.projection.name, event: id, position, error },
      )
    }
  }

  private moved(position: number): void {
    this.position = position
    this.engine.projected.moved(this.projection.name, position)
  }
}
