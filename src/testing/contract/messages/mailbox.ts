// Messages: none is lost, none counts twice, first in, first out.

import assert from 'node:assert/strict'
import { atOnce, ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, inMs } from '../drafts.ts'

export const mailboxCases: readonly ContractCase[] = [
  {
    name: 'a message wakes a run that waits, and does not touch its journal',
    async run({ clock, hold, park, deliver, message, run, journal, claim }) {
      const held = await hold()
      await park(held, { due: { at: null, afterMs: 10_000 } })
      const before = await run(held.runId)
      await clock.advance(5)
      assert.deepEqual(await deliver(message(held.runId)), { outcome: 'delivered' })
      const woken = { status: 'waiting', readiness: 'ready', due: clock.now(), inbox: 1 }
      assert.deepEqual(await run(held.runId), { ...before, ...woken })
      assert.equal((await journal(held.runId)).length, 2)
      const { runs, nextDue } = await claim()
      assert.deepEqual([ids(runs), runs[0]?.inbox, nextDue], [[held.runId], 1, null])
    },
  },
  {
    name: 'a message to a run that is busy or not begun is queued and moves nothing but the inbox',
    async run({ hold, start, deliver, message, run }) {
      const busy = await hold()
      const pending = await start()
      const timed = await start({ due: inMs(100) })
      for (const id of [busy.runId, pending.id, timed.id]) {
        const before = await run(id)
        assert.deepEqual(await deliver(message(id)), { outcome: 'queued' })
        assert.deepEqual(await run(id), { ...before, inbox: 1 })
      }
    },
  },
  {
    name: 'a message to a run that has ended is refused with its status and not kept',
    async run({ hold, commit, deliver, message, mailbox: read, run }) {
      for (const status of ['succeeded', 'failed', 'cancelled'] as const) {
        const held = await hold()
        await commit(held, { append: [ending(status)], status })
        const given = message(held.runId)
        assert.deepEqual(await deliver(given), { outcome: 'target-terminated', status })
        assert.deepEqual(await deliver(given), { outcome: 'target-terminated', status })
        assert.deepEqual(await read(held.runId), [])
        assert.equal((await run(held.runId)).inbox, 0)
      }
    },
  },
  {
    name: 'a message to a run that does not exist is answered so, and the others of its batch arrive',
    async run({ store, hold, newRun, message, mailbox: read }) {
      const held = await hold()
      const answers = await store.deliver([message(held.runId), message(newRun().id), message(held.runId)])
      assert.deepEqual(
        answers.map(({ outcome }) => outcome),
        ['queued', 'target-not-found', 'queued'],
      )
      assert.equal((await read(held.runId)).length, 2)
      assert.deepEqual(await store.deliver([]), [])
    },
  },
  {
    name: 'messages are kept first in, first out, each at the inbox that it made, in store time',
    async run({ store, clock, hold, message, deliver, mailbox: read, run, commit }) {
      const held = await hold()
      const given = Array.from({ length: 5 }, (_, index) =>
        message(held.runId, { name: `n${index % 2}`, data: `${index}` }),
      )
      await store.deliver(given.slice(0, 3))
      const early = clock.now()
      await clock.advance(10)
      for (const late of given.slice(3)) await deliver(late)
      assert.deepEqual(
        await read(held.runId),
        given.map((one, index) => ({ ...one, position: index + 1, at: index < 3 ? early : clock.now() })),
      )
      assert.equal((await run(held.runId)).inbox, 5)
      assert.equal((await commit(held)).inbox, 5)
    },
  },
  {
    name: 'a message that is delivered twice is kept once, as it first was, and answered as before',
    async run({ store, clock, hold, park, deliver, message, mailbox: read, run, take }) {
      let held = await hold()
      await park(held)
      const given = message(held.runId)
      assert.deepEqual(await deliver(given), { outcome: 'delivered' })
      const kept = await read(held.runId)
      held = await take(held.runId)
      await clock.advance(10)
      const repeated = { outcome: 'delivered', repeated: true }
      assert.deepEqual(await deliver({ ...given, data: '"changed"' }), repeated, 'the run is busy now')
      await park(held, { append: [], parkIf: { inbox: 1 } })
      const resting = await run(held.runId)
      assert.deepEqual(await deliver(given), repeated)
      assert.deepEqual(await run(held.runId), resting, 'a repetition does not wake the run again')
      const other = message(held.runId)
      const twice = await store.deliver([other, other])
      assert.deepEqual(twice, [{ outcome: 'delivered' }, repeated])
      assert.deepEqual((await read(held.runId)).slice(0, 1), kept)
      assert.equal((await read(held.runId)).length, 2)
      assert.equal((await run(held.runId)).inbox, 2)
    },
  },
  {
    name: 'one message id may go to two runs and reaches both',
    async run({ hold, deliver, message, mailbox: read }) {
      const [a, b] = [await hold(), await hold()]
      const given = message(a.runId)
      await deliver(given)
      assert.deepEqual(await deliver({ ...given, runId: b.runId }), { outcome: 'queued' })
      assert.equal((await read(b.runId)).length, 1)
    },
  },
  {
    name: 'a transition takes messages out of the mailbox, each once, and they stay known to their sender',
    async run({ hold, park, commit, take, deliver, message, mailbox: read, run }) {
      const held = await hold()
      const [a, b, c] = [message(held.runId), message(held.runId), message(held.runId)]
      for (const given of [a, b, c]) await deliver(given)
      await commit(held, { takes: [b.id, 'unheard-of'] })
      assert.deepEqual(
        (await read(held.runId)).map(({ id }) => id),
        [a.id, c.id],
      )
      const again = await deliver(b)
      assert.deepEqual(again, { outcome: 'queued', repeated: true }, 'the repetition of a message that was taken')
      assert.equal((await run(held.runId)).inbox, 3)
      await park(held, { parkIf: { inbox: 3 }, takes: [a.id] })
      assert.deepEqual(await deliver(message(held.runId)), { outcome: 'delivered' })
      await commit(await take(held.runId), { takes: [c.id] })
      assert.equal((await read(held.runId)).length, 1)
    },
  },
  {
    name: 'a transition that is refused takes nothing, and one that is repeated takes nothing twice',
    async run({ hold, commit, transition, send, deliver, message, mailbox: read }) {
      const held = await hold()
      const [a, b] = [message(held.runId), message(held.runId)]
      await deliver(a)
      const stale = { seq: held.seq + 1, lease: held.lease }
      await send(transition(held, { guard: stale, takes: [a.id] }))
      assert.equal((await read(held.runId)).length, 1)
      const given = transition(held, { takes: [a.id] })
      await send(given)
      await deliver(b)
      assert.deepEqual(await send(given), { ...(await send(given)), outcome: 'committed' })
      assert.deepEqual(
        (await read(held.runId)).map(({ id }) => id),
        [b.id],
      )
      await commit({ ...held, seq: held.seq + 1 })
    },
  },
  {
    name: 'a run that is written to again is woken once (WC-E7), and keeps its place among those that are due',
    near: true,
    async run({ clock, hold, park, start, deliver, message, claim }) {
      const held = await hold()
      await park(held)
      await deliver(message(held.runId))
      await clock.advance(5)
      const other = await start()
      await clock.advance(5)
      assert.deepEqual(await deliver(message(held.runId)), { outcome: 'queued' })
      assert.deepEqual(ids((await claim()).runs), [held.runId, other.id])
    },
  },
  {
    name: 'messages that arrive at once get places without a gap, and duplicates among them one',
    async run({ hold, deliver, message, mailbox: read, run }) {
      const held = await hold()
      const given = Array.from({ length: 20 }, () => message(held.runId))
      await atOnce(40, (index) => deliver(given[index % 20] as (typeof given)[number]))
      const kept = await read(held.runId)
      assert.deepEqual(
        kept.map(({ position }) => position),
        given.map((_, index) => index + 1),
      )
      assert.equal(new Set(kept.map(({ id }) => id)).size, 20)
      assert.equal((await run(held.runId)).inbox, 20)
    },
  },
]
