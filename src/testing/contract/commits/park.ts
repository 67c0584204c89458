// A waiting run holds no lease and no slot, and no wake-up is lost while it parks.

import assert from 'node:assert/strict'
import { ids, succeeded, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { waiting } from '../drafts.ts'
import { expectDue } from '../runs/schedule.ts'

export const parkCases: readonly ContractCase[] = [
  {
    name: 'a parked run waits without lease, and without a due time only a message moves it',
    async run({ clock, hold, commit, run, claim, deliver, message, take }) {
      const held = await hold()
      const answer = await commit(held, { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 } })
      assert.deepEqual(answer, {
        outcome: 'committed',
        seq: 2,
        at: clock.now(),
        inbox: 0,
        released: true,
        controlRequest: null,
      })
      const row = await run(held.runId)
      assert.deepEqual(
        [row.status, row.readiness, row.session, row.token, row.due, row.endedAt],
        ['waiting', 'idle', null, 1, null, null],
      )
      await clock.advance(1_000_000_000)
      assert.deepEqual(await claim(), { runs: [], more: false, nextDue: null, now: clock.now() })
      await deliver(message(held.runId))
      assert.equal((await take(held.runId)).lease.token, 2)
    },
  },
  {
    name: 'a run that waits for a point in time is claimed then and never early',
    run: (bench) => expectDue(bench, 'waiting', 172_800_000, (now) => ({ at: now + 172_800_000, afterMs: null })),
  },
  {
    name: 'a relative wait counts from the commit that parks the run',
    run: (bench) => expectDue(bench, 'waiting', 1_000, () => ({ at: null, afterMs: 1_000 })),
  },
  {
    name: 'of a relative wait and a later point in time, the relative wait is over first',
    run: (bench) => expectDue(bench, 'waiting', 30, (now) => ({ at: now + 40, afterMs: 30 })),
  },
  {
    name: 'of a relative wait and an earlier point in time, the point in time comes first',
    run: (bench) => expectDue(bench, 'waiting', 20, (now) => ({ at: now + 20, afterMs: 30 })),
  },
  {
    name: 'a wait whose time has passed already is claimed at once',
    async run({ clock, hold, park, run, take }) {
      const held = await hold()
      await park(held, { due: { at: clock.now() - 1, afterMs: null } })
      assert.deepEqual([(await run(held.runId)).status, (await run(held.runId)).readiness], ['waiting', 'ready'])
      await take(held.runId)
    },
  },
  {
    name: 'a message that arrived unseen keeps the run awake: the entries are there, the lease is kept, look again',
    async run({ clock, hold, deliver, message, commit, run, journal, claim, park }) {
      const held = await hold()
      await deliver(message(held.runId))
      const due = { at: null, afterMs: 10 }
      const again = await commit(held, { append: [waiting()], status: 'waiting', due, parkIf: { inbox: 0 } })
      assert.deepEqual(again, {
        outcome: 'committed',
        seq: 2,
        at: clock.now(),
        inbox: 1,
        released: false,
        controlRequest: null,
      })
      const row = await run(held.runId)
      assert.deepEqual(
        [row.status, row.readiness, row.session, row.due],
        ['running', 'leased', held.lease.session, null],
      )
      assert.equal((await journal(held.runId)).length, 2)
      await clock.advance(20)
      assert.deepEqual((await claim()).runs, [])
      const parked = await park(held, { append: [], parkIf: { inbox: again.inbox } })
      assert.deepEqual([parked.released, parked.seq], [true, 2])
      assert.equal((await run(held.runId)).status, 'waiting')
    },
  },
  {
    name: 'a run may be parked again and again without a new entry',
    async run({ clock, hold, park, take, journal }) {
      let held = await hold()
      await park(held, { append: [waiting()], due: { at: null, afterMs: 10 } })
      for (const token of [2, 3, 4]) {
        await clock.advance(10)
        held = await take(held.runId)
        assert.equal(held.lease.token, token)
        const answer = await park(held, { append: [], due: { at: null, afterMs: 10 } })
        assert.deepEqual([answer.seq, answer.released], [2, true])
      }
      assert.equal((await journal(held.runId)).length, 2)
    },
  },
  {
    name: 'a run that waits for a new time does not wake at the old one',
    async run({ clock, hold, park, deliver, message, take, claim }) {
      let held = await hold()
      await park(held, { due: { at: null, afterMs: 100 } })
      await deliver(message(held.runId))
      held = await take(held.runId)
      await park(held, { append: [], due: { at: null, afterMs: 500 }, parkIf: { inbox: 1 } })
      await clock.advance(100)
      assert.deepEqual((await claim()).runs, [])
      await clock.advance(400)
      assert.deepEqual(ids((await claim()).runs), [held.runId])
    },
  },
  {
    name: 'a run that was woken and waits anew does not hide those that are due before it',
    async run({ clock, hold, park, deliver, message, take }) {
      const parked: Held[] = []
      for (const afterMs of [4, 10, 900, 20, 21]) {
        const held = await hold()
        await park(held, { due: { at: null, afterMs } })
        parked.push(held)
      }
      const [first, moved, , second, third] = parked as [Held, Held, Held, Held, Held]
      await deliver(message(moved.runId))
      const again = await take(moved.runId)
      await park(again, { append: [], due: { at: null, afterMs: 10_000 }, parkIf: { inbox: 1 } })
      await clock.advance(4)
      await take(first.runId)
      await clock.advance(16)
      await take(second.runId)
      await clock.advance(1)
      await take(third.runId)
    },
  },
  {
    name: 'a message that races with parking never leaves the run asleep',
    async run({ store, newRun, transition, message, deliver, send, run, claim }) {
      for (let round = 0; round < 20; round += 1) {
        const lease = { session: 'me', token: 1 }
        const given = newRun({ lease })
        await store.start([given])
        const held = { runId: given.id, lease, seq: 1 }
        const park = (): ReturnType<typeof send> =>
          send(transition(held, { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 } }))
        const deliverOne = (): ReturnType<typeof deliver> => deliver(message(given.id))
        const [parked, delivered] =
          round % 2 === 0
            ? await Promise.all([park(), deliverOne()])
            : await Promise.all([deliverOne(), park()]).then(([a, b]) => [b, a] as const)
        const { released } = succeeded(parked)
        assert.equal(delivered.outcome, released ? 'delivered' : 'queued', 'the answer says what happened')
        const { runs } = await claim()
        assert.deepEqual(ids(runs), released ? [given.id] : [], 'it is claimable, or still held by who must look again')
        assert.equal((await run(given.id)).status, 'running')
      }
    },
  },
]
