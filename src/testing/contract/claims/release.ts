// A worker gives its runs back when it stops: nothing is lost and no crash is counted.

import assert from 'node:assert/strict'
import { ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'

export const releaseCases: readonly ContractCase[] = [
  {
    name: 'a run that is given back is pending, claimable at once, counts no crash and has no new entry',
    async run({ store, clock, start, take, run, journal, claim }) {
      const before = await start()
      const held = await take(before.id)
      await clock.advance(10)
      await store.release([{ runId: before.id, ...held.lease }])
      assert.deepEqual(await run(before.id), { ...before, token: 1, due: clock.now() })
      assert.equal((await journal(before.id)).length, 1)
      const { runs } = await claim()
      assert.deepEqual([runs[0]?.id, runs[0]?.token, runs[0]?.crashes], [before.id, 2, 1])
    },
  },
  {
    name: 'giving a run back forgets no crash of the holders before',
    async run({ store, start, take, run, rescue, beat, clock }) {
      const { id } = await start()
      await beat('dead')
      await take(id, 'dead')
      await clock.advance(30_000)
      await rescue()
      const held = await take(id)
      await store.release([{ runId: id, ...held.lease }])
      assert.equal((await run(id)).crashes, 1)
    },
  },
  {
    name: 'a lease that was lost is passed over: the new holder keeps the run, and the others are given back',
    async run({ store, start, take, run, newRun, claim, hold }) {
      const { id } = await start()
      const old = await take(id)
      await store.release([{ runId: id, ...old.lease }])
      await take(id)
      const before = await run(id)
      const other = await hold()
      const stranger = { ...other.lease, session: 'stranger' }
      await store.release([
        { runId: id, ...old.lease },
        { runId: newRun().id, ...old.lease },
        { runId: other.runId, ...stranger },
        { runId: other.runId, ...other.lease },
        { runId: other.runId, ...other.lease },
      ])
      assert.deepEqual(await run(id), before)
      assert.deepEqual(ids((await claim()).runs), [other.runId])
      await store.release([])
    },
  },
  {
    name: 'who was given a strange lease gives nothing back',
    async run({ store, hold, run }) {
      const held = await hold()
      const before = await run(held.runId)
      await store.release([{ runId: held.runId, session: 'stranger', token: 1 }])
      await store.release([{ runId: held.runId, session: held.lease.session, token: 2 }])
      assert.deepEqual(await run(held.runId), before)
    },
  },
  {
    name: 'giving back late does not wake a run that was parked meanwhile',
    async run({ store, hold, park, run }) {
      const held = await hold()
      await park(held)
      const before = await run(held.runId)
      await store.release([{ runId: held.runId, ...held.lease }])
      assert.deepEqual(await run(held.runId), before)
    },
  },
  {
    name: 'a holder that gave back writes nothing, before the next claim and after it',
    async run({ store, hold, send, transition, take, journal, commit }) {
      const held = await hold()
      await store.release([{ runId: held.runId, ...held.lease }])
      assert.deepEqual(await send(transition(held)), { outcome: 'refused', reason: 'lease-lost' })
      const next = await take(held.runId)
      assert.equal(next.lease.token, held.lease.token + 1)
      assert.deepEqual(await send(transition(held)), { outcome: 'refused', reason: 'lease-lost' })
      await commit(next)
      assert.equal((await journal(held.runId)).length, 2)
    },
  },
]
