// When a run rests. It is at a checkpoint when no attempt runs and the body has seen all there is: there it may be paused, or
// given back, and a child that is still being prepared is prepared again by whoever goes on.
// It rests when, besides, only time or a message can move its body on: then it is parked.

import type { Phase } from './phase.ts'
import type { Resources } from './resources.ts'
import type { Resting } from './resting.ts'
import type { Settler } from './settler.ts'
import type { StepRunner } from './step-runner.ts'
import type { Writer } from '../core/writer.ts'

interface Owner {
  readonly busy: number
  readonly preparing: number
  readonly resting: Resting
  readonly settler: Settler
  readonly steps: StepRunner
  readonly resources: Resources
  readonly writer: Writer
  readonly conclusion: { readonly isContinuing: boolean }
}

interface Parking extends Owner {
  phase: Phase
  stir(): void
  /** The lease is gone. */
  parked(): void
  /** It is not: a message or a wish had arrived. */
  lookAgain(): void
}

export function isAtCheckpoint({ busy, preparing, settler, resources, conclusion }: Owner): boolean {
  const isBusy = busy > 0 || resources.isBusy || conclusion.isContinuing
  return !isBusy && (settler.size > 0 || preparing > 0) && settler.isIdle
}

export function isResting(owner: Owner): boolean {
  const { resting, settler, steps, preparing } = owner
  const isOnlyWaiting = resting.size === settler.size && !resting.isStarting && steps.inlineDelays === 0
  return isOnlyWaiting && preparing === 0 && isAtCheckpoint(owner)
}

/** Parks the run, as soon as nothing of it is on its way to the store. */
export function rest(owner: Parking): void {
  if (owner.writer.isIdle) void park(owner)
  else owner.writer.barrier(() => owner.stir())
}

async function park(owner: Parking): Promise<void> {
  const { writer, resting, resources } = owner
  owner.phase = 'parking'
  try {
    const isParked = await writer.park(resting.parkedDue(), resting.names)
    if (owner.phase !== 'parking') return
    if (!isParked) return owner.lookAgain()
  } catch (error) {
    return writer.lose(error)
  }
  // A resource lives no longer than a stay in memory, so the body that holds one must be replayed to get a fresh one.
  owner.phase = resources.areHeld ? 'gone' : 'parked'
  if (resources.areHeld) await resources.releaseAll()
  owner.parked()
}
