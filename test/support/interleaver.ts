// Decides, by a seed, whose statement goes on next when many calls are under way on the read-committed store. One goes on at
// a time, and everything that it causes has happened before the next one does; so a seed repeats a run of events exactly.
// Seeds differ in how long one call goes on before another does: some orders need one that stops while others do a lot.

import { createSeededRandom } from '../../src/testing/index.ts'

/** So many turns in which nobody asks to go on, and a party waits: then nothing will ever happen again. */
const mostIdleTurns = 20

export class Interleaver {
  /** The statements that were let on, in order. */
  readonly executed: string[] = []
  private readonly random
  /** Out of ten times, how often the party that went on last goes on. */
  private readonly patience: number
  private readonly waiting: { readonly statement: string; readonly goOn: () => void }[] = []
  private isDriving = false

  constructor(seed: number) {
    this.random = createSeededRandom(seed)
    this.patience = [0, 5, 9][seed % 3] ?? 0
  }

  /** For the store: resolves when it is this statement's turn. */
  readonly schedule = (statement: string): Promise<void> =>
    new Promise((goOn) => {
      this.waiting.push({ statement, goOn })
      if (!this.isDriving) void this.drive()
    })

  /** Waits for the calls, and fails if nothing goes on although some have no answer. */
  async settle<Answers extends readonly unknown[]>(
    calls: { readonly [Index in keyof Answers]: Promise<Answers[Index]> },
    waits: () => readonly string[],
  ): Promise<Answers> {
    let isOver = false
    const all = Promise.all(calls).finally(() => (isOver = true))
    // It is awaited below, unless this fails first.
    all.catch(() => undefined)
    for (let idle = 0; !isOver; idle = this.waiting.length === 0 ? idle + 1 : 0) {
      if (idle > mostIdleTurns) throw new Error(`Nothing goes on: ${waits().join('; ')}`)
      await turn()
    }
    return all
  }

  private async drive(): Promise<void> {
    this.isDriving = true
    for (;;) {
      await turn()
      if (this.waiting.length === 0) break
      const isPatient = this.random.uint32() % 10 < this.patience
      const place = isPatient ? -1 : this.random.uint32() % this.waiting.length
      const [next] = this.waiting.splice(place, 1)
      this.executed.push(next?.statement ?? '')
      next?.goOn()
    }
    this.isDriving = false
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
