// What a claimer does with runs that it claimed before a slot was free for them. Time and turns belong to the test.

import { describe, expect, it } from 'vitest'
import type { Run } from '../../../../src/core/model/run.ts'
import { newRun, nobody, setUp, some } from '../../../support/claimer-rig.ts'

/** A worker of two slots through which ten runs went in the last tenth of a second, while more wait. */
async function busy(leaseMs: number | null = null) {
  const world = setUp(2, leaseMs)
  const { answers, claimer, slots, pass, turn } = world
  answers.push({ ...some(1), more: true })
  slots.take(1)
  claimer.start()
  await turn()
  for (let count = 0; count < 10; count += 1) {
    answers.push({ ...some(1), more: true })
    slots.give(1)
    await turn()
  }
  pass(100)
  world.asked.splice(0)
  world.begun()
  return world
}

describe('a claimer that has more than its slots', () => {
  it('claims ahead three times what it got through in a tenth of a second, and begins it as slots are freed', async () => {
    const { answers, asked, begun, claimer, slots, turn } = await busy()
    answers.push({ ...some(31), more: true })
    slots.give(1)
    await turn()
    expect(asked).toEqual([31])
    expect(begun()).toHaveLength(1)
    for (let count = 0; count < 14; count += 1) {
      slots.give(1)
      await turn()
    }
    // More than half of them are there still: that is no time to ask again.
    expect([begun().length, asked, claimer.isIdle]).toEqual([14, [31], false])
    slots.give(1)
    await turn()
    expect([begun().length, asked]).toEqual([1, [31, 15]])
  })

  it('keeps nothing for itself that it does not get to', async () => {
    const { answers, begun, claimer, fire, givenBack, slots, pass, turn } = await busy()
    answers.push({ ...some(31), more: true })
    slots.give(1)
    await turn()
    expect(begun()).toHaveLength(1)
    pass(1_000)
    fire()
    await turn()
    expect([givenBack().length, begun()]).toEqual([30, []])
    // A second without a freed slot: it has become slow, and claims for its slots only.
    expect(claimer.holds('run 1')).toBe(false)
    slots.give(1)
    await turn()
    expect(begun()).toEqual([])
  })

  it.each(['pause', 'stop'] as const)('gives back what it claimed ahead: %s', async (how) => {
    const { answers, asked, begun, claimer, givenBack, slots, turn } = await busy()
    answers.push({ ...some(31), more: true })
    slots.give(1)
    await turn()
    begun()
    void claimer[how]()
    expect(givenBack()).toHaveLength(30)
    slots.give(1)
    await turn()
    expect([begun(), asked]).toEqual([[], [31]])
  })

  it('gives back what comes after it was stopped', async () => {
    const { answers, begun, claimer, givenBack, slots, turn } = await busy()
    answers.push({ ...some(31), more: true })
    slots.give(1)
    const turning = turn()
    const stopped = claimer.stop()
    await turning
    await stopped
    expect([givenBack().length, begun().length]).toEqual([30, 1])
  })

  it.each(['controlRequested', 'ended'] as const)('gives back a run that may not begin: %s', async (how) => {
    const { answers, begun, claimer, givenBack, slots, turn } = await busy()
    const claimed = { ...some(4), more: true }
    answers.push(claimed)
    slots.give(1)
    await turn()
    const [first, , third] = claimed.runs.map(({ id }) => id) as [string, string, string]
    expect(claimer.claims().map(({ runId }) => runId)).toContain(third)
    // One that has begun is none of its business, and one that it never had neither.
    for (const id of [third, third, first, 'unknown']) claimer[how](id)
    expect([givenBack(), claimer.holds(third)]).toEqual([[third], false])
    begun()
    for (let count = 0; count < 3; count += 1) slots.give(1)
    await turn()
    expect(begun()).toEqual(claimed.runs.map(({ id }) => id).filter((id) => id !== first && id !== third))
  })

  it('gives back a run that ended before the answer of its claim came, also one that was being cancelled', async () => {
    const { answers, begun, claimer, givenBack, turn } = setUp(2)
    const [ended, other] = [{ ...newRun(), status: 'cancelling' as const }, newRun()]
    answers.push({ ...nobody, runs: [ended, other] })
    claimer.start()
    const turning = turn()
    claimer.ended(ended.id)
    await turning
    expect([givenBack(), begun()]).toEqual([[ended.id], [other.id]])
    // The next claim may bring it again, once an operator has retried it.
    answers.push({ ...nobody, runs: [ended] })
    claimer.wake()
    await turn()
    expect(begun()).toEqual([ended.id])
  })

  it('gives back a run that was controlled before the answer of its claim came, and begins the next one in its slot', async () => {
    const { answers, begun, claimer, givenBack, slots, turn } = setUp(1)
    const claimed = some(1)
    const [controlled] = claimed.runs.map(({ id }) => id) as [string]
    answers.push(claimed, some(1))
    claimer.start()
    const turning = turn()
    claimer.controlRequested(controlled)
    await turning
    expect([begun(), givenBack(), slots.free]).toEqual([[], [controlled], 1])
    claimer.wake()
    await turn()
    expect(begun()).toHaveLength(1)
    // The next claim of the same run is made after the request was withdrawn.
    answers.push(claimed)
    slots.give(1)
    claimer.wake()
    await turn()
    expect(begun()).toEqual([controlled])
  })

  it('keeps a run that was being cancelled when it was claimed: only a holder can undo its steps', async () => {
    const { answers, begun, claimer, givenBack, slots, turn } = await busy()
    const { runs } = some(2)
    const ahead: Run = { ...(runs[1] as Run), status: 'cancelling' }
    answers.push({ ...nobody, runs: [runs[0] as Run, ahead], more: true })
    slots.give(1)
    await turn()
    begun()
    claimer.controlRequested(ahead.id)
    expect([givenBack(), claimer.holds(ahead.id)]).toEqual([[], true])
  })

  it('keeps a run whose earlier claim is lost', async () => {
    const { answers, claimer, givenBack, slots, turn } = await busy()
    const { runs } = some(2)
    const ahead = { ...(runs[1] as Run), token: 7 }
    answers.push({ ...nobody, runs: [runs[0] as Run, ahead], more: true })
    slots.give(1)
    await turn()
    expect([claimer.drop(ahead.id, 6), claimer.drop(ahead.id, 7), givenBack()]).toEqual([false, true, [ahead.id]])
  })

  it('claims nothing ahead if claims have a deadline of their own, which would pass meanwhile', async () => {
    const { answers, asked, slots, turn } = await busy(5_000)
    answers.push({ ...some(1), more: true })
    slots.give(1)
    await turn()
    expect(asked).toEqual([1])
  })
})
