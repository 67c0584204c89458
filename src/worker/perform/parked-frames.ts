// Frames of runs that wait, kept in memory so that waking them needs no replay. Bounded: the one that has rested longest
// goes first. Losing a frame costs a replay, never correctness. One that can never be resumed is not kept.

import type { Frame } from '../../core/definition/definition.ts'
import { ChurningMap } from '../../core/runtime/churning-map.ts'

export class Parked {
  private readonly limit: number
  private readonly frames = new ChurningMap<Frame>()

  constructor(limit: number) {
    this.limit = limit
  }

  get size(): number {
    return this.frames.size
  }

  has(runId: string): boolean {
    return this.frames.has(runId)
  }

  put(runId: string, frame: Frame): void {
    this.frames.delete(runId)
    if (this.limit === 0 || frame.seq === null) return
    this.frames.set(runId, frame)
    if (this.frames.size <= this.limit) return
    const [oldest] = this.frames.keys()
    if (oldest !== undefined) this.frames.delete(oldest)
  }

  take(runId: string): Frame | undefined {
    return this.frames.take(runId)
  }

  clear(): void {
    this.frames.clear()
  }
}
