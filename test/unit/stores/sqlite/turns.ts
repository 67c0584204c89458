// Turns of the event loop with timers in them: what a process does while it is not stopped.

import { setTimeout } from 'node:timers/promises'

/** Settles when so many timers have fired, one after the other. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await setTimeout(1)
}
