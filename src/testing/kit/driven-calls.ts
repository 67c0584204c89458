// Calls of a test that another process may have to answer: inputs of an instance that a worker holds. Time stands still in a
// test, so nothing would ever answer them; here the world goes on until they have their answers. Time passes only where nothing
// happens without it.

import type { Holdfast } from '../../holdfast.ts'
import type { VirtualClock } from '../virtual-clock.ts'

type Method = (...given: readonly unknown[]) => Promise<unknown>

const driven = ['execute', 'executeDynamic', 'enqueue'] as const

/** How much time passes before the condition is looked at again, if no timer comes first. */
const stepMs = 60_000

/** The same Holdfast. A promise that the test keeps is answered, too. */
export function drivenBy(clock: Pick<VirtualClock, 'runUntil'>, holdfast: Holdfast): Holdfast {
  const methods = driven.map((name) => {
    const method = holdfast[name] as Method
    const driving: Method = (...given) => answered(clock, method(...given))
    return [name, driving]
  })
  return { ...holdfast, ...(Object.fromEntries(methods) as Partial<Holdfast>) }
}

function answered(clock: Pick<VirtualClock, 'runUntil'>, answer: Promise<unknown>): Promise<unknown> {
  let isOver = false
  const over = (): void => void (isOver = true)
  answer.then(over, over)
  const drive = async (): Promise<void> => {
    while (!isOver) await clock.runUntil(() => isOver, stepMs)
  }
  // What is wrong with the world is the answer then.
  return drive().then(() => answer)
}
