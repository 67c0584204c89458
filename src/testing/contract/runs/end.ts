// Terminal is final.

import assert from 'node:assert/strict'
import type { TerminalStatus } from '../../../core/model/run.ts'
import { draftOf, succeeded } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending as end, step } from '../drafts.ts'

const terminal: readonly TerminalStatus[] = ['succeeded', 'failed', 'cancelled']

const finalCases = terminal.map((status): ContractCase => ({
  name: `WC-E8 a run that ${status === 'cancelled' ? 'was cancelled' : status} has no lease and no due time, and nothing moves it again`,
  async run({ store, clock, start, take, transition, send, run, journal, claim, deliver, message, unique }) {
    const { id } = await start()
    const held = await take(id)
    await clock.advance(5)
    const given = transition(held, { append: [end(status)], status, due: { at: null, afterMs: 1 } })
    const answer = succeeded(await send(given))
    assert.deepEqual(answer, {
      outcome: 'committed',
      seq: 2,
      at: clock.now(),
      inbox: 0,
      released: true,
      controlRequest: null,
    })
    const row = await run(id)
    assert.deepEqual(
      [row.status, row.readiness, row.session, row.due, row.endedAt, row.updatedAt, row.crashes],
      [status, 'idle', null, null, clock.now(), clock.now(), 0],
    )
    await clock.advance(1_000_000)
    assert.deepEqual(await claim(), { runs: [], more: false, nextDue: null, now: clock.now() })
    await store.release([{ runId: id, ...held.lease }])
    assert.deepEqual(await deliver(message(id)), { outcome: 'target-terminated', status })
    const late = { ...held, seq: 2 }
    const lost = { outcome: 'refused', reason: 'lease-lost' }
    assert.deepEqual(await send(transition(late)), lost)
    assert.deepEqual(await send(transition(late, { status: 'succeeded' })), lost)
    assert.deepEqual(await send(transition(late, { append: [], status: 'waiting', parkIf: { inbox: 0 } })), lost)
    assert.deepEqual(await send({ ...given, id: unique('transition') }), lost)
    assert.deepEqual(await run(id), row, 'the row is unchanged')
    assert.equal((await journal(id)).length, 2)
  },
}))

export const endCases: readonly ContractCase[] = [
  ...finalCases,
  {
    name: 'SW-E6 success commits the last step, the status and the result together, and clears the lease',
    async run({ hold, commit, run, journal }) {
      const held = await hold()
      const append = [step(), end('succeeded')]
      const answer = await commit(held, { append, status: 'succeeded' })
      assert.deepEqual([answer.seq, answer.released], [3, true])
      const { seq, status, session, readiness } = await run(held.runId)
      assert.deepEqual([seq, status, session, readiness], [3, 'succeeded', null, 'idle'])
      assert.deepEqual((await journal(held.runId)).slice(1).map(draftOf), append)
    },
  },
  {
    name: 'a message does not keep a run from ending, and its sender still learns that it was accepted',
    async run({ hold, commit, deliver, message, mailbox }) {
      const held = await hold()
      const given = message(held.runId)
      assert.deepEqual(await deliver(given), { outcome: 'queued' })
      const answer = await commit(held, { append: [end('succeeded')], status: 'succeeded' })
      assert.deepEqual([answer.released, answer.inbox], [true, 1])
      const again = await deliver(given)
      assert.deepEqual(again, { outcome: 'queued', repeated: true }, 'the repetition of an accepted message')
      assert.deepEqual(await mailbox(held.runId), [], 'no run will read it')
    },
  },
]
