// Choices that a seed repeats.

import type { Random } from '../../src/core/runtime/ports.ts'
import { createSeededRandom } from '../../src/testing/index.ts'

export class Chances {
  private readonly random: Random
  private count = 0

  constructor(seed: number) {
    this.random = createSeededRandom(seed)
  }

  /** A whole number from 0, below the limit. */
  below(limit: number): number {
    return this.random.uint32() % limit
  }

  oneIn(count: number): boolean {
    return this.below(count) === 0
  }

  pick<Item>(items: readonly Item[]): Item {
    if (items.length === 0) throw new Error('There is nothing to pick from')
    return items[this.below(items.length)] as Item
  }

  /** One of them, or null once in so many times. */
  maybe<Item>(oneIn: number, items: readonly Item[]): Item | null {
    return this.oneIn(oneIn) ? this.pick(items) : null
  }

  some<Item>(items: readonly Item[], oneIn: number): Item[] {
    return items.filter(() => this.oneIn(oneIn))
  }

  /** By weight. */
  weighted<Item>(items: readonly (readonly [weight: number, item: Item])[]): Item {
    let left = this.below(items.reduce((sum, [weight]) => sum + weight, 0))
    for (const [weight, item] of items) {
      if (left < weight) return item
      left -= weight
    }
    throw new Error('Weights that do not add up')
  }

  /** A text that no other call gives. */
  unique(what: string): string {
    return `${what}-${(this.count += 1)}`
  }
}
