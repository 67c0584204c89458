// The order of the types. A store lets the types of a claim take turns in the order in which the claim names them
// (`core/rules/claims/claim-order.ts`). This list lets them take turns from claim to claim: a type that was served goes to its end,
// so that the type that has waited longest is named first, also by a worker that claims one run at a time. Types that have
// nothing ready stay in front and delay no other type.

import type { Run } from '../../core/model/run.ts'
import type { ClaimSelector } from '../../store.ts'

export class Rotation {
  /** By type, the one that was served last at the end. */
  private readonly byType = new Map<string, ClaimSelector[]>()
  private list: readonly ClaimSelector[]

  constructor(selectors: readonly ClaimSelector[]) {
    for (const one of selectors) {
      const versions = this.byType.get(one.type)
      if (versions === undefined) this.byType.set(one.type, [one])
      else versions.push(one)
    }
    this.list = selectors
  }

  /** All of them, in the order of their turns; the same list as long as no type was served. */
  get selectors(): readonly ClaimSelector[] {
    return this.list
  }

  /** These runs were claimed, in this order. */
  served(runs: readonly Pick<Run, 'type'>[]): void {
    if (this.byType.size < 2 || runs.length === 0) return
    for (const { type } of runs) {
      const versions = this.byType.get(type)
      if (versions === undefined) continue
      this.byType.delete(type)
      this.byType.set(type, versions)
    }
    this.list = [...this.byType.values()].flat()
  }
}
