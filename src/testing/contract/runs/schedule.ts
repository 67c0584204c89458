// A holder gives its run back for later: pending again, due at a given time.

import assert from 'node:assert/strict'
import type { Run } from '../../../core/model/run.ts'
import type { Due } from '../../../core/model/due.ts'
import { ids, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { inMs, step } from '../drafts.ts'

/** The order in which a store must claim. */
export function dueOrder(a: Run, b: Run): number {
  return b.priority - a.priority || (a.due ?? 0) - (b.due ?? 0) || (a.id < b.id ? -1 : 1)
}

/** Gives a run back with this due time, and checks that it is claimed exactly then. */
export async function expectDue(
  { clock, hold, commit, park, run, claim }: ContractBench,
  status: 'pending' | 'waiting',
  inMs: number,
  dueFrom: (now: number) => Due,
): Promise<void> {
  const held = await hold()
  await clock.advance(7)
  const now = clock.now()
  const due = dueFrom(now)
  if (status === 'waiting') await park(held, { due })
  else await commit(held, { status, due })
  const row = await run(held.runId)
  assert.deepEqual([row.status, row.readiness, row.due, row.session], [status, 'timed', now + inMs, null])
  assert.equal((await claim()).nextDue, now + inMs)
  await clock.advance(inMs - 1)
  assert.deepEqual((await claim()).runs, [], 'one millisecond too early')
  await clock.advance(1)
  assert.deepEqual(ids((await claim()).runs), [held.runId])
}

export const scheduleCases: readonly ContractCase[] = [
  {
    name: 'a run that is given back with an entry is pending, without lease or crash, and claimable at once',
    async run({ clock, start, take, commit, run, claim, journal }) {
      const { id } = await start()
      const held = await take(id)
      const answer = await commit(held, { append: [step('try')], status: 'pending' })
      assert.equal(answer.released, true)
      const row = await run(id)
      assert.deepEqual(
        [row.status, row.readiness, row.session, row.token, row.crashes, row.due, row.endedAt],
        ['pending', 'ready', null, 1, 0, clock.now(), null],
      )
      assert.equal((await journal(id)).length, 2)
      const { runs } = await claim()
      assert.deepEqual([runs[0]?.id, runs[0]?.token], [id, 2])
    },
  },
  {
    name: 'a run that is due at a point in time is claimed then and never early',
    run: (bench) => expectDue(bench, 'pending', 5_000, (now) => ({ at: now + 5_000, afterMs: null })),
  },
  {
    name: 'a delay counts from the commit and not from when the run was leased',
    run: (bench) => expectDue(bench, 'pending', 2_500, () => ({ at: null, afterMs: 2_500 })),
  },
  {
    name: 'of a delay and a later point in time, the delay counts',
    run: (bench) => expectDue(bench, 'pending', 300, (now) => ({ at: now + 400, afterMs: 300 })),
  },
  {
    name: 'of a delay and an earlier point in time, the point in time counts',
    run: (bench) => expectDue(bench, 'pending', 200, (now) => ({ at: now + 200, afterMs: 300 })),
  },
  {
    name: 'a due time that has passed already is now',
    near: true,
    async run({ clock, hold, commit, claim }) {
      const past = await hold()
      const empty = await hold()
      await clock.advance(100)
      await commit(past, { status: 'pending', due: { at: clock.now() - 50, afterMs: null } })
      await commit(empty, { status: 'pending', due: { at: null, afterMs: null } })
      assert.deepEqual(ids((await claim()).runs), [past.runId, empty.runId])
    },
  },
  {
    name: 'what is due in a millisecond is not due now',
    near: true,
    async run({ clock, start, hold, commit, park, claim }) {
      const due = { at: null, afterMs: 1 }
      const begun = await start({ due: inMs(1) })
      const [given, parked] = [await hold(), await hold()]
      await commit(given, { status: 'pending', due })
      await park(parked, { due })
      assert.deepEqual((await claim()).runs, [])
      await clock.advance(1)
      assert.deepEqual(ids((await claim()).runs), [begun.id, given.runId, parked.runId])
    },
  },
  {
    name: 'the old holder of a run that was given back writes nothing any more',
    async run({ hold, commit, send, transition, run, take }) {
      const held = await hold()
      await commit(held, { status: 'pending' })
      const before = await run(held.runId)
      assert.deepEqual(await send(transition(held)), { outcome: 'refused', reason: 'lease-lost' })
      assert.deepEqual(await run(held.runId), before)
      await take(held.runId)
      assert.deepEqual(await send(transition(held)), { outcome: 'refused', reason: 'lease-lost' })
    },
  },
  {
    name: 'a paused run rests: no lease, no due time, and neither time nor a message moves it',
    async run({ clock, hold, commit, run, claim, deliver, message }) {
      const held = await hold()
      const drift = {
        reason: 'drift',
        recorded: { seq: 1, kind: 'started', name: null },
        found: [],
        message: 'x',
      } as const
      const append = [{ kind: 'paused', name: null, meta: drift, data: null } as const]
      const answer = await commit(held, { append, status: 'paused', due: { at: null, afterMs: 5 } })
      assert.equal(answer.released, true)
      const row = await run(held.runId)
      assert.deepEqual(
        [row.status, row.readiness, row.session, row.due, row.endedAt],
        ['paused', 'idle', null, null, null],
      )
      assert.deepEqual(await deliver(message(held.runId)), { outcome: 'queued' })
      await clock.advance(1_000_000)
      assert.deepEqual(await claim(), { runs: [], more: false, nextDue: null, now: clock.now() })
    },
  },
]
