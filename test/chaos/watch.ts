// Looks at the store while everything goes wrong: the doctor's check about every second, over a connection of its own, and
// how many runs are open. A store that is away cannot be looked at; such looks are counted, because a doctor who never
// comes in finds nothing.

import { setTimeout } from 'node:timers/promises'
import type { Holdfast, RunStatus } from '../../src/index.ts'
import { openClient } from './client.ts'
import type { Violation } from './evidence.ts'
import { typePrefix } from './workload.ts'

const everyMs = 1_000

const live: readonly RunStatus[] = ['pending', 'running', 'waiting', 'paused', 'cancelling']

export class Watch {
  looks = 0
  skipped = 0
  /** As of the last look. */
  open = 0
  /** Settles with what is wrong as soon as something is; with nothing when the watch has ended. */
  readonly alarm: Promise<readonly Violation[]>
  private readonly holdfast: Holdfast
  private isOver = false

  private constructor(holdfast: Holdfast) {
    this.holdfast = holdfast
    this.alarm = this.keepLooking()
    this.alarm.catch(() => undefined)
  }

  static async begin(url: string): Promise<Watch> {
    return new Watch(await openClient(url))
  }

  /** What the doctor finds now. */
  async look(): Promise<readonly Violation[]> {
    const checks = await this.holdfast.doctor()
    this.looks += 1
    return checks
      .filter(({ offenders }) => offenders.length > 0)
      .map(({ name, offenders }) => ({ name, text: `the doctor finds ${offenders.join(', ')}`, runs: offenders }))
  }

  async end(): Promise<void> {
    this.isOver = true
    await this.alarm.catch(() => undefined)
    await this.holdfast.close()
  }

  private async keepLooking(): Promise<readonly Violation[]> {
    while (!this.isOver) {
      try {
        const { count } = await this.holdfast.count({ typePrefix, status: live })
        this.open = count
        const found = await this.look()
        if (found.length > 0) return found
      } catch {
        this.skipped += 1
      }
      await setTimeout(everyMs)
    }
    return []
  }
}

/** Fails as soon as what is still to be done has not become less for so long. */
export async function untilDone(
  done: Promise<void>,
  distance: () => number,
  patienceMs: number,
): Promise<'done' | 'stuck'> {
  let isDone = false
  const settled = done.then(() => (isDone = true))
  let least = Infinity
  let lessAt = Date.now()
  for (;;) {
    await Promise.race([settled, setTimeout(250)])
    if (isDone) return 'done'
    const now = distance()
    if (now < least) {
      least = now
      lessAt = Date.now()
    } else if (Date.now() - lessAt > patienceMs) return 'stuck'
  }
}
