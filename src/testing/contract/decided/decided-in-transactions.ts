// Inputs that are decided in a user's transaction: they are decided if it commits, and nothing of them ever happened if not.
// Nothing is leased there.

import assert from 'node:assert/strict'
import type { Store, StoreTransactions } from '../../../store.ts'
import { succeeded, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending } from '../drafts.ts'
import { expectAsleep, expectSound, expectWoken, outbound } from '../exchanges.ts'
import { decide, decidedRun, event, unheld, waitingRun } from '../unheld.ts'

const enough = new Error('The case rolls back')

/** A store that declares the capability has them. */
function transactionsOf(store: Store): StoreTransactions {
  return store as Store & StoreTransactions
}

/** Decides in one transaction of a user all that can be: a first input, a further one, and what an effect settles. */
async function decideAll(bench: ContractBench, isKept: boolean) {
  const store = transactionsOf(bench.store)
  const waits = await waitingRun(bench)
  const instance = await waitingRun(bench)
  const lease = { session: 'performer', token: 1 }
  const effect = bench.child(instance.id, { lease })
  await decide(bench, instance.id, { outbound: outbound({ starts: [effect] }) })
  const first = decidedRun(bench, { append: [event(), ending('succeeded')], status: 'succeeded' }, { key: 'k' })
  const run = bench.newRun()
  const child = bench.child(run.id, { lease })
  const starting = {
    ...run,
    decided: unheld(bench, { id: run.id, seq: 1 }, { outbound: outbound({ starts: [child] }) }),
  }
  const settles = unheld(bench, await bench.run(instance.id), { append: [event('Charged')] })
  const over = { append: [ending('succeeded')], status: 'succeeded', settles } as const
  const end = bench.transition({ runId: effect.run.id, lease, seq: 1 }, over)
  const work = store.transact(async (_handle, within) => {
    const [one, other] = await within.start([first, starting])
    const [decided] = await within.commit([unheld(bench, waits)])
    const [settled] = await within.commit([end])
    const [stale] = await within.commit([unheld(bench, waits)])
    assert.deepEqual([one?.created, other?.created, other && 'leased' in other], [true, true, false])
    assert.deepEqual(stale, { outcome: 'refused', reason: 'stale' }, 'it sees what took place in it')
    succeeded(decided)
    assert.equal(succeeded(settled).settled?.outcome, 'committed')
    if (!isKept) throw enough
  })
  await (isKept ? work : assert.rejects(work, (error: unknown) => error === enough))
  return { waits, instance, effect: effect.run.id, first: first.id, starting: starting.id, child: child.run.id }
}

export const decidedInTransactionCases: readonly ContractCase[] = [
  {
    name: 'IF-E2 inputs that are decided in a transaction are decided when it is committed, and nothing is leased there',
    needs: 'transactions',
    async run(bench) {
      const { waits, instance, effect, first, starting, child } = await decideAll(bench, true)
      const rows = await bench.store.get([waits.id, instance.id, effect, first, starting, child])
      assert.deepEqual(
        rows.map((row) => [row?.status, row?.seq, row?.session]),
        [
          ['waiting', waits.seq + 1, null],
          ['waiting', instance.seq + 2, null],
          ['succeeded', 2, null],
          ['succeeded', 3, null],
          ['waiting', 2, null],
          ['pending', 1, null],
        ],
      )
      await expectAsleep(bench, instance.id)
      await bench.start({ key: 'k' })
      await expectSound(bench)
    },
  },
  {
    name: 'IF-E2 inputs that are decided in a transaction that is rolled back were never decided',
    needs: 'transactions',
    async run(bench) {
      const { waits, instance, effect, first, starting, child } = await decideAll(bench, false)
      const rows = await bench.store.get([waits.id, instance.id, effect, first, starting, child])
      assert.deepEqual(
        rows.map((row) => [row?.status, row?.seq]),
        [
          ['waiting', waits.seq],
          ['waiting', instance.seq + 1],
          ['running', 1],
          [undefined, undefined],
          [undefined, undefined],
          [undefined, undefined],
        ],
      )
      const lease = { session: 'performer', token: 1 }
      await bench.commit({ runId: effect, lease, seq: 1 }, { append: [ending('failed')], status: 'failed' })
      await expectWoken(bench, instance.id, 1)
      await bench.start({ key: 'k' })
      await expectSound(bench)
    },
  },
]
