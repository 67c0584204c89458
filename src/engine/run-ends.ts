// The callers in this process that wait for a run to end. An end of this process is reported to them at once; one of another
// process is found by a hint of the store, or at the latest by polling.
//
// A store may hint at ends in other processes only on demand (`StoreEndHints`). It is asked to as soon as a watched run is not
// moving here. Until it is certain that every other process knows of that, watched runs are looked at once a second, however seldom
// they are polled otherwise; and each of them once after hints were lost.

import { isTerminal, type Run, type TerminalStatus } from '../core/model/run.ts'
import { ChurningMap } from '../core/runtime/churning-map.ts'
import type { Cancel, Ports } from '../core/runtime/ports.ts'
import type { Store, StoreEndHints } from '../store.ts'
import { lastEntryRequests } from './store/journal-pages.ts'

/** How a run ended. `data` is the payload of its last entry, as it stands in the journal. */
export interface RunEnd {
  readonly runId: string
  readonly status: TerminalStatus
  readonly seq: number
  readonly data: string | null
  /** Why it was cancelled, if the command gave a reason. */
  readonly reason: string | null
}

/** A wait for the end of a run. Exactly one of its methods is called, once. */
export interface Watcher {
  ended(ending: RunEnd): void
  /** The run was removed, and no session holds it that could still end it. */
  removed(run: Run): void
  /** This process looks for ends no more. */
  closed(): void
}

/** How often a watched run is looked at; less often when thousands are watched. */
const lookEveryMs = 1_000
const shortestPauseMs = 50
/** The first look after ends were asked for: other processes mostly know of it by then, and quick runs have ended. */
const firstLookMs = 100
const lookAtOnce = 500

export interface RunEndsOptions {
  /** @default one second */
  readonly everyMs?: number | undefined
  /** Null if the store hints at every end, or at none. */
  readonly endHints?: StoreEndHints | null
  /** Whether a worker of this process holds a run: then its end is reported here, and no hint is needed. @default none does */
  readonly isMoving?: (runId: string) => boolean
}

export class RunEnds {
  private readonly store: Pick<Store, 'get' | 'load'>
  private readonly ports: Ports
  private readonly watched = new ChurningMap<Watcher[]>()
  private readonly hints = new Set<string>()
  private cancelLook: Cancel | null = null
  /** When the next look is due, if one is. */
  private lookAt = 0
  /** The store was asked to hint at ends in other processes. */
  private hasAsked = false
  /** Some of these processes may not know that yet. */
  private isUncertain = false
  /** How many of the watched runs may have ended with a hint that was lost. The longest unseen are looked at first. */
  private unhinted = 0
  private readonly everyMs: number
  private readonly endHints: StoreEndHints | null
  private readonly isMoving: (runId: string) => boolean

  constructor(store: Pick<Store, 'get' | 'load'>, ports: Ports, options: RunEndsOptions = {}) {
    this.store = store
    this.ports = ports
    this.everyMs = options.everyMs ?? lookEveryMs
    this.endHints = options.endHints ?? null
    this.isMoving = options.isMoving ?? (() => false)
  }

  /** Notifies the watcher when the run ends, until it unwatches. Does not look whether the run has ended already. */
  watch(runId: string, watcher: Watcher): void {
    const others = this.watched.get(runId)
    if (others === undefined) this.watched.set(runId, [watcher])
    else others.push(watcher)
    if (this.endHints !== null && !this.hasAsked && !this.isMoving(runId)) this.askForHints()
    this.lookLater()
  }

  /** A run has left this process without having ended: it may end in another one. */
  leftHere(runId: string): void {
    if (this.endHints !== null && !this.hasAsked && this.watched.has(runId)) this.askForHints()
  }

  /** The store may have lost hints, also at ends. */
  hintsLost(): void {
    this.unhinted = this.watched.size
    if (this.unhinted > 0) this.lookWithin(lookEveryMs)
  }

  unwatch(runId: string, watcher: Watcher): void {
    const others = this.watched.get(runId)?.filter((other) => other !== watcher) ?? []
    if (others.length > 0) this.watched.set(runId, others)
    else this.watched.delete(runId)
    this.rest()
  }

  /** The run has ended. */
  ended(ending: RunEnd): void {
    const watchers = this.watched.take(ending.runId)
    if (watchers === undefined) return
    this.rest()
    for (const watcher of watchers) watcher.ended(ending)
  }

