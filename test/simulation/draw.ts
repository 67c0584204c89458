// Chance of a simulation. One seed gives several streams, one for each concern: what is drawn for faults does not shift what
// is drawn for the schedule, so that a scenario stays the same when one of its parts is changed.

import type { Random } from '../../src/core/runtime/ports.ts'
import { createSeededRandom } from '../../src/testing/seeded-random.ts'

export type Concern =
  | 'swarm'
  | 'programs'
  | 'operations'
  | 'nemesis'
  | 'schedule'
  | 'faults'
  | 'engine'
  | 'isolation'
  | 'quirks'
  | 'shapes'
  | 'strangers'
  | 'crowds'
  | 'bystanders'
  | 'sends'
  | 'instances'

const concerns: readonly Concern[] = [
  'swarm',
  'programs',
  'operations',
  'nemesis',
  'schedule',
  'faults',
  'engine',
  'isolation',
  'quirks',
  'shapes',
  'strangers',
  'crowds',
  'bystanders',
  'sends',
  'instances',
]

export class Draw implements Random {
  private readonly random: Random

  constructor(random: Random) {
    this.random = random
  }

  /** The stream of a seed for one concern. `member` tells apart those who share a concern. */
  static of(seed: number, concern: Concern, member = 0): Draw {
    const stream = concerns.indexOf(concern) + 1 + 16 * member
    // The upper half of a seed is 21 bits wide: stream and seed do not meet there.
    return new Draw(createSeededRandom(seed * 2 ** 20 + stream))
  }

  uint32(): number {
    return this.random.uint32()
  }

  /** A number in [0, 1). */
  fraction(): number {
    return this.random.uint32() / 2 ** 32
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1))
  }

  between(low: number, high: number): number {
    return low + this.fraction() * (high - low)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.fraction() * items.length)] as Item
  }
}
