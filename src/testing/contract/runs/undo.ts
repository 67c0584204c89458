// Undo work. A run that fails with steps to undo has not ended yet, and undo work has no timeout.

import assert from 'node:assert/strict'
import type { Draft } from '../../../core/model/entry.ts'
import { draftOf, failsAfter, failures } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, inMs, step } from '../drafts.ts'
import * as ask from '../requests.ts'
import { holdUndoable, kindsOf, controlled } from '../requests.ts'

const failing: Draft = { kind: 'failing', name: null, meta: null, data: '"no"' }

export const undoCases: readonly ContractCase[] = [
  {
    name: 'what a run has to undo is what its last transition said of it; most say nothing',
    async run({ hold, commit, run }) {
      const held = await hold({ timeoutMs: 1_000 })
      const { timeoutAt } = await run(held.runId)
      const undo = async (): Promise<unknown> => (await run(held.runId)).undo
      assert.equal(await undo(), 'none')
      await commit(held, { append: [ask.undoable], undo: 'possible' })
      assert.equal(await undo(), 'possible')
      await commit(held)
      assert.deepEqual([await undo(), (await run(held.runId)).timeoutAt], ['possible', timeoutAt])
      await commit(held, { append: [failing], undo: 'due' })
      assert.deepEqual([await undo(), (await run(held.runId)).timeoutAt], ['due', null])
      await commit(held, { status: 'pending' })
      assert.equal(await undo(), 'due')
    },
  },
  {
    name: 'it is said also by a transition with which the lease ends',
    async run({ hold, commit, run, park }) {
      const held = await hold()
      await park(held, { append: [ask.undoable], undo: 'possible' })
      assert.equal((await run(held.runId)).undo, 'possible')
      const other = await hold({ timeoutMs: 1_000 })
      await commit(other, { append: [failing], undo: 'due', status: 'pending', due: inMs(5) })
      const { undo, timeoutAt, readiness, status } = await run(other.runId)
      assert.deepEqual([undo, timeoutAt, readiness, status], ['due', null, 'timed', 'pending'])
    },
  },
  {
    name: 'a run that times out without a holder, and has something to undo, is pending to undo it, then fails',
    async run(bench) {
      const { clock, park, rescue, run, journal, take, commit } = bench
      const held = await holdUndoable(bench, { timeoutMs: 50 })
      await park(held)
      await clock.advance(50)
      const { ended, takenOver, next } = await rescue()
      assert.deepEqual([ended, takenOver, next], [[], [], null])
      const row = await run(held.runId)
      assert.deepEqual(
        [row.status, row.readiness, row.undo, row.timeoutAt, row.endedAt],
        ['pending', 'ready', 'due', null, null],
      )
      const last = (await journal(held.runId)).at(-1)
      assert.deepEqual(last && draftOf(last), { ...failing, data: failures['timed-out'] })
      const again = await take(held.runId)
      await clock.advance(1_000)
      assert.deepEqual((await rescue({ maxCrashes: 99 })).ended, [])
      const holder = await take(held.runId)
      assert.ok(holder.lease.token > again.lease.token)
      await commit(holder, { append: [ending('failed')], status: 'failed' })
      assert.equal((await run(held.runId)).status, 'failed')
    },
  },
  {
    name: 'SW-R5 a run that shall fail for its crashes undoes first, and fails for good when that kills its holders, too',
    async run(bench) {
      const { clock, selector, beat, rescue, take, run } = bench
      await beat('dead')
      const held = await holdUndoable(bench, { lease: { session: 'dead', token: 1 } })
      await clock.advance(30_000)
      const first = await rescue({ workflows: [failsAfter(selector, 1)] })
      assert.deepEqual([first.ended, first.takenOver.map(({ crashes }) => crashes)], [[], [1]])
      assert.deepEqual(await kindsOf(bench, held.runId), ['started', 'step-succeeded', 'crashed', 'failing'])
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.undo, row.crashes], ['pending', 'due', 0])
      for (const crashes of [1, 2]) {
        await beat(`victim-${crashes}`)
        await take(held.runId, `victim-${crashes}`)
        await clock.advance(30_000)
        const { ended } = await rescue({ workflows: [failsAfter(selector, 2)] })
        assert.deepEqual(
          ended.map(({ reason }) => reason),
          crashes === 2 ? ['crashed'] : [],
        )
      }
      assert.equal((await run(held.runId)).status, 'failed')
      assert.deepEqual((await kindsOf(bench, held.runId)).slice(4), ['crashed', 'crashed', 'failed'])
    },
  },
  {
    name: 'a run that is over time when its holder dies undoes first',
    async run(bench) {
      const { clock, beat, rescue, run } = bench
      await beat('dead')
      const held = await holdUndoable(bench, { lease: { session: 'dead', token: 1 }, timeoutMs: 100 })
      await clock.advance(30_000)
      const { ended, takenOver } = await rescue()
      assert.deepEqual([ended, takenOver.length], [[], 1])
      assert.deepEqual((await kindsOf(bench, held.runId)).slice(2), ['crashed', 'failing'])
      assert.deepEqual([(await run(held.runId)).undo, (await run(held.runId)).timeoutAt], ['due', null])
    },
  },
  {
    name: 'a run that undoes because it failed is cancelled as one that has something to undo',
    async run(bench) {
      const held = await holdUndoable(bench)
      await bench.commit(held, { append: [failing, step()], undo: 'due', status: 'pending' })
      const row = controlled(await bench.control(held.runId, ask.cancel), 'done')
      assert.deepEqual([row.status, row.undo, row.readiness], ['cancelling', 'due', 'ready'])
    },
  },
]
