// When a worker first met the runs that it leaves to others.

import { expect, it } from 'vitest'
import { FirstMeetings } from '../../../../src/worker/perform/first-meetings.ts'

it('a run that is met again was first met then, until its journal has moved on', () => {
  const met = new FirstMeetings()
  expect([met.of({ id: 'a', seq: 3 }, 10), met.of({ id: 'a', seq: 3 }, 20), met.of({ id: 'b', seq: 3 }, 30)]).toEqual([
    10, 10, 30,
  ])
  expect([met.of({ id: 'a', seq: 5 }, 40), met.of({ id: 'a', seq: 5 }, 50)]).toEqual([40, 40])
})

it('remembers a bounded number of runs, and forgets those that it does not meet any more', () => {
  const met = new FirstMeetings()
  for (let id = 0; id < 10_000; id += 1) met.of({ id: `${id}`, seq: 1 }, 0)
  expect(met.of({ id: 'more', seq: 1 }, 1)).toBeNull()
  expect(met.of({ id: '7', seq: 1 }, 3_600_000)).toBe(0)
  expect(met.of({ id: 'more', seq: 1 }, 3_600_001)).toBe(3_600_001)
  expect([met.of({ id: '7', seq: 1 }, 3_600_002), met.of({ id: '8', seq: 1 }, 3_600_003)]).toEqual([0, 3_600_003])
})
