// A committer on a store whose answers come by hand, and what it answered to whom.

import { expect } from 'vitest'
import type { Acknowledged } from '../../src/core/definition/definition.ts'
import { isHoldfastError } from '../../src/core/errors/error.ts'
import { createCommitter, type Committer } from '../../src/engine/batch/committer.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import { manualPorts, turn, type ManualPorts } from './manual-ports.ts'
import { Scribe, ScriptedStore, type Flush } from './scripted-store.ts'

export type Outcome = Acknowledged | string

export class CommitterRig {
  readonly ports: ManualPorts = manualPorts()
  readonly store: ScriptedStore
  readonly committer: Committer
  /** What was answered to whom, by transition id, in the order in which it was answered. */
  readonly outcomes: [string, Outcome][] = []
  private readonly scribes = new Map<string, Scribe>()

  constructor(runIds: readonly string[], limits: Parameters<typeof createCommitter>[2] = {}) {
    this.store = new ScriptedStore(runIds)
    this.committer = createCommitter(this.store, this.ports, limits)
  }

  write(runId: string, names: readonly string[], changes: Partial<Transition> = {}): Transition {
    let scribe = this.scribes.get(runId)
    if (scribe === undefined) this.scribes.set(runId, (scribe = new Scribe(runId)))
    return scribe.write(names, changes)
  }

  submit(runId: string, names: readonly string[], changes: Partial<Transition> = {}): void {
    const transition = this.write(runId, names, changes)
    const record = (outcome: Outcome): void => void this.outcomes.push([transition.id, outcome])
    this.committer.submit(transition).then(record, (error: unknown) => {
      record(isHoldfastError(error) ? error.code : String(error))
    })
  }

  /** Occupies both flushes with runs of their own, so that what is submitted next gathers. */
  async occupy(first: string, second: string): Promise<readonly [Flush, Flush]> {
    this.submit(first, ['busy'])
    await turn()
    this.submit(second, ['busy'])
    await turn()
    expect(this.store.waiting).toHaveLength(2)
    return this.store.waiting as [Flush, Flush]
  }

  /** Answers everything, however often it is sent, until nothing is left. */
  async finish(): Promise<void> {
    this.store.onFlush = (flush) => flush.answer()
    for (const flush of this.store.waiting) flush.answer()
    await turn()
    expect(this.store.waiting).toEqual([])
    expect(this.store.violations).toEqual([])
  }

  outcome(id: string): Outcome | undefined {
    return this.outcomes.find(([transition]) => transition === id)?.[1]
  }

  get ids(): readonly string[] {
    return this.outcomes.map(([id]) => id)
  }
}

export function runs(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `r${index}`)
}
