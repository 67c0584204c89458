// A claim of one run: a process drains the mailbox of an instance that nobody holds, and takes nothing else.

import assert from 'node:assert/strict'
import { atOnce, ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { inMs } from '../drafts.ts'
import { waitingRun } from '../unheld.ts'

export const namedClaimCases: readonly ContractCase[] = [
  {
    name: 'a claim that names a run leases that one, whatever goes before it, and says nothing of others',
    async run(bench) {
      const first = await bench.start({ priority: 9 })
      const named = await bench.start()
      await bench.start({ due: inMs(50) })
      const claimed = await bench.claim({ session: 'me', runId: named.id })
      const row = await bench.run(named.id)
      assert.deepEqual([claimed.runs, claimed.more, claimed.nextDue], [[row], false, null])
      const { status, session, token, crashes, readiness, due } = row
      assert.deepEqual([status, session, token, crashes, readiness, due], ['running', 'me', 1, 1, 'leased', null])
      assert.deepEqual((await bench.claim({ runId: named.id })).runs, [], 'another session has it')
      assert.deepEqual(ids((await bench.claim()).runs), [first.id])
    },
  },
  {
    name: 'IF-C1 a claim that names a run that a message has woken gets it, and one whose time has come',
    async run(bench) {
      const woken = await waitingRun(bench)
      assert.deepEqual((await bench.claim({ runId: woken.id })).runs, [], 'it waits')
      await bench.deliver(bench.message(woken.id))
      assert.deepEqual(ids((await bench.claim({ runId: woken.id })).runs), [woken.id])
      const timed = await bench.start({ due: inMs(50) })
      assert.deepEqual((await bench.claim({ runId: timed.id })).runs, [], 'it is too early')
      await bench.clock.advance(50)
      assert.deepEqual(ids((await bench.claim({ runId: timed.id })).runs), [timed.id])
    },
  },
  {
    name: 'a claim that names a run gets only what it could get without the name',
    async run(bench) {
      const { id } = await bench.start({ keyId: 'k1' })
      await bench.beat('dead')
      await bench.beat('dead', { end: true })
      const other = { type: 'contract.other', version: 1 }
      const inVain = [
        { session: 'dead' },
        { limit: 0 },
        { selectors: [other] },
        { selectors: [{ ...bench.selector, version: 2 }] },
        { keys: ['k2'] },
        { runId: bench.newRun().id },
      ]
      for (const request of inVain) assert.deepEqual((await bench.claim({ runId: id, ...request })).runs, [])
      const over = await bench.start({ expiresInMs: 10 })
      await bench.clock.advance(10)
      assert.deepEqual((await bench.claim({ runId: over.id })).runs, [])
      const leaseMs = 70
      const [run] = (await bench.claim({ runId: id, keys: ['k1'], selectors: [{ ...bench.selector, leaseMs }] })).runs
      assert.equal(run?.deadline, bench.clock.now() + leaseMs)
    },
  },
  {
    name: 'IF-C2 of many that claim one run by its name at once, one gets it',
    async run(bench) {
      const { id } = await bench.start()
      const claims = await atOnce(8, (index) => bench.claim({ session: `s${index}`, runId: id }))
      assert.deepEqual(
        claims.flatMap(({ runs }) => ids(runs)),
        [id],
      )
      assert.equal((await bench.run(id)).token, 1)
    },
  },
]
