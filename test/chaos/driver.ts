// A steady load: so many clients, each with one task at a time, so that the number of open runs is bounded and the load
// grows with what the workers manage. The seed decides what they do; the machine decides when.

import { Draw } from '../simulation/draw.ts'
import { createSeededRandom } from '../../src/testing/index.ts'
import { Abandoned, RecordingClient, type RecordingClientOptions } from './recording-client.ts'
import { performTask } from './client-tasks.ts'

export interface DriverOptions extends RecordingClientOptions {
  readonly seed: number
  /** How many tasks are done at once. */
  readonly customers: number
}

export class Driver {
  /** How many tasks were begun, and how many are done. */
  begun = 0
  done = 0
  private readonly client: RecordingClient
  private readonly customers: readonly Promise<void>[]
  private isStopped = false

  constructor({ seed, customers, ...options }: DriverOptions) {
    this.client = new RecordingClient(options)
    this.customers = Array.from({ length: customers }, (_, index) => this.serve(index, seed))
    // Calls that wait for them are answered then, and none before.
    for (const customer of this.customers) customer.catch(() => undefined)
  }

  /** How many tasks are on their way. */
  get open(): number {
    return this.begun - this.done
  }

  /** No task is begun any more. Settles when those that were are done. */
  async stop(): Promise<void> {
    this.isStopped = true
    await Promise.all(this.customers)
  }

  /** Takes whatever is left of the items of the queue, so that it is known what became of each. */
  async sweep(): Promise<void> {
    const all = { n: 'sweeper', ms: 0, count: 1_000_000, idleMs: 4_000 }
    const run = await this.client.start('sweeper', 'consume', all, 'sweeper')
    if (run !== null) await this.client.ended('sweeper', run)
  }

  /** Whatever is on its way is left alone. */
  async abandon(): Promise<void> {
    this.isStopped = true
    this.client.abandon()
    await Promise.allSettled(this.customers)
  }

  private async serve(index: number, seed: number): Promise<void> {
    const draw = new Draw(createSeededRandom(seed * 2 ** 20 + 1_000 + index))
    const proc = `client-${index}`
    for (let number = 1; !this.isStopped; number += 1) {
      this.begun += 1
      try {
        await performTask({ client: this.client, draw, proc, name: `${index}.${number}` })
      } catch (error) {
        if (error instanceof Abandoned) return
        throw error
      } finally {
        this.done += 1
      }
    }
  }
}
