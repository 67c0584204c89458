// Takes back the crash of a suspect that was performed in isolation here, and was lost, although this process lives: it was
// suspended, or could not reach the store, and another worker declared it dead. Only this process can know that. A process that
// has died takes nothing back, and its death counts.
//
// The witness looks at each such run from its mark on, at intervals and for as long as the process lives:
//
//   held          by this process or by another one: it is looked at again. The holder may commit something, and then nothing
//                 counts any more; or lose it, too, and then both counts are false
//   given back    it has no holder, and nothing was written since the claim: no loss was counted, and nothing is taken back
//   no holder     and its journal says that the loss of this very claim counts → one crash is taken back, once: the request has
//                 an id, and names the end of the journal that was read. If the journal has grown, it is looked at again
//   anything else nothing is left to do: no loss was counted, it counts no more, an operator has paused the run, or it is over
//
// A run may also be taken from a process that is awake, at the deadline of its workflow, because its step has stopped its
// heartbeats. That is the run's own fault, and counts, unless the process was silent for as long.

import type { Entry } from '../../core/model/entry.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import { isTerminal, type Run } from '../../core/model/run.ts'
import { diedIsolated } from '../../core/rules/claims/suspect.ts'
import type { Engine } from '../../engine/engine.ts'

/** How often it looks, or three times in the shortest lease of the claim. */
const longestPauseMs = 5_000

/**
 * At most so many losses are read after the first. A witness that had to read more has waited so long that the run was
 * decided elsewhere.
 */
const mostEntries = 200

interface Claim {
  /** As it was claimed, before the mark. */
  readonly run: Run
  /** Of the request that takes the crash back. */
  readonly id: string
  /** The shorter of the leases of session and workflow. */
  readonly leaseMs: number
  /** When the last look was sent that the store answered, in the time of this process, and the longest time between two. */
  seenAt: number
  silentMs: number
  /** A look has found that the claim is over: silence from here on says nothing about how it was lost. */
  isOver: boolean
  cancel: Cancel
}

export interface WitnessOptions {
  /** Of the session. */
  readonly leaseMs: number
}

export class Witness {
  private readonly engine: Engine
  private readonly leaseMs: number
  private readonly claims = new Set<Claim>()
  private stopped = false

  constructor(engine: Engine, { leaseMs }: WitnessOptions) {
    this.engine = engine
    this.leaseMs = leaseMs
  }

  /** A suspect is about to be marked: from here on a loss of this claim may count. */
  watch(run: Run): void {
    const { ports, registry } = this.engine
    const ofWorkflow = registry.find(run.type, run.version)?.leaseMs ?? Infinity
    const claim: Claim = {
      run,
      id: this.engine.transitionId(),
      leaseMs: Math.min(this.leaseMs, ofWorkflow),
      seenAt: ports.clock.monotonic(),
      silentMs: 0,
      isOver: false,
      cancel: () => undefined,
    }
    this.forgetGivenBack(run)
    this.claims.add(claim)
    this.lookLater(claim)
  }

  /** A run that is claimed with the same journal end as before was given back: an earlier claim of it was not lost. */
  private forgetGivenBack({ id, seq }: Run): void {
    for (const claim of this.claims) {
      if (claim.run.id !== id || claim.run.seq !== seq) continue
      claim.cancel()
      this.claims.delete(claim)
    }
  }

  /** Looks a last time at the undecided claims. */
  async stop(): Promise<void> {
    this.stopped = true
    for (const { cancel } of this.claims) cancel()
    await Promise.all([...this.claims].map((claim) => this.look(claim)))
  }

  private lookLater(claim: Claim): void {
    const pauseMs = Math.min(claim.leaseMs / 3, longestPauseMs)
    claim.cancel = this.engine.ports.clock.after(Math.ceil(pauseMs), () => void this.look(claim))
  }

  private async look(claim: Claim): Promise<void> {
    const isOpen = await this.isOpen(claim).catch((error: unknown) => {
      const { id } = claim.run
      this.engine.ports.logger.debug(`Run ${id} could not be looked at after it was lost here.`, { run: id, error })
      return true
    })
    if (!isOpen) this.claims.delete(claim)
    else if (!this.stopped && this.claims.has(claim)) this.lookLater(claim)
  }

  /** Whether there is, or may be, a crash to take back. */
  private async isOpen(claim: Claim): Promise<boolean> {
    const { store, ports } = this.engine
    const { id: runId, seq } = claim.run
    const sentAt = ports.clock.monotonic()
    const [run] = await store.get([runId])
    if (!claim.isOver) claim.silentMs = Math.max(claim.silentMs, sentAt - claim.seenAt)
    claim.seenAt = sentAt
    if (run === undefined || isTerminal(run.status) || run.deletedAt !== null) return false
    const isOurs = run.session === claim.run.session && run.token === claim.run.token
    claim.isOver ||= !isOurs
    // Its mark may still be on its way. Once it has committed something, it is innocent, and nothing counts.
    if (isOurs) return run.crashes >= claim.run.crashes
    if (!diedIsolated(run)) return false
    if (run.session !== null) return true
    if (run.seq === seq || run.seq - seq > mostEntries) return false
    const [loaded] = await store.load([{ runId, after: seq, limit: mostEntries, messages: { names: [], limit: 0 } }])
    const entries = loaded?.entries ?? []
    if (entries.at(-1)?.seq !== run.seq) return true
    if (!this.wasSilent(claim) || !counts(entries, claim.run, run)) return false
    const [answer] = await store.control([{ kind: 'acquit', id: claim.id, runId, seq: run.seq }])
    if (answer?.outcome !== 'done') return true
    ports.logger.info(`Run ${runId} was lost here by a process that lives: that was no crash of it.`, {
      run: runId,
      crashes: answer.run.crashes,
    })
    return false
  }

  /**
   * The session was found dead; or the claim was past the deadline of its workflow, and nothing was heard from here for so
   * long.
   */
  private wasSilent({ run, silentMs, leaseMs }: Claim): boolean {
    return run.session !== this.engine.session || silentMs >= leaseMs
  }
}

/**
 * Whether the loss of that claim is among the crashes of its run, and nothing but crashes has paused it. While it was
 * held, only its holder wrote, so the loss is the first entry after the claim. Whenever crashes are counted anew, the first
 * is number 1.
 */
function counts([loss, ...rest]: readonly Entry[], claimed: Run, run: Run): boolean {
  if (loss?.kind !== 'crashed' || loss.meta.session !== claimed.session || !diedIsolated(loss.meta)) return false
  if (rest.some((entry) => entry.kind === 'crashed' && entry.meta.crashes === 1)) return false
  const last = rest.at(-1)
  return run.status !== 'paused' || (last?.kind === 'paused' && last.meta.reason === 'crashes')
}