  private removed(run: Run): void {
    const watchers = this.watched.take(run.id) ?? []
    this.rest()
    for (const watcher of watchers) watcher.removed(run)
  }

  /** The store says that a run has ended or was removed. If it ended here, its ending is on its way already and comes first. */
  hinted(runId: string): void {
    if (!this.watched.has(runId)) return
    this.hints.add(runId)
    if (this.hints.size === 1) this.ports.turns.next(this.lookAtHinted)
  }

  /** Reads runs, and reports those that have ended, or never will. */
  async look(runIds: readonly string[]): Promise<readonly (Run | undefined)[]> {
    const runs = await this.store.get(runIds)
    for (const run of runs) if (run !== undefined && isGone(run)) this.removed(run)
    const over = runs.filter((run) => run !== undefined && isTerminal(run.status)) as Run[]
    if (over.length === 0) return runs
    const loaded = await this.store.load(lastEntryRequests(over))
    over.forEach((run, index) => {
      const last = loaded[index]?.entries[0]
      const reason = last?.kind === 'cancelled' ? last.meta.reason : null
      this.ended({
        runId: run.id,
        status: run.status as TerminalStatus,
        seq: run.seq,
        data: last?.data ?? null,
        reason,
      })
    })
    return runs
  }

  /** Looks no more, and notifies every watcher. */
  close(): void {
    const waiting = [...this.watched.values()].flat()
    this.watched.clear()
    this.rest()
    for (const watcher of waiting) watcher.closed()
  }

  private readonly lookAtHinted = (): void => {
    const ids = [...this.hints].filter((id) => this.watched.has(id))
    this.hints.clear()
    for (let from = 0; from < ids.length; from += lookAtOnce) void this.tryToLook(ids.slice(from, from + lookAtOnce))
  }

  /** The regular look at the watched runs: hints may be lost. */
  private readonly lookAround = async (): Promise<void> => {
    this.cancelLook = null
    const ids = [...this.watched.keys()].slice(0, lookAtOnce)
    // Before the look: it also finds the ends of which no hint was sent until now.
    if (this.endHints !== null && ids.some((id) => !this.isMoving(id))) this.askForHints()
    this.unhinted = Math.max(0, this.unhinted - ids.length)
    await this.tryToLook(ids)
    // Runs that have not ended go to the back, so that every run gets its turn.
    for (const id of ids) {
      const watchers = this.watched.take(id)
      if (watchers !== undefined) this.watched.set(id, watchers)
    }
    this.lookLater()
  }

  /** A look that fails loses nothing: the watched runs will be looked at again. */
  private async tryToLook(runIds: readonly string[]): Promise<void> {
    try {
      await this.look(runIds)
    } catch (error) {
      this.ports.logger.warn('Could not look whether runs have ended; looking again soon.', { error })
    }
  }

  private askForHints(): void {
    const isNew = !this.hasAsked
    this.hasAsked = true
    this.isUncertain = this.endHints?.expectEnds(true) === true
    if (isNew && this.isUncertain) this.lookWithin(firstLookMs)
  }

  private lookLater(): void {
    if (this.watched.size === 0 || this.cancelLook !== null) return
    const isUrgent = this.isUncertain || this.unhinted > 0
    const everyMs = isUrgent ? Math.min(this.everyMs, lookEveryMs) : this.everyMs
    this.setLook(Math.max(shortestPauseMs, everyMs * Math.min(1, lookAtOnce / this.watched.size)))
  }

  /** The next look comes that soon, if it would come later. */
  private lookWithin(ms: number): void {
    if (this.cancelLook !== null && this.lookAt <= this.ports.clock.monotonic() + ms) return
    this.cancelLook?.()
    this.setLook(Math.min(ms, this.everyMs))
  }

  private setLook(ms: number): void {
    this.lookAt = this.ports.clock.monotonic() + ms
    this.cancelLook = this.ports.clock.after(ms, () => void this.lookAround())
  }

  private rest(): void {
    if (this.watched.size > 0) return
    if (this.hasAsked) this.endHints?.expectEnds(false)
    this.hasAsked = this.isUncertain = false
    this.unhinted = 0
    this.cancelLook?.()
    this.cancelLook = null
  }
}

/** A removed run is leased no more: once no session holds it, it stays as it is for ever. */
function isGone({ status, deletedAt, session }: Run): boolean {
  return deletedAt !== null && session === null && !isTerminal(status)
}
