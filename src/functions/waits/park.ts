// When a run rests. It is at a checkpoint when no attempt runs and the body has seen every outcome: there it may be paused,
// or given back, and a child that is still being prepared is prepared again by the next holder. It rests when, besides, only
// time or a message can move its body on: then it is parked.

import type { FrameParts } from '../frame/frame-parts.ts'

export function isAtCheckpoint({ steps, waits, settler, resources, exit }: FrameParts): boolean {
  const isBusy = steps.isBusy || resources.isBusy || exit.isContinuing
  return !isBusy && (settler.size > 0 || waits.preparing > 0) && settler.isIdle
}

export function isParkable(parts: FrameParts): boolean {
  const { waits, settler, steps } = parts
  const { idle } = waits
  const isOnlyWaiting = idle.size === settler.size && !idle.isStarting && steps.inlineDelays === 0
  return isOnlyWaiting && waits.preparing === 0 && isAtCheckpoint(parts)
}

/** Parks the run, as soon as nothing of it is on its way to the store. */
export function rest(parts: FrameParts): void {
  const { state } = parts
  if (state.writer.isIdle) void park(parts)
  else state.writer.barrier(() => state.scheduleTurn())
}

async function park({ state, waits, exit, drain }: FrameParts): Promise<void> {
  const { idle } = waits
  state.park()
  try {
    const isParked = await state.writer.park(idle.parkedDue(), idle.names)
    if (state.phase !== 'parking') return
    if (!isParked) return exit.lookAgain()
  } catch (error) {
    return state.writer.lose(error)
  }
  drain.parked()
}
