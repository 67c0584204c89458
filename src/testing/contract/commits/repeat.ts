// The answer to a commit may be lost. Then the same transition comes again, and must not count twice.

import assert from 'node:assert/strict'
import { atOnce, succeeded } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, step, waiting } from '../drafts.ts'

export const repeatCases: readonly ContractCase[] = [
  {
    name: 'a checkpoint that is repeated because its answer was lost is answered as before and appends once',
    async run({ clock, hold, transition, send, commit, journal }) {
      const held = await hold()
      const given = transition(held, { append: [step('a'), step('b')] })
      const first = succeeded(await send(given))
      await clock.advance(10)
      assert.deepEqual(await send(given), first)
      await commit({ ...held, seq: 3 })
      await clock.advance(10)
      assert.deepEqual(await send(given), first, 'also when the journal has moved on since')
      assert.equal((await journal(held.runId)).length, 4)
    },
  },
  {
    name: 'a late copy of a merged checkpoint, whose first part was committed alone since, writes nothing and harms no other',
    async run({ store, hold, transition, send, run, journal }) {
      const [held, neighbour] = [await hold(), await hold()]
      const given = transition(held, { append: [step('a')] })
      succeeded(await send(given))
      const row = await run(held.runId)
      const late = { ...given, append: [step('a'), step('b')] }
      const [stale, other] = await store.commit([late, transition(neighbour, { append: [step('c')] })])
      assert.deepEqual(stale, { outcome: 'refused', reason: 'stale' })
      assert.equal(other?.outcome, 'committed')
      assert.deepEqual(await run(held.runId), row)
      assert.equal((await journal(held.runId)).length, 2)
    },
  },
  {
    name: 'an end that is repeated because its answer was lost is answered as before',
    async run({ clock, hold, transition, send, run, journal }) {
      const held = await hold()
      const given = transition(held, { append: [step(), ending('succeeded')], status: 'succeeded' })
      const first = succeeded(await send(given))
      const row = await run(held.runId)
      await clock.advance(10)
      assert.deepEqual(await send(given), first)
      assert.deepEqual(await run(held.runId), row)
      assert.equal((await journal(held.runId)).length, 3)
    },
  },
  {
    name: 'a give-back that is repeated does not take the run from who claimed it since',
    async run({ hold, transition, send, take, run }) {
      const held = await hold()
      const given = transition(held, { status: 'pending' })
      const first = succeeded(await send(given))
      await take(held.runId, 'next')
      const row = await run(held.runId)
      assert.deepEqual(await send(given), first)
      assert.deepEqual(await run(held.runId), row)
    },
  },
  {
    name: 'parking that is repeated does not put back to sleep a run that was woken or claimed since',
    async run({ hold, transition, send, deliver, message, take, run }) {
      const held = await hold()
      const given = transition(held, { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 } })
      const first = succeeded(await send(given))
      assert.deepEqual(await send(given), first)
      await deliver(message(held.runId))
      const woken = await run(held.runId)
      assert.deepEqual(await send(given), { ...first, inbox: 1 })
      assert.deepEqual(await run(held.runId), woken)
      await take(held.runId)
      const taken = await run(held.runId)
      assert.deepEqual(await send(given), { ...first, inbox: 1 })
      assert.deepEqual(await run(held.runId), taken)
    },
  },
  {
    name: 'parking that had to look again says so again when it is repeated',
    async run({ hold, deliver, message, transition, send, journal }) {
      const held = await hold()
      await deliver(message(held.runId))
      const given = transition(held, { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 } })
      const first = succeeded(await send(given))
      assert.equal(first.released, false)
      assert.deepEqual(await send(given), first)
      assert.equal((await journal(held.runId)).length, 2)
    },
  },
  {
    name: 'parking without an entry is answered as before when it is repeated while the run still rests',
    async run({ clock, hold, transition, send, run, take }) {
      const held = await hold()
      await clock.advance(5)
      const given = transition(held, {
        append: [],
        status: 'waiting',
        parkIf: { inbox: 0 },
        due: { at: null, afterMs: 50 },
      })
      const first = succeeded(await send(given))
      const row = await run(held.runId)
      await clock.advance(20)
      assert.deepEqual(await send(given), first)
      assert.deepEqual(await run(held.runId), row)
      await clock.advance(30)
      await take(held.runId)
      assert.deepEqual(
        await send(given),
        { outcome: 'refused', reason: 'lease-lost' },
        'it left no trace to be known by',
      )
    },
  },
  {
    name: 'another transition at the same place is not taken for the repetition of the first',
    async run({ hold, transition, send, commit, journal }) {
      const held = await hold()
      const late = transition(held, { append: [step('late')] })
      await commit(held, { append: [step('first'), step('second')] })
      assert.deepEqual(await send(late), { outcome: 'refused', reason: 'stale' })
      const inside = transition({ ...held, seq: 2 }, { append: [step('inside')] })
      assert.deepEqual(await send(inside), { outcome: 'refused', reason: 'stale' })
      assert.equal((await journal(held.runId)).length, 3)
    },
  },
  {
    name: 'one transition that is sent many times at once is one entry, and every sender learns of success',
    async run({ hold, transition, send, journal }) {
      const held = await hold()
      const given = transition(held)
      const answers = await atOnce(8, () => send(given))
      for (const answer of answers) assert.deepEqual(answer, answers[0])
      assert.equal(succeeded(answers[0]).seq, 2)
      assert.equal((await journal(held.runId)).length, 2)
    },
  },
  {
    name: 'a repetition among others in one batch is answered in its place',
    async run({ store, hold, transition, send, journal }) {
      const [a, b, c] = [await hold(), await hold(), await hold()]
      const repeated = transition(b)
      const first = await send(repeated)
      const answers = await store.commit([transition(a), repeated, transition(c)])
      assert.deepEqual(answers[1], first)
      for (const { runId } of [a, b, c]) assert.equal((await journal(runId)).length, 2)
    },
  },
]
