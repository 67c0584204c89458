// Runs that this process has claimed and cannot perform, because it lacks code or a key that another process may have. Each is
// given back, but not at once: this worker asks for work as soon as there is some, and would get it again, without end. So it
// keeps the claim for a while, longer each time that the run comes back, and no slot. It logs that once for each run.
//
//   kept → given back  it was kept for long enough, as below; or there is a control request for it, which this holder cannot
//                      carry out: the store does, or the next holder
//   kept → dropped     the claim is lost, or the run was claimed anew: there is nothing to give back
//
// Heartbeats list the kept claims like those of moving runs and extend their deadlines, or a rescue would count a crash for
// each time that a run with a short lease of its own is kept here.
//
// A run whose journal the store does not show is kept in the same way, and for longer in the end: most likely no other worker
// can read it, either. Its workflow has nothing to do with that, so no turns are taken for it.
//
// For each workflow with such runs, this worker and the others take turns:
//
//   ours    → others'  a run has been kept for long enough, and our turn has lasted for long enough: it is given back, and so is
//                      every other run that reaches that point in the next second. No run of the workflow is claimed here
//   others' → ours     every other worker has had the time to look. Runs that can be performed here are claimed, and none is
//                      given back meanwhile: it would be claimed again at once. So they have half of the time, however many
//                      cannot be performed

import { messageOf, type HoldfastError } from '../../core/errors/error.ts'
import { randomFraction, type Cancel } from '../../core/runtime/ports.ts'
import type { Lease, Run } from '../../core/model/run.ts'
import type { Engine } from '../../engine/engine.ts'
import type { ClaimSelector, HeldClaim } from '../../store.ts'
import { quotedText } from '../../core/text/printable.ts'

const firstMs = 100
const longestMs = 10_000
const longestUnreadableMs = 60_000
/** For so long after the turn of the other workers has begun runs are given back in it. */
const givingBackMs = 1_000
/** The rest of the turn is longer than the longest time between two looks of an idle worker, 3 s and a quarter of that. */
const othersTurnMs = givingBackMs + 4_000
/** Those that can be performed here have at least as long. */
const ourTurnMs = othersTurnMs
/** How many runs it remembers to have had. One that is forgotten begins with a short pause again. */
const mostKnown = 1_000

interface Deferred {
  readonly run: Run
  readonly lease: Lease
  /** Its workflow is left to other workers when it is given back. */
  readonly takesTurns: boolean
  cancel: Cancel
}

/** The last turn of the other workers, in the time of this process. */
interface Turn {
  readonly beganAt: number
  readonly cancel: Cancel
  isOver: boolean
}

export class DeferredReleases {
  private readonly engine: Engine
  private readonly release: (run: Run, lease: Lease) => void
  private readonly waiting = new Map<string, Deferred>()
  private readonly pauses = new Map<string, number>()
  /** One for each workflow with runs that were given back, by type and version. */
  private readonly turns = new Map<string, Turn>()

  constructor(engine: Engine, release: (run: Run, lease: Lease) => void) {
    this.engine = engine
    this.release = release
  }

  has(runId: string): boolean {
    return this.waiting.has(runId)
  }

  /** The kept claims, for the heartbeat. */
  claims(): readonly HeldClaim[] {
    const { registry } = this.engine
    return Array.from(this.waiting.values(), ({ run, lease }) => {
      const extendMs = registry.find(run.type, run.version)?.leaseMs ?? null
      return { runId: run.id, token: lease.token, extendMs }
    })
  }

  /** Gives a run back later, for a reason that lies in this process. */
  add(run: Run, lease: Lease, reason: HoldfastError): void {
    const message = `Run ${run.id} of ${quotedText(run.type)} cannot be performed here and is left to others: ${reason.message}`
    this.defer({ run, lease, takesTurns: true, cancel: () => undefined }, longestMs, message, reason)
  }

  /** Gives a run back later of which the store does not show the whole journal. */
  addUnreadable(run: Run, lease: Lease, reason: HoldfastError): void {
    const message = `Run ${run.id} of ${quotedText(run.type)} cannot go on and is tried again less and less often: ${reason.message}`
    this.defer({ run, lease, takesTurns: false, cancel: () => undefined }, longestUnreadableMs, message, reason)
  }

