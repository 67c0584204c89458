// Counts the turns of all processes in the world of a test: as long as one is pending, the world is not at rest.

import type { Turns } from '../../core/runtime/ports.ts'

/** The bound for a body that asks for one turn after the other endlessly; then time goes on all the same. */
const mostTurns = 10_000

export class CountedTurns implements Turns {
  private readonly turns: Turns
  private pending = 0

  constructor(turns: Turns) {
    this.turns = turns
  }

  next(call: () => void): void {
    this.pending += 1
    this.turns.next(() => {
      this.pending -= 1
      call()
    })
  }

  /** Settles when no turn is pending, and everything that the last one caused has happened. */
  async over(): Promise<void> {
    for (let turn = 0; turn === 0 || (this.pending > 0 && turn < mostTurns); turn += 1) {
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}
