// Refused writers: a writer that is behind, one that lost the lease, and all but one of several that race.

import assert from 'node:assert/strict'
import type { Transition } from '../../../core/model/transition.ts'
import { atOnce, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, step } from '../drafts.ts'

/** Asserts that each of these is refused for that reason, as a checkpoint and as an end, and that nothing was written. */
async function expectRefused(
  { run, journal, transition, send }: ContractBench,
  held: Held,
  attempts: readonly Partial<Transition>[],
  reason: 'stale' | 'lease-lost',
): Promise<void> {
  const before = await run(held.runId)
  const entries = await journal(held.runId)
  for (const attempt of attempts) {
    const end = { append: [ending('failed')], status: 'failed' } as const
    const park = { append: [], status: 'waiting', parkIf: { inbox: before.inbox } } as const
    for (const kind of [{}, end, park]) {
      const answer = await send(transition(held, { ...attempt, ...kind }))
      assert.deepEqual(answer, { outcome: 'refused', reason })
    }
  }
  assert.deepEqual(await run(held.runId), before, 'the row is unchanged')
  assert.deepEqual(await journal(held.runId), entries, 'the journal is unchanged')
}

export const fenceCases: readonly ContractCase[] = [
  {
    name: 'a writer that is behind, or ahead of, the journal is refused as stale and writes nothing',
    async run(bench) {
      const held = await bench.hold()
      await bench.commit(held, { append: [step(), step()] })
      const { lease } = held
      const guards = [0, 1, 2, 4, 99].map((seq) => ({ guard: { seq, lease } }))
      await expectRefused(bench, held, guards, 'stale')
    },
  },
  {
    name: 'a wrong token or a wrong session writes nothing',
    async run(bench) {
      const { id } = await bench.start()
      await bench.store.release([{ runId: id, ...(await bench.take(id)).lease }])
      const held = await bench.take(id, 'me')
      const guard = (session: string, token: number) => ({ guard: { seq: 1, lease: { session, token } } })
      const attempts = [guard('me', 1), guard('me', 3), guard('you', 2), guard('', 2), guard('me', 0)]
      await expectRefused(bench, held, attempts, 'lease-lost')
      await bench.commit(held)
    },
  },
  {
    name: "a zombie's late write is refused when another has claimed the run",
    async run(bench) {
      const { id } = await bench.start()
      const zombie = await bench.take(id, 'zombie')
      await bench.store.release([{ runId: id, ...zombie.lease }])
      const holder = await bench.take(id, 'holder')
      await expectRefused(bench, zombie, [{}], 'lease-lost')
      await bench.commit(holder)
      await expectRefused(bench, zombie, [{}], 'lease-lost')
    },
  },
  {
    name: 'the same session claims again and its own old token is refused',
    async run(bench) {
      const { id } = await bench.start()
      const before = await bench.take(id, 'me')
      await bench.store.release([{ runId: id, ...before.lease }])
      const now = await bench.take(id, 'me')
      await expectRefused(bench, before, [{}], 'lease-lost')
      await bench.commit(now)
    },
  },
  {
    name: 'no transition is accepted for a run without a holder',
    async run(bench) {
      const { id } = await bench.start()
      const held = { runId: id, seq: 1, lease: { session: 'me', token: 0 } }
      const guards = [0, 1].map((token) => ({ guard: { seq: 1, lease: { session: 'me', token } } }))
      await expectRefused(bench, held, guards, 'lease-lost')
    },
  },
  {
    name: 'a write to a run that does not exist is refused and creates nothing',
    async run({ store, newRun, transition, send }) {
      const { id: runId } = newRun()
      const held = { runId, seq: 0, lease: { session: 'me', token: 1 } }
      assert.deepEqual(await send(transition(held)), { outcome: 'refused', reason: 'not-found' })
      assert.deepEqual(await store.get([runId]), [undefined])
    },
  },
  {
    name: 'of many writers at the same place of a journal exactly one appends',
    async run({ hold, transition, send, journal }) {
      const held = await hold()
      for (let round = 1; round <= 5; round += 1) {
        const rivals = Array.from({ length: 8 }, (_, index) =>
          transition(held, { append: [step(`${round}.${index}`)] }),
        )
        const answers = await atOnce(rivals.length, (index) => send(rivals[index] as Transition))
        const winners = rivals.filter((_, index) => answers[index]?.outcome === 'committed')
        assert.equal(winners.length, 1, `round ${round}: ${JSON.stringify(answers)}`)
        for (const answer of answers) if (answer.outcome === 'refused') assert.equal(answer.reason, 'stale')
        held.seq += 1
        const entries = await journal(held.runId)
        assert.equal(entries.length, held.seq)
        assert.equal(entries.at(-1)?.transition, winners[0]?.id)
      }
    },
  },
]
