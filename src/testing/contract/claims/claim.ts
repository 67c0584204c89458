// Which claim gets which run, and in what order.

import assert from 'node:assert/strict'
import { mostFreshBytes } from '../../../core/rules/claims/claim.ts'
import { randomFraction } from '../../../core/runtime/ports.ts'
import { atOnce, ids, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { inMs, started } from '../drafts.ts'
import { dueOrder } from '../runs/schedule.ts'

export const claimCases: readonly ContractCase[] = [
  {
    name: 'a higher priority goes first, then what has been due longer, then the lower id',
    near: true,
    async run({ clock, start, claim }) {
      const older = await start({ priority: 1 })
      await clock.advance(5)
      const low = await start({ priority: -1 })
      const newer = await start({ priority: 1 })
      const newest = await start({ priority: 1 })
      const urgent = await start({ priority: 10 })
      const { runs } = await claim()
      assert.deepEqual(ids(runs), ids([urgent, older, newer, newest, low]))
    },
  },
  {
    name: 'runs of one millisecond are claimed in the order of their ids, however they were inserted',
    near: true,
    async run({ store, newRun, claim }) {
      const made = Array.from({ length: 20 }, () => newRun())
      const shuffled = made.map((_, index) => made[(index * 7) % 20] as (typeof made)[number])
      await store.start(shuffled.slice(0, 12))
      await store.start(shuffled.slice(12))
      assert.deepEqual(
        ids((await claim()).runs),
        made.map(({ id }) => id),
      )
    },
  },
  {
    name: 'a claim takes no more than its limit and leaves the rest for the next',
    near: true,
    async run({ start, claim }) {
      const made = [await start(), await start(), await start()]
      const first = await claim({ limit: 2 })
      const second = await claim({ limit: 2 })
      assert.deepEqual(ids(first.runs), ids(made.slice(0, 2)))
      assert.deepEqual(ids(second.runs), ids(made.slice(2)))
      assert.deepEqual((await claim({ limit: 2 })).runs, [])
      assert.deepEqual([first.more, second.more], [true, false], 'it says whether some were left')
    },
  },
  {
    name: 'a claim of nothing leases nothing and still answers with the time',
    async run({ clock, start, run, claim }) {
      const ready = await start()
      const timed = await start({ due: inMs(1_000) })
      assert.deepEqual(await claim({ limit: 0 }), { runs: [], more: true, nextDue: timed.due, now: clock.now() })
      assert.deepEqual(await claim({ selectors: [] }), { runs: [], more: false, nextDue: null, now: clock.now() })
      assert.deepEqual(await run(ready.id), ready)
    },
  },
  {
    name: 'a worker never gets a type or version that it did not select',
    async run({ start, claim }) {
      const selected = await start({ type: 'billing', version: 2 })
      await start({ type: 'billing', version: 1 })
      await start({ type: 'billing.invoice', version: 2 })
      await start({ type: 'Billing', version: 2 })
      assert.deepEqual((await claim({ selectors: [{ type: 'unheard-of', version: 1 }] })).runs, [])
      assert.deepEqual((await claim({ selectors: [{ type: 'billing', version: 3 }] })).runs, [])
      const { runs } = await claim({ selectors: [{ type: 'billing', version: 2 }] })
      assert.deepEqual(ids(runs), [selected.id])
    },
  },
  {
    name: 'a claim leases the run to the session under a new token, counts a possible crash and writes no entry',
    async run({ clock, start, claim, run, journal }) {
      const before = await start()
      await clock.advance(10)
      const { runs } = await claim({ session: 'me' })
      const expected = { status: 'running', readiness: 'leased', session: 'me', token: 1, crashes: 1, due: null }
      assert.deepEqual(runs, [{ ...before, ...expected }])
      assert.deepEqual(await run(before.id), runs[0])
      assert.equal((await journal(before.id)).length, 1)
    },
  },
  {
    name: 'a claim returns the journals that a load would, and only for runs that have not begun',
    async run({ store, start, hold, commit, claim, deliver, message }) {
      const untouched = await start()
      const writtenTo = await start()
      await deliver(message(writtenTo.id))
      const begun = await hold()
      await commit(begun, { status: 'pending' })
      const { runs, fresh = [] } = await claim()
      assert.deepEqual(new Set(ids(runs)), new Set([untouched.id, writtenTo.id, begun.runId]))
      for (const { runId, entry } of fresh) {
        assert.equal(runId, untouched.id)
        const [loaded] = await store.load([{ runId, after: 0, limit: 10 }])
        assert.deepEqual(loaded, { entries: [entry], messages: [] })
      }
    },
  },
  {
    name: 'the entries that come with a claim are bounded in bytes',
    async run({ store, newRun, claim }) {
      for (const [count, length] of [
        [20, 450_000],
        [600, 15_000],
      ] as const) {
        const first = started(JSON.stringify('x'.repeat(length)))
        await store.start(Array.from({ length: count }, () => newRun({ first })))
        const { runs, fresh = [] } = await claim({ limit: 1_000 })
        assert.equal(runs.length, count)
        assert.ok(fresh.reduce((bytes, { entry }) => bytes + (entry.data?.length ?? 0), 0) <= mostFreshBytes)
      }
    },
  },
  {
    name: 'a leased run is not claimed again, however long it takes',
    async run({ clock, start, claim }) {
      await start()
      assert.equal((await claim({ session: 'one' })).runs.length, 1)
      assert.deepEqual((await claim({ session: 'two' })).runs, [])
      await clock.advance(1_000)
      assert.deepEqual((await claim({ session: 'one' })).runs, [])
    },
  },
  {
    name: 'the token grows by one with every claim of any session',
    async run({ store, start, claim }) {
      const { id } = await start()
      for (const token of [1, 2, 3]) {
        const { runs } = await claim({ session: 'me' })
        assert.deepEqual([runs[0]?.id, runs[0]?.token, runs[0]?.crashes], [id, token, 1])
        await store.release([{ runId: id, session: 'me', token }])
      }
    },
  },
  {
    name: 'a claim says when the next run that matches comes due',
    async run({ clock, start, claim }) {
      assert.equal((await claim()).nextDue, null)
      await start({ type: 'other', due: inMs(10) })
      await start({ version: 2, due: inMs(20) })
      assert.equal((await claim()).nextDue, null, 'no matching run is due')
      const later = await start({ due: inMs(2_000) })
      const sooner = await start({ due: inMs(1_000) })
      assert.equal((await claim()).nextDue, sooner.due)
      await clock.advance(1_000)
      const { runs, nextDue, now } = await claim()
      assert.deepEqual(ids(runs), [sooner.id])
      assert.equal(nextDue, later.due)
      assert.equal(now, clock.now())
    },
  },
  {
    name: 'timed runs that have come due are claimed in the order in which they came due, among those that were ready',
    near: true,
    async run({ clock, start, claim }) {
      const third = await start({ due: inMs(30) })
      const first = await start({ due: inMs(10) })
      await clock.advance(20)
      const second = await start()
      await clock.advance(20)
      const fourth = await start()
      assert.deepEqual(ids((await claim()).runs), ids([first, second, third, fourth]))
    },
  },
  {
    name: 'many claimers at once take each run exactly once',
    async run({ store, newRun, random, claim, run }) {
      const made = Array.from({ length: 120 }, () => newRun({ priority: random.uint32() % 3 }))
      await store.start(made)
      const taken = new Map<string, string>()
      await atOnce(8, async (index) => {
        const session = `claimer-${index}`
        for (;;) {
          const { runs } = await claim({ session, limit: 1 + (random.uint32() % 9) })
          if (runs.length === 0) return
          for (const { id, session: holder, token } of runs) {
            assert.ok(!taken.has(id), `run ${id} was claimed by ${taken.get(id)} and ${session}`)
            assert.deepEqual([holder, token], [session, 1])
            taken.set(id, session)
          }
        }
      })
      // An empty answer may mean that other claims had locked the remaining runs: the next claim gets them.
      for (const { id } of (await claim({ session: 'last', limit: 1_000 })).runs) taken.set(id, 'last')
      assert.equal(taken.size, made.length)
      for (const [id, session] of taken) assert.equal((await run(id)).session, session)
    },
  },
  {
    name: 'claimers of one run each take the runs in their order, and none leaves with nothing while some are left',
    near: true,
    async run({ start, claim, assertMore }) {
      const urgent = { priority: 1 }
      const made = [await start(), await start(urgent), await start(), await start(urgent)]
      const order = [1, 3, 0, 2].map((index) => made[index]?.id)
      for (const [turn, id] of order.entries()) {
        const { runs, more } = await claim({ session: `claimer-${turn}`, limit: 1 })
        assert.deepEqual(ids(runs), [id])
        assertMore(more, turn < order.length - 1)
      }
    },
  },
  {
    name: 'as many claimers of one run each as there are runs get one each, at once',
    near: true,
    async run({ store, newRun, claim }) {
      // No more than the reach of one claim past the rows of the others.
      const made = Array.from({ length: 12 }, () => newRun())
      await store.start(made)
      const taken: string[] = []
      await atOnce(made.length, async (index) => {
        const { runs } = await claim({ session: `claimer-${index}`, limit: 1 })
        taken.push(...ids(runs))
      })
      assert.equal(new Set(taken).size, taken.length, 'no run is handed out twice')
      // A claim reads the ready runs once. It does not get runs that others took since then, and says that there are more.
      for (let left = made.length - taken.length; left > 0; left -= 1) {
        taken.push(...ids((await claim({ session: 'late', limit: 1 })).runs))
      }
      assert.deepEqual(taken.toSorted(), made.map(({ id }) => id).toSorted())
    },
  },
  {
    name: 'after any history, a claim takes all due runs, nothing else, and in order',
    near: true,
    run: shuffleAndClaim,
  },
]

/** Runs are timed, woken, given back and timed again at random; the rows themselves determine what each claim must take. */
async function shuffleAndClaim(bench: ContractBench): Promise<void> {
  const { store, clock, random, newRun, claim, park, message } = bench
  const below = (limit: number): number => Math.floor(randomFraction(random) * limit)
  const made = Array.from({ length: 24 }, () => newRun({ priority: below(2), due: inMs(below(50)) }))
  await store.start(made)
  for (let round = 0; round < 60; round += 1) {
    await clock.advance(below(8))
    await store.deliver(made.filter(() => below(10) === 0).map(({ id }) => message(id)))
    const rows = (await store.get(made.map(({ id }) => id))).filter((run) => run !== undefined)
    const due = rows.filter((run) => run.due !== null && run.due <= clock.now()).sort(dueOrder)
    const limit = below(12)
    const { runs, nextDue } = await claim({ session: 'me', limit })
    assert.deepEqual(ids(runs), ids(due.slice(0, limit)), `round ${round}`)
    const later = rows.flatMap((run) => (run.due !== null && run.due > clock.now() ? [run.due] : []))
    assert.equal(nextDue, later.length === 0 ? null : Math.min(...later), `round ${round}`)
    for (const { id, token, seq, inbox } of runs) {
      const lease = { session: 'me', token }
      if (below(4) === 0) await store.release([{ runId: id, ...lease }])
      else await park({ runId: id, lease, seq }, { due: { at: null, afterMs: below(100) }, parkIf: { inbox } })
    }
  }
}
