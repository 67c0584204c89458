// Transactions of users: their calls take effect if and only if the transaction commits.

import assert from 'node:assert/strict'
import type { Store, StoreTransactions, TransactionStore } from '../../../store.ts'
import { prices } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { step } from '../drafts.ts'
import { endOf, expectAsleep, expectWoken, on, parkWatching, outbound } from '../exchanges.ts'

/** The error with which a case rolls a transaction back. */
const enough = new Error('The case rolls back')

/** A store that declares the capability has them. */
function transactionsOf(store: Store): StoreTransactions {
  return store as Store & StoreTransactions
}

const wantsRollback = (error: unknown): boolean => error === enough

export const userTransactionCases: readonly ContractCase[] = [
  {
    name: 'what takes place in a transaction has happened when it is committed',
    needs: 'transactions',
    async run({ store, hold, newRun, message, transition, run, journal, mailbox, start }) {
      const users = transactionsOf(store)
      const held = await hold()
      const other = await start()
      const fresh = newRun({ key: 'within' })
      const answers = await users.transact(async (_handle, within) => {
        const [started] = await within.start([fresh])
        const [committed] = await within.commit([transition(held, { append: [step('one')] })])
        const [delivered] = await within.deliver([message(other.id)])
        const [controlled] = await within.control([{ id: 'control', runId: other.id, kind: 'remove', reason: null }])
        return { started, committed, delivered, controlled }
      })
      assert.equal(answers.started?.created, true)
      assert.equal(answers.committed?.outcome, 'committed')
      assert.deepEqual(answers.delivered, { outcome: 'queued' })
      assert.equal(answers.controlled?.outcome, 'done')
      assert.equal((await run(fresh.id)).status, 'pending')
      assert.equal((await journal(held.runId)).length, 2)
      assert.equal((await mailbox(other.id)).length, 1)
      assert.notEqual((await run(other.id)).deletedAt, null)
    },
  },
  {
    name: 'what takes place in a transaction that is rolled back has never happened',
    needs: 'transactions',
    async run({ store, hold, newRun, message, transition, run, journal, mailbox, start, commit }) {
      const users = transactionsOf(store)
      const held = await hold()
      const other = await start()
      const before = await run(other.id)
      const fresh = newRun({ key: 'within', idempotencyKey: 'once' })
      await assert.rejects(
        users.transact(async (_handle, within) => {
          await within.start([fresh])
          await within.commit([transition(held, { append: [step('one')] })])
          await within.deliver([message(other.id)])
          await within.control([{ id: 'control', runId: other.id, kind: 'cancel', mode: 'now', reason: null }])
          throw enough
        }),
        wantsRollback,
      )
      assert.deepEqual(await store.get([fresh.id]), [undefined])
      assert.equal((await journal(held.runId)).length, 1)
      assert.deepEqual(await mailbox(other.id), [])
      assert.deepEqual(await run(other.id), before)
      // Neither its keys nor its place in the journal are taken.
      const [again] = await store.start([newRun({ key: 'within', idempotencyKey: 'once' })])
      assert.equal(again?.created, true)
      assert.equal((await commit(held)).seq, 2)
    },
  },
  {
    name: 'a transaction sees what took place in it, and a refusal leaves it usable',
    needs: 'transactions',
    async run({ store, newRun, start }) {
      const users = transactionsOf(store)
      const taken = await start({ key: 'taken' })
      const fresh = newRun()
      await users.transact(async (_handle, within) => {
        const [refused] = await within.start([newRun({ key: 'taken' })])
        assert.deepEqual([refused?.created, refused?.taken, refused?.run.id], [false, 'key', taken.id])
        await within.start([fresh])
        const [repeated] = await within.start([fresh])
        assert.equal(repeated?.created, true)
        const [loaded] = await within.load([{ runId: fresh.id, after: 0, limit: 10 }])
        assert.equal(loaded?.entries.length, 1)
        const [unknown] = await within.control([
          { id: 'control', runId: newRun().id, kind: 'cancel', mode: 'now', reason: null },
        ])
        assert.deepEqual(unknown, { outcome: 'not-found' })
      })
      const [run] = await store.get([fresh.id])
      assert.equal(run?.id, fresh.id)
    },
  },
  {
    name: 'a transaction whose signal is aborted is rolled back at once, though its function never returns',
    needs: 'transactions',
    async run({ store, newRun, start }) {
      const users = transactionsOf(store)
      const stopping = new AbortController()
      const fresh = newRun({ key: 'within' })
      let late: TransactionStore | undefined
      const hanging = users.transact(
        async (_handle, within) => {
          late = within
          await within.start([fresh])
          stopping.abort(enough)
          return new Promise<never>(() => undefined)
        },
        { signal: stopping.signal },
      )
      await assert.rejects(hanging, wantsRollback)
      assert.deepEqual(await store.get([fresh.id]), [undefined])
      // Later calls of the function are refused, also while another transaction is open.
      const [after, beside] = [newRun(), newRun()]
      await assert.rejects(async () => late?.start([after]))
      await users.transact(async (_handle, within) => {
        await within.start([beside])
        await assert.rejects(async () => late?.start([after]))
      })
      const rows = await store.get([after.id, beside.id])
      assert.deepEqual(
        rows.map((row) => row?.id),
        [undefined, beside.id],
      )
      // Its locks are gone with it.
      await start({ key: 'within' })
    },
  },
  {
    name: 'a transaction whose signal was aborted before it began never begins',
    needs: 'transactions',
    async run({ store }) {
      let calls = 0
      const work = async (): Promise<void> => void (calls += 1)
      const options = { signal: AbortSignal.abort(enough) }
      await assert.rejects(transactionsOf(store).transact(work, options), wantsRollback)
      assert.equal(calls, 0)
    },
  },
  {
    name: 'a transaction whose signal is aborted as it begins comes to its end, and delays no other call',
    needs: 'transactions',
    async run({ store, start }) {
      const stopping = new AbortController()
      const begun = transactionsOf(store).transact(() => new Promise<never>(() => undefined), {
        signal: stopping.signal,
      })
      stopping.abort(enough)
      await assert.rejects(begun, wantsRollback)
      await start()
    },
  },
  {
    name: 'a holder that lost its run commits nothing in a transaction either',
    needs: 'transactions',
    async run({ store, hold, transition, journal }) {
      const users = transactionsOf(store)
      const held = await hold()
      const thief = { ...held, lease: { session: 'thief', token: 7 } }
      const answers = await users.transact(async (_handle, within) => [
        ...(await within.commit([transition(thief)])),
        ...(await within.commit([transition({ ...held, seq: 5 })])),
      ])
      assert.deepEqual(answers, [
        { outcome: 'refused', reason: 'lease-lost' },
        { outcome: 'refused', reason: 'stale' },
      ])
      assert.equal((await journal(held.runId)).length, 1)
    },
  },
  {
    name: 'many transactions, and everything beside them, come to their end',
    needs: 'transactions',
    async run({ store, newRun, claim }) {
      const users = transactionsOf(store)
      const inside = Array.from({ length: 5 }, () => newRun())
      const beside = Array.from({ length: 5 }, () => newRun())
      await Promise.all([
        ...inside.map((run, index) =>
          users
            .transact(async (_handle, within) => {
              await within.start([run])
              if (index % 2 === 1) throw enough
            })
            .catch((error: unknown) => assert.equal(error, enough)),
        ),
        ...beside.map((run) => store.start([run])),
      ])
      const { runs } = await claim()
      const expected = [...inside.filter((_run, index) => index % 2 === 0), ...beside].map(({ id }) => id)
      assert.deepEqual(runs.map(({ id }) => id).sort(), expected.sort())
    },
  },
  {
    name: 'what runs send one another in a transaction has happened if it is committed, and never if it is rolled back',
    needs: 'transactions',
    async run(bench) {
      const { store, transition, broadcast, run } = bench
      const users = transactionsOf(store)
      const target = await bench.hold()
      const watcher = await parkWatching(bench, [endOf(target.runId)])
      const subscriber = await parkWatching(bench, [on(prices)])
      const child = bench.child(target.runId, { key: 'within' })
      const fresh = bench.newRun()
      const work = async (within: TransactionStore): Promise<void> => {
        await within.start([{ ...fresh, messages: [bench.message(fresh.id)] }])
        await within.commit([transition(target, { append: [step('one')], outbound: outbound({ starts: [child] }) })])
        await within.deliver([broadcast({ id: 'b' })])
        await within.control([{ id: 'control', runId: target.runId, kind: 'cancel', mode: 'now', reason: null }])
      }
      const rolledBack = users.transact(async (_handle, within) => {
        await work(within)
        throw enough
      })
      await assert.rejects(rolledBack, wantsRollback)
      assert.deepEqual(await store.get([fresh.id, child.run.id]), [undefined, undefined])
      for (const { runId } of [watcher, subscriber]) await expectAsleep(bench, runId)
      assert.equal((await run(target.runId)).status, 'running')
      await users.transact((_handle, within) => work(within))
      for (const { runId } of [watcher, subscriber]) await expectWoken(bench, runId, 1)
      const [started, born] = await store.get([fresh.id, child.run.id])
      assert.deepEqual([started?.inbox, born?.status], [1, 'cancelling'])
    },
  },
  {
    name: 'a transaction may be serializable, and is committed like any other',
    needs: 'transactions',
    async run({ store, hold, transition, journal }) {
      const held = await hold()
      const [answer] = await transactionsOf(store).transact(
        (_handle, within) => within.commit([transition(held, { append: [step('one')] })]),
        { isolation: 'serializable' },
      )
      assert.equal(answer?.outcome, 'committed')
      assert.equal((await journal(held.runId)).length, 2)
    },
  },
]
