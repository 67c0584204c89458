// A child ends, and the transition that ends it carries what its parent makes of that: the outcome and its acknowledgement are
// one commit. If the parent cannot take it so, the child ends all the same, and the parent gets the message of its end.

import assert from 'node:assert/strict'
import type { Transition } from '../../../core/model/transition.ts'
import type { Committed } from '../../../store.ts'
import { succeeded, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending } from '../drafts.ts'
import { expectAsleep, expectSound, expectWoken, messages, outbound } from '../exchanges.ts'
import * as ask from '../requests.ts'
import { event, decide, unheld, waitingRun } from '../unheld.ts'

interface Pair {
  readonly parentId: string
  readonly child: Held
}

/** A run that waits for its child, which the case holds. */
async function pairOf(bench: ContractBench, keys: { readonly key?: string } = {}): Promise<Pair> {
  const parent = await waitingRun(bench, keys)
  const lease = { session: bench.unique('performer'), token: 1 }
  const child = bench.child(parent.id, { lease }, { onParentEnd: 'abandon' })
  await decide(bench, parent.id, { outbound: outbound({ starts: [child] }) })
  return { parentId: parent.id, child: { runId: child.run.id, lease, seq: 1 } }
}

/** The end of the child that settles it. */
async function settling(
  bench: ContractBench,
  { parentId, child }: Pair,
  settles: Partial<Transition> = {},
  status: 'succeeded' | 'failed' = 'succeeded',
): Promise<Transition> {
  const companion = unheld(bench, await bench.run(parentId), { append: [event('Charged')], ...settles })
  return bench.transition(child, { append: [ending(status)], status, settles: companion })
}

function settledOf(answer: Committed): Committed | undefined {
  return succeeded(answer).settled
}

/** How a parent can be when its child ends, so that it does not take the outcome at once. */
const elsewhere: readonly {
  readonly name: string
  readonly bring: (bench: ContractBench, parentId: string) => Promise<unknown>
  readonly reason: 'held' | 'stale' | 'ended'
}[] = [
  {
    name: 'is drained by a worker',
    async bring(bench, parentId) {
      await bench.deliver(bench.message(parentId))
      await bench.take(parentId)
    },
    reason: 'held',
  },
  { name: 'is paused', bring: (bench, parentId) => bench.control(parentId, ask.pause), reason: 'held' },
  { name: 'has decided something else', bring: (bench, parentId) => decide(bench, parentId), reason: 'stale' },
  {
    name: 'is over',
    bring: (bench, parentId) => decide(bench, parentId, { append: [ending('succeeded')], status: 'succeeded' }),
    reason: 'ended',
  },
]

const refusedElsewhere = elsewhere.map(({ name, bring, reason }): ContractCase => ({
  name: `IF-C4 a child ends whose parent ${name}: what it settles is refused as ${reason}, and the end is a message`,
  async run(bench) {
    const pair = await pairOf(bench)
    const given = await settling(bench, pair)
    await bring(bench, pair.parentId)
    const before = [await bench.run(pair.parentId), await bench.journal(pair.parentId)] as const
    const answer = await bench.send(given)
    assert.deepEqual(settledOf(answer), { outcome: 'refused', reason })
    assert.equal((await bench.run(pair.child.runId)).status, 'succeeded')
    assert.deepEqual(await bench.journal(pair.parentId), before[1])
    const said = (await messages(bench, pair.parentId)).filter(([kind]) => kind === 'ended')
    assert.deepEqual(
      said.map(([, from]) => from),
      reason === 'ended' ? [] : [pair.child.runId],
    )
    if (reason === 'stale') await expectWoken(bench, pair.parentId, 1)
    const row = await bench.run(pair.parentId)
    assert.deepEqual(settledOf(await bench.send(given))?.outcome, 'refused', 'a repetition does not take it back')
    assert.deepEqual(await bench.run(pair.parentId), row)
    await expectSound(bench)
  },
}))

