// What a store keeps of projections: one holder at a time, positions that only the holder moves, and only from where they are.

import assert from 'node:assert/strict'
import type {
  FailedEvent,
  ProjectionAnswer,
  ProjectionCommand,
  ProjectionRow,
  Store,
  StoreProjections,
  StoreTransactions,
} from '../../../store.ts'
import type { ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'

type Part = ProjectionRow['part']

const leaseMs = 30_000

const failure: FailedEvent = {
  position: 12,
  id: 'run:7',
  type: 'Paid',
  of: 'order',
  instance: 'A-1',
  attempts: 8,
  error: 'no such table: orders',
}

function projectionsOf(store: Store): StoreProjections {
  return store as unknown as StoreProjections
}

/** Commands about one projection. */
function commands({ store }: Pick<ContractBench, 'store'>, name = 'totals') {
  const send = (command: ProjectionCommand): Promise<ProjectionAnswer> =>
    projectionsOf(store).commandProjection(command)
  const claimed = (session: string, part: Part = 'live', definition = 'v1', startAt = 0): Promise<ProjectionAnswer> =>
    send({ name, part, kind: 'claim', session, leaseMs, definition, startAt })
  const take = async (session: string, part: Part = 'live', definition = 'v1') => {
    const { outcome, row } = await claimed(session, part, definition)
    assert.equal(outcome, 'done')
    assert.ok(row)
    const holder = { name, part, session, token: row.token }
    return {
      row,
      advance: (from: number, to: number) => send({ ...holder, kind: 'advance', from, to }),
      beat: () => send({ ...holder, kind: 'beat', leaseMs }),
      park: (position = failure.position) => send({ ...holder, kind: 'park', failure: { ...failure, position } }),
      release: () => send({ ...holder, kind: 'release' }),
      begin: () => send({ ...holder, kind: 'begin' }),
      swap: () => send({ ...holder, kind: 'swap' }),
      holder,
    }
  }
  return {
    send,
    claimed,
    take,
    control: (kind: 'pause' | 'resume' | 'remove', part: Part = 'live') => send({ name, part, kind }),
    skip: (position: number) => send({ name, part: 'live', kind: 'skip', position }),
    rebuild: (definition: string | null) => send({ name, part: 'live', kind: 'rebuild', definition }),
    rows: () => projectionsOf(store).projections(),
  }
}

function outcomes(answers: readonly ProjectionAnswer[]): readonly string[] {
  return answers.map(({ outcome }) => outcome)
}

const needs = 'projections'

export const projectionCases: readonly ContractCase[] = [
  {
    name: 'a projection begins with its first claim, where that says, and has one holder at a time',
    needs,
    async run(bench) {
      const { claimed, rows } = commands(bench)
      assert.deepEqual(await rows(), [])
      const now = bench.clock.now()
      const { outcome, row } = await claimed('one', 'live', 'v1', 5)
      assert.equal(outcome, 'done')
      assert.deepEqual(row, {
        name: 'totals',
        part: 'live',
        definition: 'v1',
        status: 'active',
        begun: true,
        position: 5,
        session: 'one',
        token: 1,
        aliveUntil: now + leaseMs,
        failure: null,
        skipped: [],
        createdAt: now,
        updatedAt: now,
      })
      assert.deepEqual(outcomes([await claimed('two'), await claimed('one', 'live', 'v2')]), ['held', 'different'])
      assert.deepEqual(await rows(), [row])
    },
  },
  {
    name: 'the lease of a projection ends with its time, and the token of the next holder is higher',
    needs,
    async run(bench) {
      const { take, claimed } = commands(bench)
      const one = await take('one')
      await bench.clock.advance(leaseMs - 1)
      assert.equal((await one.beat()).outcome, 'done')
      await bench.clock.advance(leaseMs - 1)
      assert.equal((await claimed('two')).outcome, 'held')
      await bench.clock.advance(1)
      const two = await take('two')
      assert.equal(two.row.token, one.row.token + 1)
      const late = [await one.beat(), await one.advance(0, 5), await one.park(), await one.release()]
      assert.deepEqual(outcomes(late), ['lost', 'lost', 'lost', 'lost'])
      assert.equal((await two.advance(0, 5)).outcome, 'done')
    },
  },
  {
    name: 'a projection moves on from exactly where it is, never back, and keeps its place without a holder',
    needs,
    async run(bench) {
      const { take, rows } = commands(bench)
      const one = await take('one')
      assert.equal((await one.advance(0, 7)).row?.position, 7)
      const wrong = [await one.advance(0, 9), await one.advance(7, 7), await one.advance(7, 3)]
      assert.deepEqual(outcomes(wrong), ['lost', 'lost', 'lost'])
      await one.release()
      assert.deepEqual(
        (await rows()).map(({ position, session, aliveUntil }) => [position, session, aliveUntil]),
        [[7, null, null]],
      )
      assert.equal((await take('two')).row.position, 7)
    },
  },
  {
    name: 'a paused projection has no holder, and goes on where it was when it is resumed',
    needs,
    async run(bench) {
      const { take, claimed, control } = commands(bench)
      const one = await take('one')
      await one.advance(0, 7)
      assert.equal((await control('pause')).row?.status, 'paused')
      assert.deepEqual(outcomes([await one.advance(7, 8), await claimed('two')]), ['lost', 'stopped'])
      assert.equal((await control('resume')).row?.status, 'active')
      assert.equal((await one.advance(7, 8)).outcome, 'lost')
      assert.equal((await (await take('two')).advance(7, 8)).outcome, 'done')
      const { send } = commands(bench, 'unknown')
      const answer = await send({ name: 'unknown', part: 'live', kind: 'pause' })
      assert.deepEqual(answer, { outcome: 'not-found', row: null })
    },
  },
  {
    name: 'a parked projection names its event, and goes on with it, or behind it if it is skipped',
    needs,
    async run(bench) {
      const { take, claimed, control, skip } = commands(bench)
      const one = await take('one')
      await one.advance(0, 11)
      const { row } = await one.park()
      assert.deepEqual([row?.status, row?.position, row?.session, row?.failure], ['parked', 11, null, failure])
      assert.equal((await claimed('two')).outcome, 'stopped')
      assert.equal((await control('resume')).row?.failure, null)
      const two = await take('two')
      await two.park()
      assert.equal((await skip(11)).outcome, 'not-parked')
      await bench.clock.advance(5)
      const skipped = (await skip(12)).row
      assert.deepEqual(
        [skipped?.status, skipped?.position, skipped?.failure, skipped?.skipped],
        ['active', 12, null, [{ ...failure, skippedAt: bench.clock.now() }]],
      )
      assert.equal((await skip(12)).outcome, 'not-parked')
    },
  },
  {
    name: 'a rebuild has a position of its own, is swapped when it has passed all that was live, and voids the old holder',
    needs,
    async run(bench) {
      const { take, claimed, rebuild, rows } = commands(bench)
      assert.equal((await rebuild('v2')).outcome, 'not-found')
      assert.equal((await claimed('one', 'rebuild')).outcome, 'not-found')
      const old = await take('one')
      await old.advance(0, 10)
      const { row } = await rebuild('v2')
      assert.deepEqual([row?.part, row?.definition, row?.position, row?.begun], ['rebuild', 'v2', 0, false])
      const shadow = await take('two', 'rebuild', 'v2')
      assert.equal((await shadow.swap()).outcome, 'lost')
      assert.deepEqual(outcomes([await shadow.begin(), await shadow.begin()]), ['done', 'lost'])
      await shadow.advance(0, 9)
      assert.equal((await shadow.swap()).outcome, 'behind')
      await old.advance(10, 11)
      await shadow.advance(9, 12)
      assert.deepEqual(
        (await rows()).map(({ part, position }) => [part, position]),
        [
          ['live', 11],
          ['rebuild', 12],
        ],
      )
      const swapped = (await shadow.swap()).row
      assert.deepEqual(
        [swapped?.part, swapped?.definition, swapped?.position, swapped?.session, swapped?.begun],
        ['live', 'v2', 12, 'two', true],
      )
      assert.deepEqual(await rows(), [swapped])
      assert.deepEqual(outcomes([await old.advance(11, 12), await shadow.swap()]), ['lost', 'not-found'])
      assert.equal((await claimed('one')).outcome, 'different')
    },
  },
  {
    name: 'a rebuild goes on when it is asked for again, and begins anew for another definition',
    needs,
    async run(bench) {
      const { take, rebuild, control, rows } = commands(bench)
      await take('one')
      await rebuild(null)
      const shadow = await take('two', 'rebuild')
      await shadow.begin()
      await shadow.advance(0, 9)
      assert.equal((await rebuild('v1')).row?.position, 9)
      assert.equal((await shadow.beat()).outcome, 'done')
      const anew = (await rebuild('v2')).row
      assert.deepEqual([anew?.position, anew?.begun, anew?.session], [0, false, null])
      assert.equal((await shadow.beat()).outcome, 'lost')
      await control('remove', 'rebuild')
      assert.equal((await rows()).length, 1)
      await rebuild('v2')
      await control('remove')
      assert.deepEqual(await rows(), [])
    },
  },
  {
    name: 'the rows of projections are listed by name, the live part first, and are copies',
    needs,
    async run(bench) {
      const second = commands(bench, 'b')
      await second.take('one')
      await commands(bench, 'a').take('one')
      await second.rebuild(null)
      const rows = await second.rows()
      assert.deepEqual(
        rows.map(({ name, part }) => `${name} ${part}`),
        ['a live', 'b live', 'b rebuild'],
      )
      Object.assign(rows[0] as object, { position: 99 })
      assert.equal((await second.rows())[0]?.position, 0)
    },
  },
  {
    name: 'the end of the feed is the last position that was given, and all is there once nothing is left without one',
    needs,
    async run({ store, hold, commit }) {
      const feedEnd = (): ReturnType<StoreProjections['feedEnd']> => projectionsOf(store).feedEnd()
      assert.deepEqual(await feedEnd(), { position: 0, isComplete: true })
      const one = await hold({ feed: true })
      await commit(one)
      const before = await feedEnd()
      assert.ok(before.isComplete ? before.position === 2 : before.position < 2)
      assert.equal((await store.changes(0, 10)).length, 2)
      assert.deepEqual(await feedEnd(), { position: 2, isComplete: true })
    },
  },
  {
    name: 'the feed says of each entry what its run is: its type, its version and its idempotency key',
    async run({ store, hold }) {
      const { runId } = await hold({ feed: true, type: 'contract.fed', version: 3, idempotencyKey: 'A-1' })
      const [change] = await store.changes(0, 10)
      const { type, version, key } = change ?? {}
      assert.deepEqual([change?.runId, type, version, key], [runId, 'contract.fed', 3, 'A-1'])
    },
  },
  {
    name: 'a position moves with the transaction that it is written in, and not without it',
    needs: 'transactions',
    async run(bench) {
      const { store } = bench
      if (store.capabilities.projections !== true) return
      const { take, rows, send } = commands(bench)
      const { holder } = await take('one')
      const users = store as unknown as StoreTransactions
      const advance = { ...holder, kind: 'advance', from: 0, to: 7 } as const
      const undone = new Error('the read model could not be written')
      const work = users.transact(async (_handle, inTransaction) => {
        assert.equal((await inTransaction.commandProjection?.(advance))?.outcome, 'done')
        throw undone
      })
      await assert.rejects(work, undone)
      assert.equal((await rows())[0]?.position, 0)
      await users.transact(async (_handle, inTransaction) => inTransaction.commandProjection?.(advance))
      assert.equal((await rows())[0]?.position, 7)
      assert.equal((await send(advance)).outcome, 'lost')
    },
  },
]
