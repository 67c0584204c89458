// Takeover: other workers continue the runs of a dead session, and its late writes are refused.

import assert from 'node:assert/strict'
import type { NewRun } from '../../../store.ts'
import { atOnce, eventually, ids, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, step } from '../drafts.ts'

/** A run that is held by a session which then dies. */
async function orphan(
  { beat, start, take, clock }: ContractBench,
  session = 'dead',
  changes: Partial<NewRun> = {},
): Promise<Held> {
  await beat(session)
  const { id } = await start(changes)
  const held = await take(id, session)
  await clock.advance(30_000)
  return held
}

export const rescueCases: readonly ContractCase[] = [
  {
    name: 'SW-E5 what a dead session held is pending again at once, with an entry that says so',
    async run(bench) {
      const held = await orphan(bench)
      const before = await bench.run(held.runId)
      const answer = await bench.rescue()
      const at = bench.clock.now()
      assert.deepEqual(answer, {
        sessionsEnded: 1,
        takenOver: [{ runId: held.runId, type: before.type, session: 'dead', crashes: 1 }],
        ended: [],
        paused: [],
        suspects: null,
        more: false,
        next: null,
        now: at,
      })
      const freed = { status: 'pending', readiness: 'ready', session: null, due: at, seq: 2, updatedAt: at }
      assert.deepEqual(await bench.run(held.runId), { ...before, ...freed })
      const meta = { session: 'dead', crashes: 1 }
      assert.deepEqual((await bench.journal(held.runId)).slice(1), [
        { kind: 'crashed', name: null, meta, data: null, seq: 2, at, transition: null },
      ])
      const { runs } = await bench.claim()
      assert.deepEqual([ids(runs), runs[0]?.token, runs[0]?.crashes], [[held.runId], 2, 2])
    },
  },
  {
    name: 'SW-C3 a zombie writes nothing: after the takeover, after the next claim and after the next commit',
    async run(bench) {
      const { run, journal, send, transition, store, rescue, take, commit, beat } = bench
      const zombie = await orphan(bench)
      await rescue()
      const late = async (): Promise<void> => {
        const row = await run(zombie.runId)
        const before = [row, await journal(zombie.runId)]
        const lost = { outcome: 'refused', reason: 'lease-lost' }
        for (const seq of [zombie.seq, row.seq]) {
          const held = { ...zombie, seq }
          assert.deepEqual(await send(transition(held)), lost)
          assert.deepEqual(await send(transition(held, { append: [ending('succeeded')], status: 'succeeded' })), lost)
          assert.deepEqual(await send(transition(held, { append: [ending('failed')], status: 'failed' })), lost)
          assert.deepEqual(await send(transition(held, { append: [], status: 'waiting', parkIf: { inbox: 0 } })), lost)
        }
        await store.release([{ runId: zombie.runId, ...zombie.lease }])
        const answer = await beat('dead', {
          held: [{ runId: zombie.runId, token: zombie.lease.token, extendMs: 5_000 }],
        })
        assert.deepEqual([answer.alive, answer.lost], [false, [zombie.runId]])
        assert.deepEqual([await run(zombie.runId), await journal(zombie.runId)], before)
      }
      await late()
      const holder = await take(zombie.runId, 'holder')
      await late()
      await commit(holder)
      await late()
    },
  },
  {
    name: 'a commit whose answer was lost with its holder is still known when it is repeated after the takeover',
    async run(bench) {
      const held = await orphan(bench)
      const given = bench.transition(held)
      const first = await bench.send(given)
      await bench.rescue()
      assert.deepEqual(await bench.send(given), first)
      assert.equal((await bench.journal(held.runId)).length, 3)
    },
  },
  {
    name: 'a holder past its own deadline loses the run although its session lives',
    async run({ clock, beat, hold, rescue, run, send, transition }) {
      await beat('me', { leaseMs: 1_000_000 })
      const late = await hold({ lease: { session: 'me', token: 1 }, leaseMs: 5_000 })
      const free = await hold({ lease: { session: 'me', token: 1 } })
      await clock.advance(4_999)
      const early = await rescue()
      assert.deepEqual([early.takenOver, early.next], [[], clock.now() + 1], 'it says when to look again')
      await clock.advance(1)
      const { takenOver, sessionsEnded } = await rescue()
      assert.deepEqual([takenOver.map(({ runId }) => runId), sessionsEnded], [[late.runId], 0])
      assert.deepEqual([(await run(late.runId)).status, (await run(free.runId)).status], ['pending', 'running'])
      assert.deepEqual(await send(transition(late)), { outcome: 'refused', reason: 'lease-lost' })
    },
  },
  {
    name: 'of runs that a rescue finds together, those with a holder come first, each by id, whatever found them',
    near: true,
    inOneCall: true,
    async run(bench) {
      const { beat, start, hold, clock, rescue } = bench
      // By session, deadline or timeout they are found in another order than that of their ids.
      const over = [await start({ timeoutMs: 25_000 }), await start({ timeoutMs: 24_000 })].map(({ id }) => id)
      await beat('alive', { leaseMs: 1_000_000 })
      const held: string[] = []
      for (const [session, leaseMs] of [
        ['z', null],
        ['a', null],
        ['alive', 9_000],
        ['alive', 8_000],
      ] as const) {
        held.push((await hold({ lease: { session, token: 1 }, leaseMs, timeoutMs: 20_000 })).runId)
      }
      await clock.advance(30_000)
      const { ended, takenOver } = await rescue()
      const order = (runs: readonly { readonly runId: string }[]): readonly string[] => runs.map(({ runId }) => runId)
      assert.deepEqual([order(ended), takenOver], [[...held.toSorted(), ...over.toSorted()], []])
    },
  },
  {
    name: 'a deadline that was moved in time is not missed',
    async run({ clock, beat, hold, rescue, commit }) {
      await beat('me', { leaseMs: 1_000_000 })
      const held = await hold({ lease: { session: 'me', token: 1 }, leaseMs: 5_000 })
      for (let round = 0; round < 3; round += 1) {
        await clock.advance(4_000)
        await beat('me', { leaseMs: 1_000_000, held: [{ runId: held.runId, token: 1, extendMs: 5_000 }] })
        assert.deepEqual((await rescue()).takenOver, [])
      }
      await commit(held)
    },
  },
  {
    name: 'what a session held that ended without giving it back, or that never beat, is not lost',
    async run({ beat, hold, rescue }) {
      await beat('closed')
      const left = await hold({ lease: { session: 'closed', token: 1 } })
      await beat('closed', { end: true })
      const strange = await hold({ lease: { session: 'never-beat', token: 1 } })
      const { takenOver } = await rescue()
      assert.deepEqual(
        new Map(takenOver.map(({ runId, session }) => [runId, session])),
        new Map([
          [left.runId, 'closed'],
          [strange.runId, 'never-beat'],
        ]),
      )
    },
  },
  {
    name: 'a holder that committed before it died does not count as one that got nowhere',
    async run(bench) {
      const { beat, start, take, commit, clock, rescue } = bench
      const { id } = await start()
      for (const round of [1, 2, 3]) {
        await beat(`s${round}`)
        await commit(await take(id, `s${round}`), { append: [step()] })
        await clock.advance(30_000)
        const { takenOver, ended } = await rescue({ maxCrashes: 3 })
        assert.deepEqual([takenOver[0]?.crashes, ended], [1, []], `round ${round}`)
      }
    },
  },
  {
    name: 'the crash of an eager start counts like that of a claim',
    async run({ beat, hold, clock, rescue, claim }) {
      await beat('me')
      await hold({ lease: { session: 'me', token: 1 } })
      await clock.advance(30_000)
      assert.equal((await rescue()).takenOver[0]?.crashes, 1)
      assert.equal((await claim()).runs[0]?.crashes, 2)
    },
  },
  {
    name: 'many are taken over in bounded batches until nothing is left, and none twice',
    near: true,
    async run({ store, beat, newRun, clock, rescue, claim }) {
      await beat('dead')
      const lease = { session: 'dead', token: 1 }
      const made = Array.from({ length: 25 }, (_, index) => newRun({ lease, leaseMs: index % 2 === 0 ? 100 : null }))
      await store.start(made)
      await clock.advance(30_000)
      const taken: string[] = []
      for (;;) {
        const { takenOver, more } = await rescue({ limit: 10 })
        assert.ok(takenOver.length <= 10)
        taken.push(...takenOver.map(({ runId }) => runId))
        if (!more) break
      }
      assert.deepEqual(
        taken.toSorted(),
        made.map(({ id }) => id),
      )
      assert.equal((await claim()).runs.length, 25)
    },
  },
  {
    name: 'of many rescuers at once each run is taken by one, and its crash counted once',
    async run({ store, beat, newRun, clock, rescue, journal }) {
      await beat('dead')
      const made = Array.from({ length: 20 }, () => newRun({ lease: { session: 'dead', token: 1 } }))
      await store.start(made)
      await clock.advance(30_000)
      const answers = await atOnce(6, () => rescue({ limit: 7 }))
      await rescue()
      assert.equal(
        answers.reduce((sum, { sessionsEnded }) => sum + sessionsEnded, 0),
        1,
      )
      for (const { id } of made) {
        assert.deepEqual(
          (await journal(id)).map(({ kind }) => kind),
          ['started', 'crashed'],
        )
      }
    },
  },
  {
    name: 'runs that wait, are pending or are over have no holder to lose',
    async run({ clock, beat, start, hold, park, commit, run, rescue }) {
      await beat('me')
      const lease = { session: 'me', token: 1 }
      const [parked, done, given] = [await hold({ lease }), await hold({ lease }), await hold({ lease })]
      await park(parked)
      await commit(done, { append: [ending('succeeded')], status: 'succeeded' })
      await commit(given, { status: 'pending', due: { at: null, afterMs: 1_000_000 } })
      const all = [parked.runId, done.runId, given.runId, (await start()).id]
      const before = await Promise.all(all.map(run))
      await clock.advance(30_000)
      const { takenOver, ended, sessionsEnded } = await rescue()
      assert.deepEqual([takenOver, ended, sessionsEnded], [[], [], 1])
      assert.deepEqual(await Promise.all(all.map(run)), before)
    },
  },
  {
    name: 'a rescue says when the next session runs out, and nothing when there is none',
    async run({ clock, beat, rescue }) {
      assert.equal((await rescue()).next, null)
      await beat('slow', { leaseMs: 90_000 })
      await beat('quick', { leaseMs: 10_000 })
      assert.equal((await rescue()).next, clock.now() + 10_000)
      await beat('quick', { end: true })
      assert.equal((await rescue()).next, clock.now() + 90_000)
    },
  },
  {
    name: 'a takeover is in the feed, and is hinted at',
    needs: 'notifies',
    async run(bench) {
      await orphan(bench, 'quiet', { feed: false })
      const held = await orphan(bench, 'dead', { feed: true })
      const heard: string[] = []
      const stop = await bench.store.listen((hint) => heard.push(hint.kind))
      await bench.rescue()
      await eventually(() => (heard.includes('ready') ? true : null), 'a worker that looks for work gets a hint')
      stop()
      const changes = await eventually(async () => {
        const page = await bench.store.changes(1, 10)
        return page.length > 0 ? page : null
      }, 'it is in the feed')
      assert.deepEqual(
        changes.map(({ runId, entry }) => [runId, entry.seq, entry.kind]),
        [[held.runId, 2, 'crashed']],
      )
    },
  },
  {
    name: 'a run that is found for two reasons does not hide others from a rescue with a limit',
    async run({ clock, beat, hold, rescue, run }) {
      await beat('dead', { leaseMs: 10 })
      await beat('alive', { leaseMs: 60_000 })
      const twice = await hold({ lease: { session: 'dead', token: 1 }, leaseMs: 10 })
      const late = await hold({ lease: { session: 'alive', token: 1 }, leaseMs: 20 })
      await clock.advance(50)
      let rescued = await rescue({ limit: 2 })
      while (rescued.more) rescued = await rescue({ limit: 2 })
      assert.deepEqual([(await run(twice.runId)).status, (await run(late.runId)).status], ['pending', 'pending'])
    },
  },
]
