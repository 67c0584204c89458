// Children that are leased in the commit that starts them: a process with a free slot performs one without a claim.

import assert from 'node:assert/strict'
import { ids, succeeded } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import { expectSound, outbound } from '../exchanges.ts'
import { unheld, waitingRun } from '../unheld.ts'

export const leasedChildCases: readonly ContractCase[] = [
  {
    name: 'IF-C2 a child that is leased with its start is performed by that session, and no other can claim it',
    async run(bench) {
      const parent = await waitingRun(bench)
      await bench.beat('me')
      const lease = { session: 'me', token: 1 }
      const mine = bench.child(parent.id, { lease, leaseMs: 500 })
      const free = bench.child(parent.id)
      const given = unheld(bench, parent, { outbound: outbound({ starts: [mine, free] }) })
      const answer = succeeded(await bench.send(given))
      const row = await bench.run(mine.run.id)
      assert.deepEqual(answer.leased, [row])
      const { status, readiness, session, token, deadline, due, crashes } = row
      assert.deepEqual(
        { status, readiness, session, token, deadline, due, crashes },
        {
          status: 'running',
          readiness: 'leased',
          session: 'me',
          token: 1,
          deadline: bench.clock.now() + 500,
          due: null,
          crashes: 0,
        },
      )
      assert.deepEqual(ids((await bench.claim()).runs), [free.run.id])
      assert.deepEqual(await bench.send(given), answer, 'a repetition still finds the lease')
      await bench.commit({ runId: mine.run.id, lease, seq: 1 }, { append: [ending('succeeded')], status: 'succeeded' })
      assert.equal('leased' in succeeded(await bench.send(given)), false)
      await expectSound(bench)
    },
  },
  {
    name: 'a holder of a run gets the children that it asks for, too',
    async run(bench) {
      const parent = await bench.hold()
      const child = bench.child(parent.runId, { lease: { session: 'me', token: 1 } })
      const answer = await bench.park(parent, { append: [waiting()], outbound: outbound({ starts: [child] }) })
      assert.deepEqual(
        answer.leased?.map(({ id }) => id),
        [child.run.id],
      )
    },
  },
  {
    name: 'IF-C6 a session that has ended gets no child: anyone may claim it',
    async run(bench) {
      const parent = await waitingRun(bench)
      await bench.beat('dead')
      await bench.beat('dead', { end: true })
      const child = bench.child(parent.id, { lease: { session: 'dead', token: 1 } })
      const answer = succeeded(await bench.send(unheld(bench, parent, { outbound: outbound({ starts: [child] }) })))
      assert.equal('leased' in answer, false)
      const { status, token } = await bench.run(child.run.id)
      assert.deepEqual([status, token], ['pending', 0])
      assert.deepEqual(ids((await bench.claim()).runs), [child.run.id])
    },
  },
  {
    name: 'a child that cannot be started is leased to nobody',
    async run(bench) {
      const other = await bench.hold({ key: 'k' })
      const parent = await waitingRun(bench)
      const child = bench.child(parent.id, { key: 'k', lease: { session: 'me', token: 1 } })
      const answer = succeeded(await bench.send(unheld(bench, parent, { outbound: outbound({ starts: [child] }) })))
      assert.equal('leased' in answer, false)
      assert.equal((await bench.run(other.runId)).session, other.lease.session)
    },
  },
  {
    name: 'a first input that is decided leases its children, too',
    async run(bench) {
      const run = bench.newRun()
      const child = bench.child(run.id, { lease: { session: 'me', token: 1 } })
      const decided = unheld(bench, { id: run.id, seq: 1 }, { outbound: outbound({ starts: [child] }) })
      const first = await bench.store.start([{ ...run, decided }])
      assert.deepEqual(first[0]?.created === true ? first[0].leased : null, [await bench.run(child.run.id)])
      assert.deepEqual(await bench.store.start([{ ...run, decided }]), first)
    },
  },
]
