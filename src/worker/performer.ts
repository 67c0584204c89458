// Moves leased runs on: finds or opens the frame of each, and sees to what is left when the frame departs.
// Whatever a run does, it cannot harm another one or the worker itself.

import type { Claim, Departure, Frame, Host } from '../core/definition.ts'
import type { Entry } from '../core/entry.ts'
import { bug, isHoldfastError } from '../core/error.ts'
import type { Lease, Run } from '../core/run.ts'
import type { Engine } from '../engine/engine.ts'
import { Parked } from './parked.ts'
import type { Slots } from './slots.ts'

/** How much of a journal is read at once. */
const entriesAtOnce = 1_000

interface Held {
  readonly run: Run
  readonly lease: Lease
  readonly frame: Frame
}

export class Performer {
  private readonly engine: Engine
  private readonly host: Host
  private readonly slots: Slots
  private readonly parked: Parked
  private readonly held = new Map<string, Held>()

  constructor(engine: Engine, host: Host, slots: Slots, parkedLimit: number) {
    this.engine = engine
    this.host = host
    this.slots = slots
    this.parked = new Parked(parkedLimit)
  }

  /** Begins runs that were just claimed, each in a slot that is already taken. */
  async beginAll(runs: readonly Run[]): Promise<void> {
    const unknown: Run[] = []
    for (const run of runs) {
      const frame = this.parked.take(run.id)
      if (frame !== undefined && frame.seq === run.seq) this.resume(run, frame)
      else unknown.push(run)
    }
    if (unknown.length === 0) return
    const requests = unknown.map((run) => ({ runId: run.id, after: run.base - 1, limit: entriesAtOnce }))
    try {
      const loaded = await this.engine.store.load(requests)
      unknown.forEach((run, index) => void this.beginLoaded(run, loaded[index]?.entries ?? []))
    } catch (error) {
      for (const run of unknown) void this.unreadable(run, error)
    }
  }

  /** Begins a run whose whole journal is known, in a slot that is already taken. */
  begin(run: Run, lease: Lease, entries: readonly Entry[]): void {
    const claim: Claim = { run, lease, entries }
    const definition = this.engine.registry.find(run.type, run.version)
    try {
      if (definition === undefined) throw bug(`A run of "${run.type}" was claimed that nobody here can perform`)
      const frame = definition.open(this.host, claim)
      this.follow({ run, lease, frame }, frame.start())
    } catch (error) {
      void this.giveUp(run, lease, error)
      this.slots.give(1)
    }
  }

  isMoving(runId: string): boolean {
    return this.held.has(runId)
  }

  /** Stops everything at once and says what was held. */
  abort(reason: unknown): readonly (Lease & { readonly runId: string })[] {
    const held = [...this.held.values()]
    this.held.clear()
    for (const { frame } of held) frame.abort(reason)
    this.parked.clear()
    return held.map(({ run, lease }) => ({ ...lease, runId: run.id }))
  }

  private async beginLoaded(run: Run, first: readonly Entry[]): Promise<void> {
    try {
      const entries = [...first]
      while (entries.length < run.seq - run.base + 1) {
        const after = run.base - 1 + entries.length
        const [page] = await this.engine.store.load([{ runId: run.id, after, limit: entriesAtOnce }])
        if (page === undefined || page.entries.length === 0) throw bug('A journal is shorter than its run says')
        entries.push(...page.entries)
      }
      this.begin(run, leaseOf(run), entries)
    } catch (error) {
      await this.unreadable(run, error)
    }
  }

  private async unreadable(run: Run, error: unknown): Promise<void> {
    this.engine.ports.logger.warn(`The journal of run ${run.id} could not be read now; it is given back.`, { error })
    this.slots.give(1)
    await this.release(run, leaseOf(run))
  }

  private resume(run: Run, frame: Frame): void {
    const lease = leaseOf(run)
    this.follow({ run, lease, frame }, frame.resume({ run, lease, entries: [] }))
  }

  private follow(held: Held, departure: Promise<Departure>): void {
    this.held.set(held.run.id, held)
    void departure.then((how) => {
      const wasHeld = this.held.delete(held.run.id)
      this.slots.give(1)
      // What was aborted is given back by whoever aborted it.
      if (wasHeld) this.depart(held, how)
    })
  }

  private depart({ run, lease, frame }: Held, departure: Departure): void {
    switch (departure.kind) {
      case 'ended': {
        const { status, seq, data } = departure
        return this.engine.endings.ended({ runId: run.id, status, seq, data })
      }
      case 'parked':
        this.parked.put(run.id, frame)
        return this.engine.onReady()
      case 'released':
        return this.engine.onReady()
      case 'lost':
        return this.lost(run, lease, departure.reason)
    }
  }

  private lost(run: Run, lease: Lease, reason: unknown): void {
    const { logger } = this.engine.ports
    const details = { run: run.id, type: run.type, error: reason }
    if (isHoldfastError(reason) && reason.family === 'conflict') {
      logger.warn(`Run ${run.id} went on elsewhere: what was done here since the last commit is not recorded.`, details)
    } else if (isHoldfastError(reason, 'ENTRY_REJECTED') || isHoldfastError(reason, 'BUG')) {
      void this.giveUp(run, lease, reason)
    } else {
      logger.warn(`Run ${run.id} was stopped here and is given back.`, details)
      void this.release(run, lease)
    }
  }

  /** A run that the engine cannot move on fails by itself, and harms no other. */
  private async giveUp(run: Run, lease: Lease, error: unknown): Promise<void> {
    const { engine } = this
    engine.ports.logger.error(`Run ${run.id} cannot be performed and fails.`, { run: run.id, type: run.type, error })
    try {
      const [now] = await engine.store.get([run.id])
      if (now === undefined) return
      const data = engine.payloads.encodeFailure(error, { runId: run.id, seq: now.seq + 1, name: null })
      const { seq } = await engine.commit({
        id: engine.transitionId(),
        runId: run.id,
        guard: { seq: now.seq, lease },
        append: [{ kind: 'failed', name: null, meta: null, data }],
        status: 'failed',
        due: null,
        parkIf: null,
      })
      engine.endings.ended({ runId: run.id, status: 'failed', seq, data })
    } catch (failure) {
      engine.ports.logger.error(`Run ${run.id} could not even be failed.`, { run: run.id, error: failure })
    }
  }

  private async release(run: Run, lease: Lease): Promise<void> {
    try {
      await this.engine.store.release([{ ...lease, runId: run.id }])
    } catch (error) {
      this.engine.ports.logger.warn(`Run ${run.id} could not be given back now.`, { run: run.id, error })
    }
  }
}

function leaseOf(run: Run): Lease {
  if (run.session === null) throw bug('A claimed run has no holder', { runId: run.id })
  return { session: run.session, token: run.token }
}
