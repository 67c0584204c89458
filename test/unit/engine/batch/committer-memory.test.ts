// A process commits for months: a million transitions must leave nothing behind.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import type { Transition } from '../../../../src/core/model/transition.ts'
import { createCommitter } from '../../../../src/engine/batch/committer.ts'
import type { Committed } from '../../../../src/store.ts'
import { manualPorts } from '../../../support/manual-ports.ts'
import { entry, lease } from '../../../support/scripted-store.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function committed({ guard, append }: Transition): Committed {
  return {
    outcome: 'committed',
    seq: guard.seq + append.length,
    at: 1,
    inbox: 0,
    released: false,
    controlRequest: null,
  }
}

/** Answers in the next turn, and keeps nothing. */
const forgetful = {
  commit: (transitions: readonly Transition[]): Promise<readonly Committed[]> =>
    new Promise((resolve) => setImmediate(() => resolve(transitions.map(committed)))),
}

it.each([
  ['1,000 runs that go on for ever', (count: number) => count % 1_000],
  ['runs that end after four', (count: number) => Math.floor(count / 4_000) * 1_000 + (count % 1_000)],
])('a million transitions of %s do not make memory grow', async (_, runOf) => {
  const committer = createCommitter(forgetful, manualPorts())
  const append = [entry('x')]
  const heapUsed: number[] = []
  let answered = 0
  const count = (): number => answered++
  for (let written = 0; written < 1_000_000; written++) {
    if (written === 200_000) heapUsed.push(await settledHeap())
    await committer.room()
    const run = runOf(written)
    const guard = { seq: Math.floor(written / 1_000), lease }
    void committer
      .submit({
        id: 't',
        runId: `run-${run}`,
        guard,
        append,
        status: null,
        due: null,
        parkIf: null,
        undo: null,
        continues: null,
        takes: [],
      })
      .then(count)
  }
  heapUsed.push(await settledHeap())
  expect(answered).toBe(1_000_000)
  const [early, late] = heapUsed as [number, number]
  expect(late - early).toBeLessThan(2 * 1024 * 1024)

  async function settledHeap(): Promise<number> {
    await committer.drain()
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
})
