// What an idle worker costs, and a busy one. Many types must not mean many statements, and saving them must not mean
// missing work; what few runs have must not cost those that do not have it.

import Database from 'libsql'
import { describe, expect, it, onTestFinished } from 'vitest'
import { jsonCodec } from '../../../../src/core/payload/codec.ts'
import { createRunIds } from '../../../../src/core/model/run-id.ts'
import { nowhere } from '../../../../src/core/payload/place.ts'
import { openSqliteStore, type SqliteStoreOptions } from '../../../../src/stores/sqlite/index.ts'
import type { HeldClaim, NewRun, Store } from '../../../../src/store.ts'
import { createSeededRandom } from '../../../../src/testing/index.ts'
import { temporaryPaths } from './folder.ts'

const nextPath = temporaryPaths()
const selectors = Array.from({ length: 100 }, (_, index) => ({ type: `type-${index}`, version: 1 }))
const ids = createRunIds({
  clock: { now: () => 1_000, monotonic: () => 0, after: () => () => undefined },
  random: createSeededRandom(1),
})

/** A connection that counts what it is asked. */
function counting(path: string): {
  readonly handle: NonNullable<SqliteStoreOptions['handle']>
  readonly count: () => number
} {
  const database = new Database(path)
  onTestFinished(() => void database.close())
  let asked = 0
  const counted =
    <Values, Answer>(ask: (values: Values) => Answer) =>
    (values: Values): Answer => {
      asked += 1
      return ask(values)
    }
  const handle = {
    prepare(sql: string) {
      const statement = database.prepare(sql)
      return {
        run: counted((values: unknown) => statement.run(values)),
        get: counted((values: unknown) => statement.get(values)),
        all: counted((values: unknown) => statement.all(values)),
      }
    },
    exec: counted((sql: string) => database.exec(sql)),
    pragma: (source: string) => database.pragma(source),
    close: () => database.close(),
  }
  return { handle: handle, count: () => asked }
}

function newRun(type: string): NewRun {
  const id = ids.next(0)
  const data = jsonCodec().encode(null, nowhere)
  return {
    id,
    shard: 0,
    type,
    version: 1,
    key: null,
    keyScope: 'workflow',
    idempotencyKey: null,
    parentId: null,
    tags: [],
    metadata: null,
    feed: false,
    priority: 0,
    due: null,
    timeoutMs: null,
    expiresInMs: null,
    lease: null,
    leaseMs: null,
    transition: `start ${id}`,
    first: { kind: 'started', name: null, meta: null, data },
  }
}

async function openPair(): Promise<{ readonly store: Store; readonly other: Store; readonly count: () => number }> {
  const path = nextPath()
  const { handle, count } = counting(path)
  const store = await openSqliteStore({ handle })
  await store.migrate()
  const other = await openSqliteStore({ path })
  onTestFinished(() => other.close())
  return { store, other, count }
}

const request = { session: 'worker', selectors, limit: 10 }

describe('an idle worker', () => {
  // Seen elsewhere: one poll loop per queue, a third of a core for doing nothing.
  it('with a hundred types asks one statement per poll', async () => {
    const { store, count } = await openPair()
    await store.claim(request)
    const before = count()
    for (let poll = 0; poll < 20; poll += 1) await store.claim(request)
    expect(count() - before).toBe(20)
  })

  // Begin, the session, commit; one more for all that it holds, one if deadlines move, and one for unknown leases.
  it('asks three statements per heartbeat, and a few more however many runs it says it holds', async () => {
    const { store, count } = await openPair()
    const runs = Array.from({ length: 40 }, () => ({ ...newRun('type-1'), lease: { session: 'worker', token: 1 } }))
    await store.beat({ session: 'worker', leaseMs: 1_000 })
    await store.start(runs)
    const cost = async (held: readonly HeldClaim[], seeksUnknownLeases: boolean): Promise<number> => {
      const before = count()
      await store.beat({ session: 'worker', leaseMs: 1_000, held, seeksUnknownLeases })
      return count() - before
    }
    const held = runs.map(({ id }) => ({ runId: id, token: 1, extendMs: null }))
    const moving = held.map((one) => ({ ...one, extendMs: 500 }))
    expect([await cost([], false), await cost(held, false), await cost(moving, false)]).toEqual([3, 4, 5])
    expect([await cost([], true), await cost(held, true), await cost(moving, true)]).toEqual([4, 5, 6])
  })

  it('finds at its next poll what another process started', async () => {
    const { store, other } = await openPair()
    await store.claim(request)
    await store.claim(request)
    const run = newRun('type-42')
    await other.start([run])
    expect((await store.claim(request)).runs.map(({ id }) => id)).toEqual([run.id])
  })

  it('finds what it started itself, and what a second store over its connection started', async () => {
    const path = nextPath()
    const { handle } = counting(path)
    const [store, twin] = [await openSqliteStore({ handle }), await openSqliteStore({ handle })]
    await store.migrate()
    for (const writer of [store, twin]) {
      await store.claim(request)
      const run = newRun('type-7')
      await writer.start([run])
      expect((await store.claim(request)).runs.map(({ id }) => id)).toEqual([run.id])
    }
  })

  it('finds what comes due while nobody writes', async () => {
    let time = 1_000
    const path = nextPath()
    const store = await openSqliteStore({ path, clock: { now: () => time } })
    onTestFinished(() => store.close())
    await store.migrate()
    const run = { ...newRun('type-1'), due: { at: null, afterMs: 500 } }
    await store.start([run])
    expect((await store.claim(request)).nextDue).toBe(1_500)
    time = 1_499
    expect((await store.claim(request)).runs).toEqual([])
    time = 1_500
    expect((await store.claim(request)).runs.map(({ id }) => id)).toEqual([run.id])
  })
})

describe('a run that is plain', () => {
  // Begin, the time, and commit; then the ids, the row, its entry, and two for the feed if it is to list one.
  it('is started without a look for keys, which costs one statement for each kind that a batch has', async () => {
    const { store, count } = await openPair()
    const cost = async (...runs: readonly NewRun[]): Promise<number> => {
      const before = count()
      await store.start(runs)
      return count() - before
    }
    expect(await cost(newRun('a'))).toBe(6)
    expect(await cost({ ...newRun('a'), feed: true })).toBe(8)
    expect(await cost({ ...newRun('a'), key: 'k' })).toBe(7)
    expect(await cost({ ...newRun('a'), key: 'l', idempotencyKey: 'i' }, newRun('a'))).toBe(10)
  })

  // Begin, the time, and commit; then the row, its entry, and two for the feed if it is to list one.
  it.each([
    [false, 5],
    [true, 7],
  ])('is committed with one statement for its row, in the feed: %s', async (feed, cost) => {
    const { store, count } = await openPair()
    const lease = { session: 'worker', token: 1 }
    const run = { ...newRun('a'), feed, lease }
    await store.start([run])
    const step = { kind: 'recorded', name: 'a', meta: null, data: '1' } as const
    const plain = {
      runId: run.id,
      feed,
      due: null,
      parkIf: null,
      undo: null,
      continues: null,
      takes: [],
      append: [step],
    }
    for (const [index, status] of ([null, null, 'succeeded'] as const).entries()) {
      const before = count()
      const [answer] = await store.commit([{ ...plain, id: `t${index}`, guard: { seq: index + 1, lease }, status }])
      expect([answer?.outcome, count() - before]).toEqual(['committed', cost])
    }
  })
})