  /** Gives a run back later that has failed for a reason that may pass, and would fail again at once. */
  addFailed(run: Run, lease: Lease, reason: unknown): void {
    const message = `Run ${run.id} of ${quotedText(run.type)} cannot go on and is tried again less and less often: ${messageOf(reason)}`
    this.defer({ run, lease, takesTurns: false, cancel: () => undefined }, longestMs, message, reason)
  }

  private defer(deferred: Deferred, mostMs: number, message: string, error: unknown): void {
    const { random, logger } = this.engine.ports
    const { id, type } = deferred.run
    const known = this.pauses.get(id)
    if (known === undefined) logger.error(message, { run: id, type, error })
    const ms = known ?? firstMs
    this.remember(id, Math.min(mostMs, 2 * ms))
    this.waiting.set(id, deferred)
    this.keep(deferred, Math.round(ms * (0.5 + randomFraction(random))))
  }

  /** Those of them that are not left to other workers now. */
  claimable(selectors: readonly ClaimSelector[]): readonly ClaimSelector[] {
    return this.turns.size === 0 ? selectors : selectors.filter((one) => this.turns.get(nameOf(one))?.isOver ?? true)
  }

  private keep(deferred: Deferred, ms: number): void {
    deferred.cancel = this.engine.ports.clock.after(ms, () => {
      const { run, lease, takesTurns } = deferred
      const leftMs = takesTurns ? this.leftOf(nameOf(run)) : 0
      if (leftMs > 0) return this.keep(deferred, leftMs)
      this.waiting.delete(run.id)
      if (takesTurns) this.leaveToOthers(nameOf(run))
      this.release(run, lease)
    })
  }

  /**
   * There is a control request for a run: gives it back at once, if it is kept here. One that was being cancelled when it was
   * claimed was claimed because of the request, and would come back at once.
   */
  controlRequested(runId: string): void {
    const deferred = this.waiting.get(runId)
    if (deferred === undefined || deferred.run.status === 'cancelling') return
    this.drop(runId, null)
    this.release(deferred.run, deferred.lease)
  }

  /** The claim of a run with that token, or with any, is lost: it is not given back. */
  drop(runId: string, token: number | null): void {
    const deferred = this.waiting.get(runId)
    if (deferred === undefined || (token !== null && deferred.lease.token !== token)) return
    deferred.cancel()
    this.waiting.delete(runId)
  }

  /** How long nothing of that workflow is given back. */
  private leftOf(name: string): number {
    const turn = this.turns.get(name)
    if (turn === undefined) return 0
    const lasted = this.engine.ports.clock.monotonic() - turn.beganAt
    return lasted < givingBackMs ? 0 : Math.ceil(othersTurnMs + ourTurnMs - lasted)
  }

  private leaveToOthers(name: string): void {
    if (this.turns.get(name)?.isOver === false) return
    const { clock } = this.engine.ports
    const cancel = clock.after(othersTurnMs, () => {
      turn.isOver = true
      this.engine.onReady()
    })
    const turn: Turn = { beganAt: clock.monotonic(), cancel, isOver: false }
    this.turns.set(name, turn)
  }

  /** Gives nothing back any more, and returns the leases that are still held. */
  clear(): readonly (Lease & { readonly runId: string })[] {
    const left = Array.from(this.waiting, ([runId, { lease, cancel }]) => {
      cancel()
      return { ...lease, runId }
    })
    this.waiting.clear()
    for (const { cancel } of this.turns.values()) cancel()
    this.turns.clear()
    return left
  }

  private remember(runId: string, nextMs: number): void {
    this.pauses.delete(runId)
    this.pauses.set(runId, nextMs)
    const [oldest] = this.pauses.keys()
    if (this.pauses.size > mostKnown && oldest !== undefined) this.pauses.delete(oldest)
  }
}

function nameOf({ type, version }: Pick<Run, 'type' | 'version'>): string {
  return `${type} ${version}`
}
