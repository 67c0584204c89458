// A parked run names the messages that it wants. Those wake it, or keep it from parking; any other stays in its mailbox
// without effect, however many there are.

import assert from 'node:assert/strict'
import type { Transition } from '../../../core/model/transition.ts'
import { ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { inMs, waiting } from '../drafts.ts'
import * as ask from '../requests.ts'

/** Parking for messages of these names. */
function wanting(wakeNames: readonly string[] | null, inbox = 0): Pick<Transition, 'parkIf'> {
  return { parkIf: { inbox, wakeNames } }
}

export const wakeNameCases: readonly ContractCase[] = [
  {
    name: 'a run that waits is woken by what it wants and sleeps through everything else',
    async run({ hold, park, deliver, message, run, claim, take, mailbox }) {
      const held = await hold()
      await park(held, { ...wanting(['approved', 'declined']), due: inMs(1_000) })
      const before = await run(held.runId)
      assert.deepEqual(before.wakeNames, ['approved', 'declined'])
      for (const name of ['other', 'approve', 'approved ', 'ap"proved', '["approved"]']) {
        assert.deepEqual(await deliver(message(held.runId, { name })), { outcome: 'queued' })
      }
      assert.deepEqual(await run(held.runId), { ...before, inbox: 5 }, 'only the count has changed')
      assert.deepEqual((await claim()).runs, [])
      const wanted = message(held.runId, { name: 'declined' })
      assert.deepEqual(await deliver(wanted), { outcome: 'delivered' })
      assert.deepEqual(await deliver(wanted), { outcome: 'delivered', repeated: true })
      assert.deepEqual(await deliver(message(held.runId, { name: 'approved' })), { outcome: 'queued' }, 'it is awake')
      await take(held.runId)
      assert.equal((await mailbox(held.runId)).length, 7, 'nothing is lost of what it did not want')
    },
  },
  {
    name: 'of messages that come together, a wanted one wakes the run wherever it stands among them',
    async run({ store, hold, park, message, claim }) {
      const held = await hold()
      await park(held, wanting(['approved']))
      const sent = ['other', 'approved', 'other'].map((name) => message(held.runId, { name }))
      const outcomes = (await store.deliver(sent)).map(({ outcome }) => outcome)
      assert.deepEqual(outcomes, ['queued', 'delivered', 'queued'])
      assert.deepEqual(ids((await claim()).runs), [held.runId])
    },
  },
  {
    name: 'a run that wants no message sleeps until it is due, and one that does not say wants any',
    async run({ clock, hold, park, deliver, message, claim, take }) {
      const [sleeper, any] = [await hold(), await hold()]
      await park(sleeper, { ...wanting([]), due: inMs(500) })
      await park(any, wanting(null))
      await deliver(message(sleeper.runId))
      await deliver(message(any.runId))
      await take(any.runId)
      assert.deepEqual((await claim()).runs, [])
      await clock.advance(500)
      await take(sleeper.runId)
    },
  },
  {
    name: 'a message that arrived unseen keeps the run awake only if it is wanted',
    async run({ hold, deliver, message, commit, park, run, claim }) {
      const held = await hold()
      for (const name of ['other', 'another']) await deliver(message(held.runId, { name }))
      const parked = await park(held, { append: [waiting()], ...wanting(['approved']) })
      assert.deepEqual([parked.released, parked.inbox], [true, 2])
      assert.deepEqual([(await run(held.runId)).status, (await claim()).runs], ['waiting', []])

      const second = await hold()
      for (const name of ['other', 'approved']) await deliver(message(second.runId, { name }))
      const rest = { append: [waiting()], status: 'waiting' } as const
      const again = await commit(second, { ...rest, ...wanting(['approved']) })
      assert.deepEqual([again.released, again.inbox], [false, 2])
      assert.equal((await run(second.runId)).session, second.lease.session)
      assert.equal((await park(second, { append: [], ...wanting(['approved'], 2) })).released, true)
    },
  },
  {
    name: 'what was seen before, or was taken, does not keep a run awake',
    async run({ hold, deliver, message, park }) {
      const held = await hold()
      const [seen, taken] = [
        message(held.runId, { name: 'approved' }),
        message(held.runId, { name: 'approved' }),
      ] as const
      for (const one of [seen, taken]) await deliver(one)
      await deliver(message(held.runId, { name: 'other' }))
      const parked = await park(held, { takes: [taken.id], ...wanting(['approved'], 1) })
      assert.deepEqual([parked.released, parked.inbox], [true, 3])
    },
  },
  {
    name: 'what a run wants counts until it is claimed: it wants something else when it is parked again',
    async run({ hold, park, deliver, message, take, run, control, claim }) {
      let held = await hold()
      await park(held, wanting(['first']))
      await deliver(message(held.runId, { name: 'first' }))
      held = await take(held.runId)
      assert.equal((await run(held.runId)).wakeNames, null)
      await park(held, { append: [], ...wanting(['second'], 1) })
      assert.deepEqual(await deliver(message(held.runId, { name: 'first' })), { outcome: 'queued' })
      assert.deepEqual((await run(held.runId)).wakeNames, ['second'])
      await control(held.runId, ask.pause)
      assert.deepEqual(await deliver(message(held.runId, { name: 'second' })), { outcome: 'queued' })
      await control(held.runId, ask.resume)
      assert.deepEqual(ids((await claim()).runs), [held.runId])
    },
  },
  {
    name: 'the end of a run and a broadcast wake the runs that wait for them, and no others',
    async run({ hold, park, commit, deliver, broadcast, run }) {
      const [ends, waits, sleeps] = [await hold(), await hold(), await hold()]
      const topic = { name: 'jobs', delivery: 'all', retainMs: 0 } as const
      const watches = [{ kind: 'run', runId: ends.runId } as const, { kind: 'topic', ...topic } as const]
      const outbound = { starts: [], unwatches: [], watches }
      await park(waits, { append: [waiting()], outbound, ...wanting([ends.runId, 'jobs']) })
      await park(sleeps, { append: [waiting()], outbound, ...wanting(['other']) })
      assert.deepEqual(await deliver(broadcast({ topic })), { outcome: 'delivered', runs: 2 })
      assert.equal((await run(waits.runId)).readiness, 'ready')
      await commit(ends, { append: [{ kind: 'succeeded', name: null, meta: null, data: '1' }], status: 'succeeded' })
      const row = await run(sleeps.runId)
      assert.deepEqual([row.readiness, row.inbox], ['idle', 2])
      assert.equal((await run(waits.runId)).inbox, 2)
    },
  },
  {
    name: 'a run that begins to watch what is over looks again if it wants to know, and rests if it does not',
    async run({ hold, commit }) {
      const ended = await hold()
      await commit(ended, { append: [{ kind: 'succeeded', name: null, meta: null, data: '1' }], status: 'succeeded' })
      const outbound = { starts: [], unwatches: [], watches: [{ kind: 'run', runId: ended.runId } as const] }
      for (const [wakeNames, released] of [
        [[ended.runId], false],
        [['other'], true],
      ] as const) {
        const held = await hold()
        const rest = { append: [waiting()], status: 'waiting', outbound, ...wanting(wakeNames) } as const
        assert.deepEqual((await commit(held, rest)).released, released)
      }
    },
  },
  {
    name: 'a wanted message that races with parking, among others, never leaves the run asleep',
    async run({ store, newRun, transition, message, send, deliver, claim }) {
      for (let round = 0; round < 20; round += 1) {
        const lease = { session: 'me', token: 1 }
        const given = newRun({ lease })
        await store.start([given])
        const held = { runId: given.id, lease, seq: 1 }
        const park = transition(held, { append: [waiting()], status: 'waiting', ...wanting(['approved']) })
        const sent = ['other', 'approved', 'other'].map((name) => message(given.id, { name }))
        const [parked] = await Promise.all([send(park), ...sent.map(deliver)])
        assert.equal(parked.outcome, 'committed')
        assert.deepEqual(ids((await claim()).runs), parked.released ? [given.id] : [])
      }
    },
  },
]
