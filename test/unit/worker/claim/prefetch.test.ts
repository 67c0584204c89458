// Runs that were claimed ahead: each keeps the first entry that came with its own claim, and no other.

import { expect, it } from 'vitest'
import type { Clock } from '../../../../src/core/runtime/ports.ts'
import type { Run } from '../../../../src/core/model/run.ts'
import type { Fresh } from '../../../../src/store.ts'
import { Prefetch } from '../../../../src/worker/claim/prefetch.ts'

const clock: Clock = { now: () => 0, monotonic: () => 0, after: () => () => undefined }
const run = (id: string): Run => ({ id }) as Run
const first = (runId: string): Fresh => ({ runId, entry: { seq: 1 } }) as unknown as Fresh

it('the first entry of a run that was begun at once does not meet a later claim of that run', () => {
  const prefetch = new Prefetch(clock, () => undefined)
  // The claim leased both; "begun" had a slot, and only "ahead" waits for one.
  prefetch.put({ runs: [run('ahead')], fresh: [first('begun'), first('ahead')] })
  expect(prefetch.take(1)).toEqual({ runs: [run('ahead')], fresh: [first('ahead')] })
  // Its journal has grown meanwhile, so its second claim brings no entry along.
  prefetch.put({ runs: [run('begun')], fresh: [] })
  expect(prefetch.take(1)).toEqual({ runs: [run('begun')], fresh: [] })
})

it('a run that is given back is forgotten with its entry', () => {
  const givenBack: string[] = []
  const prefetch = new Prefetch(clock, ({ id }) => void givenBack.push(id))
  prefetch.put({ runs: [run('a'), run('b')], fresh: [first('a'), first('b')] })
  prefetch.clear()
  expect([givenBack, prefetch.size]).toEqual([['a', 'b'], 0])
  prefetch.put({ runs: [run('a')], fresh: [] })
  expect(prefetch.take(1)).toEqual({ runs: [run('a')], fresh: [] })
})
