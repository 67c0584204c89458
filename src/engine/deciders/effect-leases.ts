// Effects that begin at once in this process: where the local worker has free slots, the transition that starts them carries
// their leases. What the store did not lease is claimed like any other run.

import type { Acknowledged } from '../../core/definition/definition.ts'
import type { Entry } from '../../core/model/entry.ts'
import { isEffectType } from '../../core/rules/effect-type.ts'
import type { NewRun } from '../../core/model/new-run.ts'
import type { Run } from '../../core/model/run.ts'
import type { ChildStart, Transition } from '../../core/model/transition.ts'
import type { DecidingEngine } from './deciding-engine.ts'

export class EffectLeases {
  private readonly engine: DecidingEngine
  /** The starts that carry a lease, by their ids: each has a slot of the local worker. */
  private reserved: Map<string, NewRun> | null = null
  private hasStarts = false

  constructor(engine: DecidingEngine) {
    this.engine = engine
  }

  /** The same transition, with leases for as many effects as there are free slots. */
  reserve(transition: Transition): Transition {
    const { outbound = null } = transition
    if (outbound === null || outbound.starts.length === 0) return transition
    this.hasStarts = true
    const { localWorker } = this.engine
    if (localWorker === null) return transition
    const reserved = (this.reserved ??= new Map<string, NewRun>())
    const starts = outbound.starts.map((start): ChildStart => {
      const lease = this.isEffect(start) ? localWorker.reserve() : null
      if (lease === null) return start
      const run = { ...start.run, lease }
      reserved.set(run.id, run)
      return { ...start, run }
    })
    return { ...transition, outbound: { ...outbound, starts } }
  }

  private isEffect({ run: { type, version } }: ChildStart): boolean {
    return isEffectType(type) && this.engine.registry.find(type, version) !== undefined
  }

  /** The store has leased these: they begin. */
  begin(leased: readonly Run[] | undefined, at: number): void {
    for (const run of leased ?? []) {
      const given = this.reserved?.get(run.id)
      const lease = given?.lease ?? null
      if (given === undefined || lease === null) continue
      this.reserved?.delete(run.id)
      const entry: Entry = { ...given.first, seq: 1, at, transition: given.transition }
      this.engine.localWorker?.begin(run, lease, [entry])
    }
    if (this.hasStarts) this.engine.onReady()
  }

  /** Slots of starts that were not leased. */
  giveBack(): void {
    for (const _ of this.reserved ?? []) this.engine.localWorker?.cancel()
    this.reserved = null
  }
}

/** Commits what a holder has decided; the effects that it starts begin here, as far as there is room. */
export async function commitWithLeases(engine: DecidingEngine, transition: Transition): Promise<Acknowledged> {
  const leases = new EffectLeases(engine)
  try {
    const answer = await engine.commit(leases.reserve(transition))
    leases.begin(answer.leased, answer.at)
    return answer
  } finally {
    leases.giveBack()
  }
}
