// When a run rests. It is at a checkpoint when no attempt runs and the body has seen every outcome: there it may be paused,
// or given back, and a child that is still being prepared is prepared again by the next holder. It rests when, besides, only
// time or a message can move its body on: then it is parked.

import type { Phase } from '../frame/phase.ts'
import type { Resources } from '../steps/resources.ts'
import type { IdleCalls } from './idle-calls.ts'
import type { Settler } from '../replay/settler.ts'
import type { StepRunner } from '../steps/step-runner.ts'
import type { JournalWriter } from '../../core/runtime/journal-writer.ts'

interface ParkDeps {
  readonly preparing: number
  readonly idleCalls: IdleCalls
  readonly settler: Settler
  readonly steps: StepRunner
  readonly resources: Resources
  readonly writer: JournalWriter
  readonly frameExit: { readonly isContinuing: boolean }
}

interface Parking extends ParkDeps {
  readonly phase: Phase
  scheduleTurn(): void
  enterPhase(phase: 'parking'): void
  /** The lease is gone. */
  parked(): void
  /** It is not: a message or a control request had arrived. */
  lookAgain(): void
}

export function isAtCheckpoint({ steps, preparing, settler, resources, frameExit }: ParkDeps): boolean {
  const isBusy = steps.isBusy || resources.isBusy || frameExit.isContinuing
  return !isBusy && (settler.size > 0 || preparing > 0) && settler.isIdle
}

export function isParkable(deps: ParkDeps): boolean {
  const { idleCalls, settler, steps, preparing } = deps
  const isOnlyWaiting = idleCalls.size === settler.size && !idleCalls.isStarting && steps.inlineDelays === 0
  return isOnlyWaiting && preparing === 0 && isAtCheckpoint(deps)
}

/** Parks the run, as soon as nothing of it is on its way to the store. */
export function rest(deps: Parking): void {
  if (deps.writer.isIdle) void park(deps)
  else deps.writer.barrier(() => deps.scheduleTurn())
}

async function park(deps: Parking): Promise<void> {
  const { writer, idleCalls } = deps
  deps.enterPhase('parking')
  try {
    const isParked = await writer.park(idleCalls.parkedDue(), idleCalls.names)
    if (deps.phase !== 'parking') return
    if (!isParked) return deps.lookAgain()
  } catch (error) {
    return writer.lose(error)
  }
  deps.parked()
}
