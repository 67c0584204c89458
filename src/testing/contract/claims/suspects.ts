// Suspects: a run that was claimed twice without a commit is performed in isolation, and only crashes there count against
// it.

import assert from 'node:assert/strict'
import type { Run } from '../../../core/model/run.ts'
import { draftOf, failures, ids, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import * as ask from '../requests.ts'
import { expectControlRefused, controlled } from '../requests.ts'

/** Leases a suspect in isolation. */
async function takeIsolated({ beat, store, selector }: ContractBench, session: string): Promise<Run> {
  await beat(session)
  const { runs } = await store.claim({ session, selectors: [selector], limit: 1, isolated: true })
  assert.ok(runs[0], 'there is a suspect')
  return runs[0]
}

/** The mark that a suspect begins. */
function begin(
  { beat }: ContractBench,
  session: string,
  { id, token, crashes }: Run,
): ReturnType<ContractBench['beat']> {
  return beat(session, { held: [{ runId: id, token, extendMs: null, begun: crashes + 1 }] })
}

/** A run whose first two holders died. */
async function suspect(bench: ContractBench, changes: Parameters<ContractBench['start']>[0] = {}): Promise<Run> {
  const { id } = await bench.start(changes)
  await die(bench, id)
  await die(bench, id)
  return bench.run(id)
}

async function die(bench: ContractBench, id: string): Promise<void> {
  const session = bench.unique('victim')
  await bench.beat(session)
  await bench.take(id, session)
  await bench.beat(session, { end: true })
  await bench.rescue()
}

/** Claims a suspect in isolation, begins it and dies. */
async function dieIsolated(
  bench: ContractBench,
  rules: Parameters<ContractBench['rescue']>[0] = {},
): Promise<Awaited<ReturnType<ContractBench['rescue']>>> {
  const session = bench.unique('victim')
  await begin(bench, session, await takeIsolated(bench, session))
  await bench.beat(session, { end: true })
  return bench.rescue(rules)
}

export const suspectCases: readonly ContractCase[] = [
  {
    name: 'a run whose two holders died is claimed only in isolation, and a rescue reports it',
    async run(bench) {
      const { clock, start, claim, rescue, run, store, selector } = bench
      const { id } = await suspect(bench)
      const { status, readiness, crashes, due, session } = await run(id)
      assert.deepEqual([status, readiness, crashes, due, session], ['pending', 'isolated', 2, clock.now(), null])
      assert.equal((await rescue()).suspects, clock.now())
      const innocent = await start()
      const ordinary = await claim()
      assert.deepEqual([ids(ordinary.runs), ordinary.more, ordinary.nextDue], [[innocent.id], false, null])
      const none = { session: 'me', selectors: [selector], limit: 0, isolated: true }
      assert.deepEqual(await store.claim(none), { runs: [], more: true, nextDue: null, now: clock.now() })
      const other = { session: 'me', selectors: [{ type: 'other', version: 1 }], limit: 1, isolated: true }
      assert.deepEqual(await store.claim(other), { runs: [], more: false, nextDue: null, now: clock.now() })
      const taken = await takeIsolated(bench, 'me')
      assert.deepEqual([taken.id, taken.status, taken.readiness, taken.token], [id, 'running', 'leased', 3])
      assert.deepEqual(await run(id), taken)
      assert.equal((await rescue()).suspects, null)
    },
  },
  {
    name: 'a process that dies between the claim of a suspect and its beginning counts for nothing',
    async run(bench) {
      const { id } = await suspect(bench)
      for (const round of [1, 2, 3, 4]) {
        const session = `early-${round}`
        assert.equal((await takeIsolated(bench, session)).crashes, 2)
        await bench.beat(session, { end: true })
        const { takenOver, paused } = await bench.rescue({ maxCrashes: 3 })
        assert.deepEqual([takenOver.map(({ crashes }) => crashes), paused], [[2], []])
      }
      const { readiness, due, crashes } = await bench.run(id)
      assert.deepEqual([readiness, due, crashes], ['isolated', bench.clock.now(), 2])
    },
  },
  {
    name: 'the mark that a suspect begins is written once, and by its holder alone',
    async run(bench) {
      const { id } = await suspect(bench)
      const taken = await takeIsolated(bench, 'me')
      const stale = await bench.beat('me', { held: [{ runId: id, token: 2, extendMs: null, begun: 9 }] })
      const strange = await bench.beat('you', { held: [{ runId: id, token: 3, extendMs: null, begun: 9 }] })
      assert.deepEqual([stale.lost, strange.lost], [[id], [id]])
      assert.equal((await bench.run(id)).crashes, 2)
      assert.deepEqual((await begin(bench, 'me', taken)).lost, [])
      assert.deepEqual((await begin(bench, 'me', taken)).lost, [], 'and again, because its answer was lost')
      assert.deepEqual(await bench.run(id), { ...taken, crashes: 3 })
    },
  },
  {
    name: 'a suspect that dies apart comes back later and later, so that all others go first',
    async run(bench) {
      const { clock, run, store, selector } = bench
      const { id } = await suspect(bench)
      for (const [crashes, laterMs] of [
        [3, 1_000],
        [4, 2_000],
        [5, 4_000],
        [6, 8_000],
      ] as const) {
        const { suspects: due } = await dieIsolated(bench, { maxCrashes: 100 })
        const row = await run(id)
        assert.deepEqual([row.readiness, row.crashes, row.due], ['isolated', crashes, clock.now() + laterMs])
        assert.equal(due, row.due)
        await clock.advance(laterMs - 1)
        const early = await store.claim({ session: 'early', selectors: [selector], limit: 1, isolated: true })
        assert.deepEqual([early.runs, early.more, early.nextDue], [[], false, row.due])
        await clock.advance(1)
      }
    },
  },
  {
    name: 'SW-R5 a run that ends every process which performs nothing else is paused, and says why',
    async run(bench) {
      const { clock, run, journal, claim, rescue } = bench
      const { id } = await suspect(bench)
      for (const crashes of [3, 4]) {
        const { takenOver, paused, ended } = await dieIsolated(bench)
        assert.deepEqual([takenOver[0]?.crashes, paused, ended], [crashes, [], []])
        await clock.advance(10_000)
      }
      const { takenOver, paused, ended } = await dieIsolated(bench)
      assert.deepEqual([takenOver.map(({ runId }) => runId), paused, ended], [[id], [id], []])
      const row = await run(id)
      assert.deepEqual([row.status, row.readiness, row.due, row.session], ['paused', 'idle', null, null])
      const [crashed, last] = (await journal(id)).slice(-2).map(draftOf)
      assert.deepEqual([crashed?.kind, crashed?.kind === 'crashed' && crashed.meta.crashes], ['crashed', 5])
      const meta = last?.kind === 'paused' ? last.meta : null
      assert.ok(meta?.reason === 'crashes' && meta.note?.includes('5 times') === true, JSON.stringify(meta))
      assert.deepEqual([(await claim()).runs, (await rescue()).suspects], [[], null])
    },
  },
  {
    name: 'a run that was paused for its crashes and is resumed is no suspect any more',
    async run(bench) {
      const { id } = await suspect(bench)
      await dieIsolated(bench, { maxCrashes: 3 })
      assert.equal((await bench.run(id)).status, 'paused')
      const row = controlled(await bench.control(id, ask.resume), 'done')
      assert.deepEqual([row.status, row.readiness, row.crashes], ['pending', 'ready', 0])
      assert.deepEqual(ids((await bench.claim()).runs), [id])
    },
  },
  {
    name: 'a workflow may have a bound on crashes of its own, and may want to fail',
    async run(bench) {
      const { selector, journal, run } = bench
      const rule = { ...selector, maxCrashes: 3, onCrashes: 'fail' } as const
      const other = { type: selector.type, version: 9, maxCrashes: 100, onCrashes: 'pause' } as const
      const { id } = await suspect(bench)
      const { ended, takenOver, paused } = await dieIsolated(bench, { maxCrashes: 50, workflows: [other, rule] })
      assert.deepEqual([ended, takenOver, paused], [[{ runId: id, type: selector.type, reason: 'crashed' }], [], []])
      assert.equal((await run(id)).status, 'failed')
      assert.deepEqual((await journal(id)).at(-1)?.data, failures.crashed)
      const second = await suspect(bench)
      const bound = { ...selector, maxCrashes: null, onCrashes: 'pause' } as const
      assert.deepEqual((await dieIsolated(bench, { maxCrashes: 3, workflows: [bound] })).paused, [second.id])
    },
  },
  {
    name: 'a suspect that commits something is innocent: its next crash is its first',
    async run(bench) {
      const { beat, commit, run, rescue } = bench
      const { id, seq } = await suspect(bench)
      const taken = await takeIsolated(bench, 'me')
      await begin(bench, 'me', taken)
      await commit({ runId: id, lease: { session: 'me', token: taken.token }, seq })
      assert.equal((await run(id)).crashes, 0)
      await beat('me', { end: true })
      const { takenOver } = await rescue()
      const { readiness, crashes } = await run(id)
      assert.deepEqual([takenOver[0]?.crashes, readiness, crashes], [1, 'ready', 1])
    },
  },
  {
    name: 'a suspect that is given back keeps the crashes before, whether it had begun or not',
    async run(bench) {
      const { store, run } = bench
      const { id } = await suspect(bench)
      for (const hasBegun of [false, true, true]) {
        const taken = await takeIsolated(bench, 'me')
        if (hasBegun) await begin(bench, 'me', taken)
        const lease = { runId: id, session: 'me', token: taken.token }
        await store.release([{ ...lease, crashes: taken.crashes }])
        const { readiness, crashes, session } = await run(id)
        assert.deepEqual([readiness, crashes, session], ['isolated', 2, null])
      }
      const taken = await takeIsolated(bench, 'me')
      await begin(bench, 'me', taken)
      await store.release([{ runId: id, session: 'me', token: taken.token }])
      assert.equal((await run(id)).crashes, 2, 'who does not say how many there were counts one less')
    },
  },
  {
    name: 'of two suspects the one that has been due longer goes first, regardless of priority',
    near: true,
    async run(bench) {
      const first = await suspect(bench, { priority: -5 })
      await bench.clock.advance(1)
      const second = await suspect(bench, { priority: 5 })
      const { runs } = await bench.store.claim({ session: 'me', selectors: [bench.selector], limit: 5, isolated: true })
      assert.deepEqual(ids(runs), [first.id, second.id])
    },
  },
  {
    name: 'a suspect whose time is over fails instead of being handed out, and one that is over time is never paused',
    async run(bench) {
      const { clock, run, rescue, store, selector } = bench
      const waiting = await suspect(bench, { timeoutMs: 5_000 })
      await clock.advance(5_000)
      const request = { session: 'me', selectors: [selector], limit: 1, isolated: true }
      assert.deepEqual((await store.claim(request)).runs, [])
      assert.deepEqual(
        (await rescue()).ended.map(({ runId, reason }) => [runId, reason]),
        [[waiting.id, 'timed-out']],
      )
      const held = await suspect(bench, { timeoutMs: 5_000 })
      const taken = await takeIsolated(bench, 'me')
      await begin(bench, 'me', taken)
      await clock.advance(5_000)
      await bench.beat('me', { end: true })
      const { ended, paused } = await rescue({ maxCrashes: 3 })
      assert.deepEqual([ended.map(({ reason }) => reason), paused], [['timed-out'], []])
      assert.equal((await run(held.id)).status, 'failed')
    },
  },
  {
    name: 'a suspect that is paused, cancelled or removed is not claimed',
    async run(bench) {
      const { control, store, selector, rescue } = bench
      const [paused, cancelled, removed] = [await suspect(bench), await suspect(bench), await suspect(bench)]
      controlled(await control(paused.id, ask.pause), 'done')
      controlled(await control(cancelled.id, ask.cancel), 'done')
      controlled(await control(removed.id, ask.remove), 'done')
      const request = { session: 'me', selectors: [selector], limit: 5, isolated: true }
      assert.deepEqual((await store.claim(request)).runs, [])
      assert.equal((await rescue()).suspects, null)
    },
  },
  {
    name: 'undo work that ends its processes is performed apart, too, and given up at the bound',
    async run(bench) {
      const { beat, hold, commit, control, run, rescue, take } = bench
      await beat('first')
      const held = await hold({ lease: { session: 'first', token: 1 } })
      await commit(held, { undo: 'possible' })
      controlled(await control(held.runId, ask.cancel), 'requested')
      await beat('first', { end: true })
      await rescue()
      await beat('second')
      await take(held.runId, 'second')
      await beat('second', { end: true })
      await rescue()
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.readiness, row.crashes], ['cancelling', 'isolated', 2])
      const { ended } = await dieIsolated(bench, { maxCrashes: 3 })
      assert.deepEqual(
        ended.map(({ runId, reason }) => [runId, reason]),
        [[held.runId, 'cancelled']],
      )
    },
  },
  {
    name: 'a process that lost a suspect and lives takes that crash back: once, and the journal says so',
    async run(bench) {
      const { clock, run, store, journal, rescue } = bench
      const { id } = await suspect(bench)
      for (const _ of [1, 2]) {
        await dieIsolated(bench)
        await clock.advance(10_000)
      }
      const { seq, crashes } = await run(id)
      assert.equal(crashes, 4)
      const request = { id: 'word', runId: id, kind: 'acquit', seq } as const
      for (const time of ['first', 'again, because its answer was lost']) {
        const [answer] = await store.control([request])
        assert.ok(answer?.outcome === 'done', time)
        const row = await run(id)
        assert.deepEqual(answer.run, row)
        assert.deepEqual([row.status, row.readiness, row.crashes, row.seq], ['pending', 'isolated', 3, seq + 1])
        assert.deepEqual([row.due, (await rescue()).suspects], [clock.now() + 1_000, clock.now() + 1_000])
      }
      const last = (await journal(id)).at(-1)
      assert.deepEqual([last?.kind, last?.transition], ['resumed', 'word'])
      const late = { ...request, id: 'another' }
      assert.deepEqual(await store.control([late]), [{ outcome: 'refused', reason: 'changed', run: await run(id) }])
    },
  },
  {
    name: 'a pause for crashes of which one was none is taken back, and the crashes that are left still count',
    async run(bench) {
      const { clock, run, control } = bench
      const { id } = await suspect(bench)
      for (const _ of [1, 2, 3]) {
        await dieIsolated(bench)
        await clock.advance(10_000)
      }
      const { status, seq } = await run(id)
      assert.equal(status, 'paused')
      const row = controlled(await control(id, { kind: 'acquit', seq }), 'done')
      assert.deepEqual([row.status, row.readiness, row.crashes], ['pending', 'isolated', 4])
      assert.equal(row.due, clock.now() + 2_000)
      await clock.advance(2_000)
      assert.deepEqual((await dieIsolated(bench)).paused, [id], 'one more is one too many')
    },
  },
  {
    name: 'no crash is taken back that is not counted, while the run is held, or once it is over',
    async run(bench) {
      const { clock, run, control, beat, commit } = bench
      const { id, seq } = await suspect(bench)
      const before = await run(id)
      assert.deepEqual(controlled(await control(id, { kind: 'acquit', seq }), 'done'), before, 'it did not die apart')
      await dieIsolated(bench)
      await clock.advance(10_000)
      const taken = await takeIsolated(bench, 'me')
      await expectControlRefused(bench, id, { kind: 'acquit', seq: taken.seq }, 'changed')
      await begin(bench, 'me', taken)
      await expectControlRefused(bench, id, { kind: 'acquit', seq: taken.seq }, 'changed')
      await commit({ runId: id, lease: { session: 'me', token: taken.token }, seq: taken.seq })
      await beat('me', { end: true })
      await bench.rescue()
      const free = await run(id)
      assert.deepEqual([free.status, free.crashes], ['pending', 1])
      assert.deepEqual(controlled(await control(id, { kind: 'acquit', seq: free.seq }), 'done'), free)
      controlled(await control(id, ask.cancel), 'done')
      await expectControlRefused(bench, id, { kind: 'acquit', seq: free.seq + 1 }, 'ended')
    },
  },
  {
    name: 'who pauses a run that is paused for its crashes wants it to stay so, and the journal knows',
    async run(bench) {
      const { run, control, journal } = bench
      const { id } = await suspect(bench)
      await dieIsolated(bench, { maxCrashes: 3 })
      const row = controlled(await control(id, ask.pause), 'done')
      assert.deepEqual([row.status, row.readiness], ['paused', 'idle'])
      assert.deepEqual(await run(id), row)
      const pauses = (await journal(id)).flatMap(({ kind, meta }) => (kind === 'paused' ? [meta.reason] : []))
      assert.deepEqual(pauses, ['crashes', 'operator'])
    },
  },
  {
    name: 'a suspect that is to be paused, and whose process dies, is paused for who asked',
    async run(bench) {
      const { run, control, journal, beat, rescue } = bench
      const { id } = await suspect(bench)
      await begin(bench, 'me', await takeIsolated(bench, 'me'))
      controlled(await control(id, ask.pause), 'requested')
      await beat('me', { end: true })
      const { paused } = await rescue({ maxCrashes: 3 })
      assert.deepEqual([paused, (await run(id)).status], [[], 'paused'])
      const last = (await journal(id)).at(-1)
      assert.deepEqual(last?.kind === 'paused' && last.meta.reason, 'operator')
    },
  },
]
