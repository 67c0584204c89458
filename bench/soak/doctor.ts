// When the doctor comes. He reads everything, and everything grows: so that he does not become the load, he rests several
// times as long as he was at work.

import { setTimeout } from 'node:timers/promises'
import type { Child } from './child-process.ts'
import type { Diagnosis } from './doctor-child.ts'
import type { Visit } from './sample.ts'
import { wallMs } from './wall.ts'

export class Doctor {
  private readonly child: Child<Diagnosis, never>
  private readonly beganMs: number
  private readonly onVisit: (visit: Visit) => void
  private visiting: Promise<void> | null = null
  private visitedAt = Number.NEGATIVE_INFINITY

  constructor(child: Child<Diagnosis, never>, beganMs: number, onVisit: (visit: Visit) => void) {
    this.child = child
    this.beganMs = beganMs
    this.onVisit = onVisit
  }

  /** Whether he was at work at any time since. */
  wasAtWork(sinceMs: number): boolean {
    return this.visiting !== null || this.visitedAt > sinceMs
  }

  /**
   * Comes every so often until he is asked not to come again, but rests at least so many times as long as he was at work. One
   * visit may still be under way then.
   */
  async attend(everyMs: number, restPerWork: number, signal: AbortSignal): Promise<void> {
    for (let restMs = everyMs; ;) {
      await setTimeout(restMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      const came = wallMs()
      await this.visit()
      restMs = Math.max(everyMs, restPerWork * (wallMs() - came))
    }
  }

  /** Comes now, or as soon as he has finished. */
  async visit(): Promise<void> {
    await this.visiting
    this.visiting = this.look()
    await this.visiting
    this.visiting = null
  }

  private async look(): Promise<void> {
    const seconds = (): number => (wallMs() - this.beganMs) / 1_000
    const from = seconds()
    const violations = await this.child.ask()
    this.onVisit({ from, to: seconds(), violations })
    this.visitedAt = wallMs()
  }
}
