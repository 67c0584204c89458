// Which type is served next. Among runs of equal priority the types of a claim take turns, so that a backlog of one delays
// no other; within a type no run overtakes another.

import assert from 'node:assert/strict'
import { randomFraction } from '../../../core/runtime/ports.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Selector } from '../../../store.ts'
import { ids, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { inMs } from '../drafts.ts'
import { dueOrder } from '../runs/schedule.ts'

const a = { type: 'a', version: 1 }
const b = { type: 'b', version: 3 }
const c = { type: 'c', version: 1 }

export const fairClaimCases: readonly ContractCase[] = [
  {
    name: 'types take turns in a claim, in the order in which it names them, and one that is named twice leases nothing twice',
    near: true,
    async run({ clock, start, claim }) {
      const many = [await start(a), await start(a), await start(a), await start(a)]
      await clock.advance(5)
      const few = [await start(b), await start(b)]
      const { runs, more } = await claim({ selectors: [b, a, b, a], limit: 5 })
      assert.deepEqual(ids(runs), ids([few[0], many[0], few[1], many[1], many[2]] as Run[]))
      assert.equal(more, true)
      assert.deepEqual(ids((await claim({ selectors: [b, a], limit: 5 })).runs), ids(many.slice(3)))
    },
  },
  {
    name: 'a claim of one run takes the first of the type that it names first, and of the next one if that has none',
    near: true,
    async run({ start, claim }) {
      const [first, second] = [await start(a), await start(a)]
      const other = await start(b)
      const one = async (...selectors: readonly Selector[]): Promise<readonly string[]> =>
        ids((await claim({ selectors, limit: 1 })).runs)
      assert.deepEqual(await one(c, b, a), [other.id])
      assert.deepEqual(await one(c, b, a), [first.id])
      assert.deepEqual(await one(b, c, a), [second.id])
      assert.deepEqual(await one(a, b, c), [])
    },
  },
  {
    name: 'one who claims run by run, and names the type last that was served last, serves all types in turn',
    near: true,
    async run({ start, claim, assertMore }) {
      for (const one of [a, a, a, a, b, b, c]) await start(one)
      let selectors = [a, b, c]
      let served = ''
      for (let left = 7; left > 0; left -= 1) {
        const { runs, more } = await claim({ selectors, limit: 1 })
        const [{ type }] = runs as [Run]
        served += type
        assertMore(more, left > 1)
        selectors = [...selectors.filter((one) => one.type !== type), ...selectors.filter((one) => one.type === type)]
      }
      assert.equal(served, 'abcabaa')
    },
  },
  {
    name: 'a claim takes a higher priority of any type before all others, and lets types take turns anew at each priority',
    near: true,
    async run({ start, claim }) {
      const low = [await start({ ...b, priority: -1 }), await start({ ...a, priority: -1 })]
      const usual = [await start(a), await start(a), await start(b)]
      const high = [
        await start({ ...b, priority: 7 }),
        await start({ ...b, priority: 7 }),
        await start({ ...b, priority: 7 }),
      ]
      const { runs } = await claim({ selectors: [a, b], limit: 7 })
      const order = [...high, usual[0], usual[2], usual[1], low[1]] as Run[]
      assert.deepEqual(ids(runs), ids(order))
    },
  },
  {
    name: 'the versions of a type share its turn in a claim, the longest due first',
    near: true,
    async run({ clock, start, claim }) {
      const next = { ...a, version: 2 }
      const second = await start(next)
      await clock.advance(5)
      const made = [await start(a), await start(next), await start(b), await start(b)]
      const order = [second, made[2], made[0], made[3], made[1]] as Run[]
      // The place of a type is that of its first version, also if that has none.
      const { runs } = await claim({ selectors: [{ ...a, version: 9 }, b, next, a], limit: 100 })
      assert.deepEqual(ids(runs), ids(order))
    },
  },
  {
    name: 'a run behind a backlog of another type is in the next claim, however small that is',
    near: true,
    async run({ clock, store, newRun, start, claim }) {
      await store.start(Array.from({ length: 300 }, () => newRun(a)))
      assert.equal((await claim({ selectors: [a, b], limit: 10 })).runs.length, 10)
      await clock.advance(10)
      const late = await start(b)
      const { runs, more } = await claim({ selectors: [a, b], limit: 2 })
      assert.deepEqual([runs[0]?.type, runs[1]?.id, runs.length, more], ['a', late.id, 2, true])
      // Runs that were not read because of other types are not skipped later.
      let left = 289
      while (left > 0) {
        const claimed = (await claim({ selectors: [b, a], limit: 60 })).runs.length
        assert.equal(claimed, Math.min(60, left))
        left -= claimed
      }
    },
  },
  {
    name: 'very many types take turns in a claim, too',
    near: true,
    async run({ store, newRun, claim }) {
      const types = Array.from({ length: 150 }, (_, index) => ({ type: `type ${index}`, version: 1 }))
      const made = types.flatMap((one) => [newRun(one), newRun(one)])
      await store.start(made)
      const rounds = [0, 1].flatMap((round) => made.filter((_, index) => index % 2 === round)).map(({ id }) => id)
      const one = await claim({ selectors: types, limit: 1 })
      const many = await claim({ selectors: [...types.slice(1), ...types.slice(0, 1)], limit: 200 })
      const second = [...rounds.slice(1, 150), rounds[150], ...rounds.slice(151, 201)]
      assert.deepEqual([ids(one.runs), ids(many.runs)], [rounds.slice(0, 1), second])
    },
  },
  {
    name: 'a type that suddenly has more runs than all others fills a claim, and still goes before lower priorities',
    near: true,
    async run({ store, newRun, claim }) {
      const types = Array.from({ length: 20 }, (_, index) => ({ type: `type ${index}`, version: 1 }))
      const runsOf = (index: number, count: number, priority = 0) =>
        Array.from({ length: count }, () => newRun({ ...types[index], priority }))
      const first = types.flatMap((_, index) => runsOf(index, 2))
      await store.start(first)
      assert.equal((await claim({ selectors: types, limit: 20 })).runs.length, 20)
      const [many, high, low] = [runsOf(3, 30), runsOf(7, 5, 9), runsOf(9, 5, -9)]
      await store.start([...low, ...many, ...high])
      const second = first.filter((_, index) => index % 2 === 1)
      const order = [...high, ...second, ...many, ...low].map(({ id }) => id)
      const claimed = await claim({ selectors: types, limit: 40 })
      assert.deepEqual([ids(claimed.runs), claimed.more], [order.slice(0, 40), true])
      const rest = await claim({ selectors: types, limit: 40 })
      assert.deepEqual([ids(rest.runs), rest.more], [order.slice(40), false])
    },
  },
  {
    name: 'what a claim may not take has no turn in it',
    near: true,
    async run({ clock, start, claim, assertMore }) {
      await start({ ...a, keyId: 'other' })
      await start({ ...a, timeoutMs: 5 })
      await clock.advance(5)
      const made = [await start(a), await start(b), await start(a)]
      await start({ ...b, keyId: 'other' })
      const { runs, more } = await claim({ selectors: [a, b], limit: 3, keys: ['mine'] })
      assert.deepEqual(ids(runs), ids(made))
      assertMore(more, false)
    },
  },
  {
    name: 'after any history, a claim of several types takes all due runs, and lets the types take turns',
    near: true,
    run: shuffleAndClaim,
  },
]

/**
 * While runs of several types are timed, given back and timed again, the rows themselves determine what each claim must
 * take.
 */
async function shuffleAndClaim({
  store,
  clock,
  random,
  newRun,
  claim,
  park,
  assertMore,
}: ContractBench): Promise<void> {
  const below = (limit: number): number => Math.floor(randomFraction(random) * limit)
  const selectors = [a, { ...a, version: 2 }, b, c]
  const made = Array.from({ length: 60 }, () =>
    // One type has as many as all others.
    newRun({ ...(selectors[Math.max(0, below(6) - 2)] as Selector), priority: below(2), due: inMs(below(50)) }),
  )
  await store.start(made)
  for (let round = 0; round < 80; round += 1) {
    await clock.advance(below(8))
    const rows = (await store.get(made.map(({ id }) => id))).filter((run) => run !== undefined)
    const due = rows.filter((run) => run.due !== null && run.due <= clock.now())
    const named = selectors.map((_, index) => selectors[(index + round) % selectors.length] as Selector)
    const limit = 1 + below(12)
    const { runs, more } = await claim({ session: 'me', selectors: named, limit })
    assert.deepEqual(ids(runs), ids(takeTurns(due, named).slice(0, limit)), `round ${round}`)
    assertMore(more, due.length > limit)
    for (const { id, token, seq, inbox } of runs) {
      const lease = { session: 'me', token }
      if (below(2) === 0) await store.release([{ runId: id, ...lease }])
      else await park({ runId: id, lease, seq }, { due: { at: null, afterMs: below(100) }, parkIf: { inbox } })
    }
  }
}

/** Round by round: the first run of each type that still has one, in the order of their names. */
function takeTurns(due: readonly Run[], named: readonly Selector[]): readonly Run[] {
  const taken: Run[] = []
  for (const priority of new Set(due.toSorted(dueOrder).map((run) => run.priority))) {
    const queues = [...new Set(named.map(({ type }) => type))].map((type) =>
      due.filter((run) => run.type === type && run.priority === priority).sort(dueOrder),
    )
    while (queues.some(({ length }) => length > 0)) taken.push(...queues.flatMap((queue) => queue.splice(0, 1)))
  }
  return taken
}
