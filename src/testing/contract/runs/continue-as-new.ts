// Continuing as new under the same id: the last entry is the input, and no entry before it is read again.

import assert from 'node:assert/strict'
import type { Draft } from '../../../core/model/entry.ts'
import { isHoldfastError } from '../../../core/errors/error.ts'
import type { Continuation } from '../../../core/model/transition.ts'
import { ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { step } from '../drafts.ts'
import * as ask from '../requests.ts'
import { holdUndoable, controlled } from '../requests.ts'

const next: Continuation = { type: 'contract.next', version: 3, feed: false }

function anew(continues: Continuation = next): { readonly append: readonly Draft[]; readonly continues: Continuation } {
  return { append: [step(), { kind: 'continued', name: null, meta: continues, data: '{"round":2}' }], continues }
}

export const continueAsNewCases: readonly ContractCase[] = [
  {
    name: 'a run that begins anew keeps its id and its lease, and is what it goes on as; its base is its last entry',
    async run(bench) {
      const { clock, run, commit, claim, store } = bench
      const held = await holdUndoable(bench, { timeoutMs: 5_000 })
      const before = await run(held.runId)
      await clock.advance(3)
      const answer = await commit(held, anew())
      assert.deepEqual([answer.seq, answer.released, answer.controlRequest], [4, false, null])
      const after = { ...next, seq: 4, base: 4, undo: 'none', updatedAt: clock.now(), crashes: 0 }
      assert.deepEqual(await run(held.runId), { ...before, ...after })
      await commit(held)
      await store.release([{ runId: held.runId, ...held.lease }])
      assert.deepEqual((await claim()).runs, [], 'it is not what it was')
      const { runs } = await claim({ selectors: [next] })
      assert.deepEqual([ids(runs), runs[0]?.base, runs[0]?.seq], [[held.runId], 4, 5])
    },
  },
  {
    name: 'HE-V3 a run keeps its version until it continues as new, even if workers of other versions claim',
    async run({ selector, start, claim, hold, commit, store }) {
      const newer = { ...selector, version: 2 }
      const { id } = await start()
      assert.deepEqual((await claim({ selectors: [newer] })).runs, [])
      const held = await hold()
      await commit(held, anew({ ...newer, feed: false }))
      await store.release([{ runId: held.runId, ...held.lease }])
      assert.deepEqual(ids((await claim({ selectors: [newer] })).runs), [held.runId])
      assert.deepEqual(ids((await claim()).runs), [id])
    },
  },
  {
    name: 'a run that begins anew and goes back at once is claimed as what it is then',
    async run({ hold, commit, claim }) {
      const held = await hold()
      assert.equal((await commit(held, { ...anew(), status: 'pending' })).released, true)
      assert.deepEqual((await claim()).runs, [])
      assert.deepEqual(ids((await claim({ selectors: [next] })).runs), [held.runId])
    },
  },
  {
    name: 'HE-U2 the key of a run goes with it, and is free for the type that it was',
    async run({ store, newRun, hold, commit }) {
      const held = await hold({ key: 'k' })
      await commit(held, anew())
      const [same, other] = await store.start([newRun({ ...next, key: 'k' }), newRun({ key: 'k' })])
      assert.deepEqual([same?.taken, same?.run?.id, other?.created], ['key', held.runId, true])
    },
  },
  {
    name: 'HE-U2 a run does not begin anew as a type where a live run has its key: nothing is appended, and it may try again',
    async run({ hold, start, transition, send, run, journal, control, commit }) {
      const held = await hold({ key: 'k' })
      const rival = await start({ ...next, key: 'k' })
      const before = [await run(held.runId), await journal(held.runId)]
      const given = transition(held, anew())
      assert.deepEqual(await send(given), { outcome: 'refused', reason: 'key-taken' })
      assert.deepEqual([await run(held.runId), await journal(held.runId)], before)
      controlled(await control(rival.id, ask.cancelNow), 'done')
      assert.equal((await commit(held, anew())).seq, 3)
    },
  },
  {
    name: 'a run that begins anew as what it is has its own key, and is not in its own way',
    async run({ hold, commit, selector, store, newRun }) {
      const held = await hold({ key: 'k' })
      await commit(held, anew({ ...selector, feed: true }))
      await commit(held, anew({ ...selector, feed: true }))
      const [rival] = await store.start([newRun({ key: 'k' })])
      assert.deepEqual([rival?.taken, rival?.run?.id], ['key', held.runId])
    },
  },
  {
    name: 'SW-U2 an idempotency key stays with the type that was started: the same request does not start a second run',
    async run({ store, newRun, hold, start, commit }) {
      const held = await hold({ idempotencyKey: 'i' })
      const other = await start({ ...next, idempotencyKey: 'i' })
      await commit(held, anew())
      const [again, late] = await store.start([
        newRun({ idempotencyKey: 'i' }),
        newRun({ ...next, idempotencyKey: 'i' }),
      ])
      assert.deepEqual([again?.taken, again?.run?.id], ['idempotency-key', held.runId])
      assert.deepEqual([late?.taken, late?.run?.id], ['idempotency-key', other.id])
    },
  },
  {
    name: 'a removed run has no key to take along',
    async run({ hold, start, control, commit, run }) {
      const held = await hold({ key: 'k' })
      await start({ ...next, key: 'k' })
      controlled(await control(held.runId, ask.remove), 'done')
      await commit(held, anew())
      assert.equal((await run(held.runId)).type, next.type)
    },
  },
  {
    name: 'beginning anew that is repeated because its answer was lost is answered as before, and happens once',
    async run({ hold, transition, send, journal, run }) {
      const held = await hold({ key: 'k' })
      const given = transition(held, anew())
      const first = await send(given)
      assert.deepEqual(await send(given), first)
      assert.equal((await journal(held.runId)).length, 3)
      assert.equal((await run(held.runId)).base, 3)
    },
  },
  {
    name: 'a control request does not keep a run from beginning anew, and comes with the answer',
    async run({ clock, hold, control, commit }) {
      const held = await hold()
      controlled(await control(held.runId, ask.pause), 'requested')
      const answer = await commit(held, anew())
      assert.deepEqual([answer.released, answer.controlRequest], [false, ask.pauseControlRequest(clock.now())])
    },
  },
  {
    name: 'a run that would begin anew without an input is a defect',
    async run({ store, hold, transition, run }) {
      const held = await hold()
      const before = await run(held.runId)
      await assert.rejects(store.commit([transition(held, { continues: next })]), (error) =>
        isHoldfastError(error, 'BUG'),
      )
      assert.deepEqual(await run(held.runId), before)
    },
  },
]
