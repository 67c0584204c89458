// Runs that were written with a key: a worker without it does not get them, and `rewritePayloads` moves them to another key.

import assert from 'node:assert/strict'
import { ids, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, step, waiting } from '../drafts.ts'

/** The runs that a claim with these keys takes; they are given back. */
async function claimedWith({ claim, store }: ContractBench, keys: readonly string[]): Promise<readonly string[]> {
  const { runs } = await claim({ keys })
  await store.release(runs.map(({ id, token }) => ({ runId: id, session: 'claimer', token })))
  return ids(runs)
}

export const payloadKeyCases: readonly ContractCase[] = [
  {
    name: 'a claim that names keys passes over runs of other keys, and does not learn that there are more',
    near: true,
    async run({ start, claim, run, assertMore }) {
      const old = await start({ keyId: 'old' })
      const plain = await start()
      const fresh = await start({ keyId: 'new' })
      assert.deepEqual([old.keyId, plain.keyId, fresh.keyId], ['old', null, 'new'])
      const first = await claim({ keys: ['new', 'other'], limit: 2 })
      assert.deepEqual(ids(first.runs), ids([plain, fresh]))
      assertMore(first.more, false)
      assert.deepEqual(await run(old.id), old, 'what is passed over is left as it was')
      const none = await claim({ keys: [] })
      assert.deepEqual([none.runs, none.more], [[], false])
      assert.deepEqual(ids((await claim()).runs), [old.id], 'who names no keys may have any')
    },
  },
  {
    name: 'many runs of a key that a worker lacks do not delay the runs behind them',
    near: true,
    async run({ store, newRun, start, claim, assertMore }) {
      await store.start(Array.from({ length: 150 }, () => newRun({ keyId: 'old', priority: 5 })))
      const first = await start({ keyId: 'new' })
      const second = await start({ keyId: 'new' })
      const one = await claim({ keys: ['new'], limit: 1 })
      assert.deepEqual([ids(one.runs), one.more], [[first.id], true])
      const next = await claim({ keys: ['new'], limit: 1 })
      assert.deepEqual(ids(next.runs), [second.id])
      assertMore(next.more, false)
      assert.equal((await claim({ keys: ['new', 'old'], limit: 200 })).runs.length, 150)
    },
  },
  {
    name: 'a holder that writes with another key leaves its run to those who have that',
    async run(bench) {
      const { hold, commit, park, run, store, clock } = bench
      const held = await hold({ keyId: 'old' })
      await commit(held, { append: [step()] })
      assert.equal((await run(held.runId)).keyId, 'old', 'it stays as it is unless a transition says otherwise')
      await commit(held, { append: [step('pay')], keyId: 'new' })
      assert.equal((await run(held.runId)).keyId, 'new')
      await park(held, { append: [waiting()], due: { at: null, afterMs: 10 } })
      await clock.advance(10)
      assert.deepEqual(await claimedWith(bench, ['old']), [])
      assert.deepEqual(await claimedWith(bench, ['new']), [held.runId])
      // A transition with a status may set the key, too.
      const other = await hold()
      await commit(other, { append: [ending('succeeded')], status: 'succeeded', keyId: 'new' })
      const [over] = await store.get([other.runId])
      assert.deepEqual([over?.keyId, over?.status], ['new', 'succeeded'])
    },
  },
  {
    name: 'a run keeps its key when it is controlled, taken over and begins anew',
    async run(bench) {
      const { hold, commit, run, control, selector } = bench
      const held = await hold({ keyId: 'old' })
      const anew = { kind: 'continued', name: null, meta: { ...selector }, data: '{}' } as const
      await commit(held, { append: [anew], continues: { ...selector, feed: false }, keyId: 'new' })
      assert.equal((await run(held.runId)).keyId, 'new')
      await commit(held, { append: [step()], status: 'pending' })
      await control(held.runId, { kind: 'pause', reason: 'operator', note: null })
      await control(held.runId, { kind: 'resume', note: null, amend: [], seq: null })
      assert.equal((await run(held.runId)).keyId, 'new')
      assert.deepEqual(await claimedWith(bench, ['old']), [])
      assert.deepEqual(await claimedWith(bench, ['new']), [held.runId])
      assert.equal((await run(held.runId)).keyId, 'new')
    },
  },
  {
    name: 'a suspect of another key is not handed out apart',
    async run({ start, claim, take, beat, rescue, unique, store, selector }) {
      const { id } = await start({ keyId: 'old' })
      for (let times = 0; times < 2; times += 1) {
        const session = unique('victim')
        await beat(session)
        await take(id, session)
        await beat(session, { end: true })
        await rescue()
      }
      const request = { session: 'claimer', selectors: [selector], limit: 1, isolated: true }
      const without = await store.claim({ ...request, keys: ['new'] })
      assert.deepEqual([without.runs, without.more], [[], false])
      assert.deepEqual(ids((await store.claim({ ...request, keys: ['old'] })).runs), [id])
      assert.deepEqual((await claim()).runs, [])
    },
  },
  {
    name: 'a worker that lacks keys learns which live runs need them, and of no others',
    async run({ start, hold, commit, control, store }) {
      await start()
      await start({ keyId: 'new' })
      for (let made = 0; made < 3; made += 1) await start({ keyId: 'old' })
      await hold({ keyId: 'older' })
      const over = await hold({ keyId: 'old' })
      await commit(over, { append: [ending('failed')], status: 'failed' })
      const removed = await start({ keyId: 'gone' })
      await control(removed.id, { kind: 'remove', reason: null })
      const others = [
        { key: 'old', runs: 3 },
        { key: 'older', runs: 1 },
      ]
      assert.deepEqual(await store.otherKeys(['new'], 100), others)
      assert.deepEqual(await store.otherKeys([], 100), [{ key: 'new', runs: 1 }, ...others])
      assert.deepEqual(await store.otherKeys(['new', 'old', 'older'], 100), [])
      const capped = await store.otherKeys(['new'], 2)
      assert.equal(
        capped.reduce((sum, { runs }) => sum + runs, 0),
        2,
      )
    },
  },
  {
    name: 'payloads that are written anew stand where they stood, and everything around them is as it was',
    async run({ hold, commit, park, journal, mailbox, run, deliver, message, store }) {
      const held = await hold({ keyId: 'old' })
      await commit(held, { append: [step('a', 'old 2'), step('b', 'old 3')] })
      await park(held, { append: [waiting()] })
      await deliver(message(held.runId, { id: 'm', name: 'later', data: 'old m' }))
      const [row, entries, messages] = [await run(held.runId), await journal(held.runId), await mailbox(held.runId)]
      const request = {
        runId: held.runId,
        seq: row.seq,
        keyId: 'new',
        // Nothing is written for a wait, which has no payload, and for an entry that does not exist.
        entries: [2, 4, 9].map((seq) => ({ seq, data: `new ${seq}` })),
        messages: ['m', 'nobody'].map((id) => ({ id, data: `new ${id}` })),
      }
      assert.equal(await store.rewritePayloads(request), 'written')
      assert.deepEqual(await run(held.runId), { ...row, keyId: 'new' })
      assert.deepEqual(
        await journal(held.runId),
        entries.map((entry) => (entry.seq === 2 ? { ...entry, data: 'new 2' } : entry)),
      )
      assert.deepEqual(
        await mailbox(held.runId),
        messages.map((one) => ({ ...one, data: 'new m' })),
      )
      assert.equal(await store.rewritePayloads(request), 'written', 'and may be written again')
    },
  },
  {
    name: 'payloads of a held run, or of one whose journal has moved on, are not rewritten',
    async run({ hold, commit, journal, run, store, newRun }) {
      const held = await hold({ keyId: 'old' })
      const rewrite = (seq: number, runId = held.runId) =>
        store.rewritePayloads({ runId, seq, keyId: 'new', entries: [{ seq: 1, data: 'stolen' }], messages: [] })
      assert.equal(await rewrite(1), 'held')
      await commit(held, { append: [step()], status: 'pending' })
      const before = [await run(held.runId), await journal(held.runId)]
      assert.equal(await rewrite(1), 'changed')
      assert.equal(await rewrite(2, newRun().id), 'not-found')
      assert.deepEqual([await run(held.runId), await journal(held.runId)], before)
    },
  },
]