export const settleCases: readonly ContractCase[] = [
  ...refusedElsewhere,
  ...(['succeeded', 'failed'] as const).map((status): ContractCase => ({
    name: `IF-E2 IF-C4 a child that ${status} and what its parent makes of that are one commit, and no message is left`,
    async run(bench) {
      const pair = await pairOf(bench)
      const before = await bench.run(pair.parentId)
      await bench.clock.advance(3)
      const given = await settling(bench, pair, {}, status)
      const answer = succeeded(await bench.send(given))
      const at = bench.clock.now()
      const settled = { outcome: 'committed', seq: before.seq + 1, at, inbox: 0, released: true, controlRequest: null }
      assert.deepEqual(answer, { ...settled, seq: 2, settled })
      assert.equal((await bench.run(pair.child.runId)).status, status)
      assert.deepEqual((await bench.run(pair.parentId)).seq, before.seq + 1)
      await expectAsleep(bench, pair.parentId)
      assert.deepEqual((await bench.journal(pair.parentId)).at(-1)?.name, 'Charged')
      await bench.clock.advance(3)
      assert.deepEqual(await bench.send(given), answer, 'a repetition after a lost answer')
      await expectAsleep(bench, pair.parentId)
      await bench.chores()
      await expectSound(bench)
    },
  })),
  {
    name: 'IF-C6 a child whose lease was lost settles nothing',
    async run(bench) {
      const pair = await pairOf(bench)
      const given = await settling(bench, pair)
      await bench.store.release([{ runId: pair.child.runId, ...pair.child.lease }])
      await bench.take(pair.child.runId)
      const before = [await bench.run(pair.parentId), await bench.run(pair.child.runId)]
      assert.deepEqual(await bench.send(given), { outcome: 'refused', reason: 'lease-lost' })
      assert.deepEqual([await bench.run(pair.parentId), await bench.run(pair.child.runId)], before)
      assert.equal(
        (await bench.journal(pair.parentId)).some(({ name }) => name === 'Charged'),
        false,
      )
    },
  },
  {
    name: 'a child that is being cancelled settles nothing, and its parent hears of its end later',
    async run(bench) {
      const pair = await pairOf(bench)
      const given = await settling(bench, pair)
      await bench.control(pair.child.runId, ask.cancel)
      const answer = await bench.send(given)
      assert.equal(answer.outcome === 'refused' && answer.reason, 'cancelling')
      await bench.commit(pair.child, { append: [ending('cancelled')], status: 'cancelled' })
      await expectWoken(bench, pair.parentId, 1)
    },
  },
  {
    name: 'what a child settles may start the next child, leased to the same process, and set a time',
    async run(bench) {
      const pair = await pairOf(bench)
      const lease = { session: 'me', token: 1 }
      const next = bench.child(pair.parentId, { lease })
      const due = { at: null, afterMs: 40 }
      const given = await settling(bench, pair, { due, outbound: outbound({ starts: [next] }) })
      const answer = await bench.send(given)
      const settled = succeeded(settledOf(answer))
      assert.deepEqual(settled.leased, [await bench.run(next.run.id)])
      assert.deepEqual((await bench.run(pair.parentId)).due, bench.clock.now() + 40)
      assert.deepEqual(await bench.send(given), answer)
      await bench.commit({ runId: next.run.id, lease, seq: 1 }, { append: [ending('succeeded')], status: 'succeeded' })
      await expectWoken(bench, pair.parentId, 1)
      await expectSound(bench)
    },
  },
  {
    name: 'IF-U3 what a child settles may end its parent',
    async run(bench) {
      const pair = await pairOf(bench, { key: 'k' })
      const over = { append: [event(), ending('succeeded')], status: 'succeeded' } as const
      const given = await settling(bench, pair, over)
      const answer = await bench.send(given)
      assert.equal(settledOf(answer)?.outcome, 'committed')
      assert.equal((await bench.run(pair.parentId)).status, 'succeeded')
      assert.deepEqual(await bench.mailbox(pair.parentId), [])
      assert.deepEqual(await bench.send(given), answer)
      await bench.start({ key: 'k' })
      await bench.chores()
      await expectSound(bench)
    },
  },
  {
    name: 'a message that has woken the parent is not forgotten when its child settles',
    async run(bench) {
      const pair = await pairOf(bench)
      await bench.deliver(bench.message(pair.parentId))
      const given = await settling(bench, pair)
      assert.equal(settledOf(await bench.send(given))?.outcome, 'committed')
      await expectWoken(bench, pair.parentId, 1)
    },
  },
  {
    name: 'of two children that settle behind one entry at once, one is a message, and neither is lost',
    async run(bench) {
      for (let round = 0; round < 6; round += 1) {
        const parent = await waitingRun(bench)
        const lease = { session: bench.unique('performer'), token: 1 }
        const children = [bench.child(parent.id, { lease }), bench.child(parent.id, { lease })]
        await decide(bench, parent.id, { outbound: outbound({ starts: children }) })
        const ends: Transition[] = []
        for (const { run } of children) {
          ends.push(await settling(bench, { parentId: parent.id, child: { runId: run.id, lease, seq: 1 } }))
        }
        const answers =
          round % 2 === 0 ? await bench.store.commit(ends) : await Promise.all(ends.map((end) => bench.send(end)))
        const outcomes = answers.map((answer) => settledOf(answer)?.outcome)
        // If both rows were locked at the same time, neither is settled at once.
        await bench.chores()
        const settled = outcomes.filter((outcome) => outcome === 'committed').length
        const { inbox } = await bench.run(parent.id)
        assert.equal(settled + inbox, 2)
        assert.ok(settled <= 1)
        await bench.claim()
      }
    },
  },
  {
    name: 'a defect of what is settled rejects the call',
    async run(bench) {
      const pair = await pairOf(bench)
      const stranger = await waitingRun(bench)
      const wrong = unheld(bench, stranger)
      const over = { append: [ending('succeeded')], status: 'succeeded' } as const
      const defects = [
        { ...over, settles: wrong },
        { settles: unheld(bench, { id: pair.parentId, seq: 3 }) },
        { ...over, settles: { ...wrong, runId: pair.parentId, guard: { seq: 3, lease: pair.child.lease } } },
      ]
      const before = [await bench.run(pair.parentId), await bench.run(pair.child.runId)]
      for (const defect of defects) {
        await assert.rejects(bench.store.commit([bench.transition(pair.child, defect)]), { code: 'BUG' })
      }
      assert.deepEqual([await bench.run(pair.parentId), await bench.run(pair.child.runId)], before)
    },
  },
]
