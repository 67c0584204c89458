// A run that starts with messages: it has them from the first moment, once, and only if it was created.

import assert from 'node:assert/strict'
import { ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { inMs } from '../drafts.ts'
import { dead } from '../messages/unread-messages.ts'

export const startWithMessagesCases: readonly ContractCase[] = [
  {
    name: 'WC-W3 what is sent together with a start lies in the mailbox of the run, in order, and it waits for nobody',
    async run({ store, clock, newRun, message, mailbox, run, journal, take }) {
      const given = newRun()
      const messages = [message(given.id, { policy: dead }), message(given.id, { name: 'other', data: '2' })]
      const [answer] = await store.start([{ ...given, messages }])
      assert.deepEqual([answer?.created, answer?.run?.inbox, answer?.run?.readiness], [true, 2, 'ready'])
      assert.deepEqual(await run(given.id), answer?.run)
      const at = clock.now()
      assert.deepEqual(
        await mailbox(given.id),
        messages.map((message, index) => ({ ...message, position: index + 1, at })),
      )
      assert.equal((await journal(given.id)).length, 1)
      await take(given.id)
    },
  },
  {
    name: 'a repeated start with messages delivers none of them twice',
    async run({ store, newRun, message, deliver, mailbox, run }) {
      const given = newRun()
      const first = message(given.id)
      const start = { ...given, messages: [first] }
      await store.start([start])
      const [again] = await store.start([start])
      assert.equal(again?.created, true)
      assert.equal((await mailbox(given.id)).length, 1)
      assert.deepEqual(await deliver(first), { outcome: 'queued', repeated: true })
      assert.equal((await run(given.id)).inbox, 1)
    },
  },
  {
    name: 'a start whose key is taken puts nothing anywhere',
    async run({ store, newRun, start, message, mailbox, run }) {
      for (const has of [{ key: 'k' }, { idempotencyKey: 'k' }]) {
        const other = await start(has)
        const given = newRun(has)
        const [answer] = await store.start([{ ...given, messages: [message(given.id)] }])
        assert.deepEqual([answer?.created, answer?.run?.id], [false, other.id])
        assert.deepEqual(await mailbox(given.id), [])
        assert.deepEqual(await mailbox(other.id), [])
        assert.deepEqual(await run(other.id), other)
      }
    },
  },
  {
    name: 'a run that is leased at once, or due later, has its messages as well',
    async run({ store, newRun, message, mailbox, run }) {
      const leased = newRun({ lease: { session: 'me', token: 1 } })
      const timed = newRun({ due: inMs(1_000) })
      const none = newRun()
      const answers = await store.start([
        { ...leased, messages: [message(leased.id)] },
        none,
        { ...timed, messages: [message(timed.id), message(timed.id)] },
      ])
      assert.deepEqual(
        answers.map(({ run }) => [run?.status, run?.readiness, run?.inbox]),
        [
          ['running', 'leased', 1],
          ['pending', 'ready', 0],
          ['pending', 'timed', 2],
        ],
      )
      assert.equal((await mailbox(timed.id)).length, 2)
      assert.equal((await run(leased.id)).inbox, 1)
    },
  },
  {
    name: 'a claim does not return a run that has messages as fresh',
    near: true,
    async run({ store, newRun, start, message, deliver, claim }) {
      const given = newRun()
      await store.start([{ ...given, messages: [message(given.id)] }])
      const [written, plain] = [await start(), await start()]
      await deliver(message(written.id))
      const { runs, fresh = [] } = await claim()
      assert.deepEqual(ids(runs), [given.id, written.id, plain.id])
      for (const { runId } of fresh) assert.equal(runId, plain.id)
    },
  },
]
