// What passes between runs and topics, in every order in which the statements of the calls can come, and after a crash at every
// statement: delivered once or pending once, never both, never neither, and nobody sleeps who has something to look at.
// The same orders must find the lock that is left out: orders that find nothing there would find nothing anywhere.

import { describe, expect, it } from 'vitest'
import { everyOrder, type Turn } from '../support/every-order.ts'
import { assertNothingLost, stateOf } from '../support/exchange-state.ts'
import { arrange, createMeetingWorld, type Meeting } from '../support/meeting-world.ts'
import { meetingNamed, meetings } from '../support/meetings.ts'

/** More than these would take too long: then those that are the same have to be left out. */
const most = 20_000

const planned = meetings.map((one) => [one.name, one.atLeast, one] as const)

describe('WC-C3 WC-C4 WC-T1 in every order of their statements, nothing is lost or doubled', () => {
  it.for(planned)(
    '%s: %i orders at least',
    { timeout: 120_000 },
    async ([, atLeast, { meeting, isMerged = false }]) => {
      const { orders, wrong } = await everyOrder(() => arrange(meeting), { merging: isMerged, most })
      expect(wrong).toEqual([])
      expect(orders).toBeGreaterThanOrEqual(atLeast)
    },
  )
})

describe('a lock that is left out is found by some order (canary of WC-C1, PEERS 3.1)', () => {
  it.for([
    ['(a) send and park', 'no-lock-on-deliver', /no_lost_wakeup|mailbox/u],
    ['(a) send and park', 'look-and-lock-in-one', /no_lost_wakeup/u],
    ['(b) a child ends', 'no-lock-on-watch', /no_lost_wakeup/u],
    ['(b) the same', 'no-lock-on-watch', /no_lost_wakeup/u],
    ['(c) broadcast to a queue and subscribe', 'no-lock-on-watch', /no_lost_wakeup/u],
    ['(c) broadcast that is retained', 'no-lock-on-watch', /it came before or after, and is there/u],
    ['(j) broadcast to a queue', 'no-begin-again', /signal_not_lost/u],
  ] as const)('%s, with %s', async ([name, mutation, expected]) => {
    const how = { untilWrong: true, merging: true, most }
    const { wrong } = await everyOrder(() => arrange(meetingNamed(name), [mutation]), how)
    expect(wrong.join()).toMatch(expected)
  })
})

/** Everything that can come of a meeting. */
async function outcomes(meeting: Meeting, merging: boolean): Promise<readonly string[]> {
  const found = new Set<string>()
  const begin = async () => {
    const trial = await arrange(meeting)
    const judge = async () => {
      const { feed: _feed, ...state } = await stateOf(trial.store)
      found.add(JSON.stringify(state))
    }
    return { ...trial, judge }
  }
  await everyOrder(begin, { merging, most })
  return [...found].toSorted()
}

describe('the orders themselves', () => {
  it.for(['(a)', '(b)', '(c)', '(d)', '(f)', 'two that wait'])(
    'that are left out because they are the same come to nothing else: %s',
    async (name) => {
      const all = await outcomes(meetingNamed(name), false)
      expect(await outcomes(meetingNamed(name), true)).toEqual(all)
      expect(all.length).toBeGreaterThan(1)
    },
  )

  it.for([
    ['find a run under the locks that is not locked', '(c) broadcast and subscribe', 'deliver.candidates'],
    ['come to a deadlock', '(k) two parents', 'commit.candidates'],
  ] as const)('%s, and begin again', async ([, name, first]) => {
    let again = 0
    const begin = async () => {
      const trial = await arrange(meetingNamed(name))
      const judge = async (_: unknown, executed: readonly Turn[]) => {
        const begun = executed.filter(({ statement }) => statement === first)
        if (new Set(begun.map(({ call }) => call)).size < begun.length) again += 1
      }
      return { ...trial, judge }
    }
    await everyOrder(begin, { merging: true, most })
    expect(again).toBeGreaterThan(0)
  })

  it('that come to a standstill say who waits for whom', async () => {
    const stuck = async () => {
      const trial = await arrange(meetingNamed('(a)'))
      return { ...trial, calls: [() => new Promise(() => undefined)] }
    }
    const { wrong } = await everyOrder(stuck, { most })
    expect(wrong.join()).toMatch(/Nothing goes on/u)
  })
})

class Crash extends Error {}

/** A world whose calls can be made to crash: the transaction that is open then is gone. */
async function fragile(meeting: Meeting) {
  let left = Number.POSITIVE_INFINITY
  const world = createMeetingWorld(async () => {
    left -= 1
    if (left < 0) throw new Crash()
  })
  const met = await meeting(world)
  /** Makes a call that dies after so many statements; true if it had that many. */
  const crash = async (call: () => Promise<unknown>, after: number): Promise<boolean> => {
    left = after
    const hasCrashed = await call().then(
      () => false,
      (error: unknown) => error instanceof Crash,
    )
    left = Number.POSITIVE_INFINITY
    return hasCrashed
  }
  return { ...met, world, crash }
}

describe('WC-C2 after a crash at any statement, the same call again comes to the same end', () => {
  it.for(planned)('%s', { timeout: 120_000 }, async ([, , { meeting }]) => {
    const whole = await fragile(meeting)
    for (const { call } of whole.parties) await call()
    const expected = await stateOf(whole.world.store)
    let crashes = 0
    for (const [index, party] of whole.parties.entries()) {
      if (party.isUnrepeatable) continue
      for (let after = 0, hasCrashed = true; hasCrashed; after += 1) {
        const { parties, world, crash } = await fragile(meeting)
        for (const [place, { call }] of parties.entries()) {
          // The last time it does not crash, but its answer is lost.
          if (place === index) hasCrashed = await crash(call, after)
          await call()
        }
        expect(await stateOf(world.store)).toEqual(expected)
        crashes += hasCrashed ? 1 : 0
      }
    }
    expect(crashes).toBeGreaterThan(0)
  })

  it.for(planned)('%s, and the others come in between', { timeout: 120_000 }, async ([, , { meeting }]) => {
    const { parties: all } = await fragile(meeting)
    for (const [index, party] of all.entries()) {
      if (party.isUnrepeatable) continue
      for (let after = 0, hasCrashed = true; hasCrashed; after += 1) {
        const { parties, world, crash, judge } = await fragile(meeting)
        const calls = parties.map(({ call }) => call)
        hasCrashed = await crash(calls[index] as (typeof calls)[number], after)
        const answers: unknown[] = []
        for (const [place, call] of calls.entries()) if (place !== index) answers[place] = await call()
        answers[index] = await calls[index]?.()
        judge(answers, await assertNothingLost(world.store, world.clock.now()), [])
      }
    }
  })
})
