// The process that measures one case. Its parent, who starts it afresh for every case, sends it one message with what to
// do, and is sent each sample as it comes. Nothing stands on the command line: an address may hold a password.

import { once } from 'node:events'
import { scenarios } from './scenarios.ts'
import type { Reading, Settings } from './scenario.ts'

/** What the parent asks for. */
export interface Task {
  readonly scenario: string
  /** Which of its cases. */
  readonly index: number
  readonly settings: Settings
  /** For how long to warm up before the first sample; 0 for not at all. */
  readonly warmUpMs: number
  readonly samples: number
}

/** What the child reports: one sample. */
export type Sample = readonly Reading[]

async function perform({ scenario, index, settings, warmUpMs, samples }: Task): Promise<void> {
  const found = scenarios.find(({ name }) => name === scenario)?.cases(settings)[index]
  if (found === undefined) throw new Error(`There is no case ${index} of the scenario "${scenario}".`)
  const warmUntil = performance.now() + warmUpMs
  while (performance.now() < warmUntil) await found.sample()
  // No collection is forced between samples: it would shrink the young generation, and the next sample pay for that.
  for (let count = 0; count < samples; count += 1) process.send?.(await found.sample())
}

// Without a parent nobody wants to know.
process.once('disconnect', () => process.exit())
const [task] = (await once(process, 'message')) as [Task]
await perform(task)
process.disconnect?.()
