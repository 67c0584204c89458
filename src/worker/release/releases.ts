// How this process gives runs back that it does not go on with. No caller waits for that, and no run waits for another one.
//
//   left → sent   in the next turn, together with those that are left in the same one, regardless of earlier ones
//   sent → gone   the store took it back
//   sent → kept   the store failed, or another transaction has locked the row: it is sent again, after a pause that grows, with
//                 the others that are kept. One that is not answered does not delay those that are kept later
//   kept → gone   the store took it back; or the session is over, and others take the run over; or the store has failed too
//                 often, and the next look for unknown leases finds it
//   any  → gone   the worker stops or has lost its leases: that code takes over the remaining leases (`takeLeft`)

import { runLine } from '../../core/rows/engine-notes.ts'
import { randomFraction, type Cancel } from '../../core/runtime/ports.ts'
import type { Lease, Run } from '../../core/model/run.ts'
import type { Engine } from '../../engine/engine.ts'
import type { ReleasedLease } from '../../store.ts'

/** A lock may last for any time; a store that fails so often is unavailable, and other workers notice that, too. */
const mostFailures = 20

/** Between two tries, each about twice as long as the one before. */
const pause = { firstMs: 10, longestMs: 1_000 } as const

export class Releases {
  /** The last claim that was made in isolation, as it was before it began. */
  isolatedRun: Run | null = null
  private readonly engine: Engine
  /** The leases that were given back in this turn. */
  private left: ReleasedLease[] = []
  /** Leases whose release is not confirmed, and how often the store has failed at that. */
  private readonly open = new Map<ReleasedLease, number>()
  /** Those of them that are sent again with the next retry. */
  private readonly kept = new Set<ReleasedLease>()
  /** The type of the run of each open lease, for the log. */
  private readonly types = new WeakMap<ReleasedLease, string>()
  private readonly firstTries = new Set<Promise<void>>()
  /** Cancels the next retry; null if nothing is kept. */
  private cancelRetry: Cancel | null = null
  private pauseMs: number = pause.firstMs

  constructor(engine: Engine) {
    this.engine = engine
  }

  /**
   * The lease of a suspect carries the number of crashes before this claim: the code that gives it back need not know whether
   * it had begun.
   */
  of({ id }: Run, lease: Lease): ReleasedLease {
    const isIsolated = this.isolatedRun?.id === id && this.isolatedRun.token === lease.token
    return { ...lease, runId: id, ...(isIsolated ? { crashes: this.isolatedRun?.crashes ?? 0 } : {}) }
  }

  /** Gives a run back, together with those that are left in the same turn. */
  release(run: Run, lease: Lease): void {
    const given = this.of(run, lease)
    this.open.set(given, 0)
    this.types.set(given, run.type)
    if (this.left.push(given) > 1) return
    const { turns } = this.engine.ports
    const tried = new Promise<void>((resolve) => turns.next(() => resolve(this.send(this.left.splice(0)))))
    this.firstTries.add(tried)
    void tried.then(() => this.firstTries.delete(tried))
  }

  /** Settles when everything that was left has been tried to be given back. */
  async settled(): Promise<void> {
    await Promise.all(this.firstTries)
  }

  /** Takes out the leases whose release is not confirmed. They are not sent again. */
  takeLeft(): readonly ReleasedLease[] {
    const left = [...this.open.keys()]
    this.open.clear()
    this.kept.clear()
    this.left = []
    this.cancelRetry?.()
    this.cancelRetry = null
    return left
  }

  private async send(leases: readonly ReleasedLease[]): Promise<void> {
    if (leases.length === 0) return
    try {
      const locked = new Set((await this.engine.store.release(leases)).map(({ runId }) => runId))
      for (const lease of leases) if (!locked.has(lease.runId)) this.open.delete(lease)
    } catch (error) {
      for (const lease of leases) this.failed(lease, error)
    }
    // A lease that was taken out meanwhile is not kept.
    for (const lease of leases) if (this.open.has(lease)) this.kept.add(lease)
    this.retryLater()
  }

  private failed(lease: ReleasedLease, error: unknown): void {
    const failures = this.open.get(lease)
    if (failures === undefined) return
    this.open.set(lease, failures + 1)
    if (failures + 1 < mostFailures) return
    this.open.delete(lease)
    const { runId } = lease
    const run = { id: runId, type: this.types.get(lease) ?? 'unknown' }
    this.engine.ports.logger.error(runLine(run, 'could not be given back.'), { run: runId, type: run.type, error })
  }

  private retryLater(): void {
    if (this.open.size === 0) this.pauseMs = pause.firstMs
    if (this.kept.size === 0 || this.cancelRetry !== null) return
    const { clock, random } = this.engine.ports
    const ms = Math.round(this.pauseMs * (0.5 + randomFraction(random)))
    this.pauseMs = Math.min(2 * this.pauseMs, pause.longestMs)
    this.cancelRetry = clock.after(ms, () => {
      this.cancelRetry = null
      // Other workers take over the runs of a session that is over.
      for (const lease of this.kept) if (lease.session !== this.engine.session) this.open.delete(lease)
      const leases = [...this.kept].filter((lease) => this.open.has(lease))
      this.kept.clear()
      void this.send(leases)
    })
  }
}
