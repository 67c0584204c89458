// Things that live only as long as a stay in memory: connections, files, locks. They are acquired anew on every replay and
// released, last first, when their block ends and also when the run is parked, ends or is lost.
//
// Acquiring and releasing take real time, which no journal knows of. So they happen one at a time, in the order in which
// the body asked for them, and while one is under way no call of the body settles: the order stays the same on replay.
//
// A release is awaited, because the next holder may need the resource, but not for ever: the run holds a slot meanwhile.

import { runName, type LoggedRun } from '../../core/rows/engine-notes.ts'
import { formatMs } from '../../core/definition/duration.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import type { FrameState } from '../frame/frame-state.ts'

/**
 * How long a release may take. Connections, files and locks are let go in milliseconds, or after a timeout of their own of a
 * few seconds; this is half of the time that a worker has by default to shut down.
 */
const longestReleaseMs = 10_000
const late = Symbol('late')

/** After so long a warning says that a resource has not been acquired yet. */
const longAcquireMs = 10_000

/** Takes the place of a step's name while a resource is being acquired. */
const insideAcquire = 'withResource: acquire'
const insideRelease = 'withResource: release'

interface Held {
  readonly release: () => unknown
}

/** Stands for an empty list until its first member: most runs hold nothing. */
const none: never[] = []

export class Resources {
  /** A resource could not be acquired. */
  hasFailed = false
  private readonly state: FrameState
  private held: Held[] = none
  private queue: (() => Promise<void>)[] = none
  private working = false

  constructor(state: FrameState) {
    this.state = state
  }

  /** A resource is being acquired or released, or is about to be. */
  get isBusy(): boolean {
    return this.working || this.queue.length > 0
  }

  get areHeld(): boolean {
    return this.held.length > 0
  }

  /** Begins the next acquisition or release. False if there is none. */
  proceed(): boolean {
    if (this.working) return true
    const next = this.queue.shift()
    if (next === undefined) return false
    this.working = true
    void next().then(() => {
      this.working = false
      this.state.scheduleTurn()
    })
    return true
  }

  async use<Resource, Result>(
    acquire: () => Resource | Promise<Resource>,
    release: (resource: Resource) => unknown,
    body: (resource: Resource) => Promise<Result>,
  ): Promise<Result> {
    const resource = await this.inOrder(() => this.acquire(acquire))
    const held: Held = { release: () => release(resource) }
    if (this.held.length === 0) this.held = [held]
    else this.held.push(held)
    if (!this.state.isLive) {
      // The run ended or went elsewhere meanwhile: no other code would release this.
      await this.release(held)
      return new Promise(() => undefined)
    }
    try {
      return await body(resource)
    } finally {
      await this.inOrder(() => this.release(held))
    }
  }

  /** No call of the body settles meanwhile, so one that `acquire` itself awaits never would. */
  private async acquire<Resource>(acquire: () => Resource | Promise<Resource>): Promise<Resource> {
    const { state } = this
    const { clock, logger } = state.host.ports
    const cancel = clock.after(longAcquireMs, () => logger.warn(longAcquire(state.run), { run: state.runId }))
    try {
      return await state.inside(insideAcquire, acquire, 'acquire')
    } catch (error) {
      this.hasFailed = true
      throw error
    } finally {
      cancel()
    }
  }

  /** Releases the resources that are still held, last first. An error of one is logged and does not prevent the others. */
  async releaseAll(): Promise<void> {
    for (let held = this.held.at(-1); held !== undefined; held = this.held.at(-1)) await this.release(held)
  }

  private async release(held: Held): Promise<void> {
    const at = this.held.indexOf(held)
    if (at === -1) return
    this.held.splice(at, 1)
    const { host, run } = this.state
    const { clock, logger } = host.ports
    let cancel: Cancel = () => undefined
    try {
      // It is called at a time that no replay repeats.
      const released = this.state.inside(insideRelease, held.release, 'release')
      if (!isPromiseLike(released)) return
      const over = new Promise<typeof late>((resolve) => (cancel = clock.after(longestReleaseMs, () => resolve(late))))
      if ((await Promise.race([released, over])) !== late) return
      const ms = formatMs(longestReleaseMs)
      logger.error(
        `A resource of ${runName(run)} was not released within ${ms}: its release hangs. The run goes on without it.`,
      )
    } catch (error) {
      logger.error(`A resource of ${runName(run)} could not be released.`, { error })
    } finally {
      cancel()
    }
  }

  private inOrder<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const next = async (): Promise<void> => {
        try {
          resolve(await work())
        } catch (error) {
          reject(error)
        }
      }
      if (this.queue.length === 0) this.queue = [next]
      else this.queue.push(next)
      this.state.scheduleTurn()
    })
  }
}

function longAcquire(run: LoggedRun): string {
  return (
    `A resource of ${runName(run)} has not been acquired after ${formatMs(longAcquireMs)}. Nothing else of the run goes on meanwhile: ` +
    'a call of ctx inside of acquire never settles.'
  )
}

function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'
}
