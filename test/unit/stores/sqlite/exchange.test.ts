// What SQLite does with its own hands when runs reach one another: what one statement of a call made of a row is what the
// next one finds, and those that nobody watches pay nothing for it.

import Database from 'libsql'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { DeadLetter } from '../../../../src/store.ts'
import { openSqliteStore, type SqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { createVirtualClock } from '../../../../src/testing/index.ts'
import { createContractBench, type ContractBench } from '../../../../src/testing/contract/index.ts'

interface Opened {
  readonly bench: ContractBench
  readonly store: SqliteStore
  /** The statements that changed the row of a run since one last asked. */
  readonly rowWrites: () => number
}

async function open(): Promise<Opened> {
  const database = new Database(':memory:')
  onTestFinished(() => void database.close())
  let writes = 0
  const handle = {
    prepare(sql: string) {
      const statement = database.prepare(sql)
      const isRowWrite = /^\s*update runs\b/.test(sql)
      return {
        run(values: unknown) {
          if (isRowWrite) writes += 1
          return statement.run(values)
        },
        get: (values: unknown) => statement.get(values),
        all: (values: unknown) => statement.all(values),
      }
    },
    exec: (sql: string) => database.exec(sql),
    pragma: (source: string) => database.pragma(source),
    close: () => database.close(),
  }
  const clock = createVirtualClock()
  const store = await openSqliteStore({ handle, clock })
  await store.migrate()
  const rowWrites = (): number => {
    const before = writes
    writes = 0
    return before
  }
  return { bench: createContractBench({ store, clock }), store, rowWrites }
}

const nobody = { starts: [], watches: [], unwatches: [] } as const
const success = { append: [{ kind: 'succeeded', name: null, meta: null, data: '1' }], status: 'succeeded' } as const

async function broken(store: SqliteStore): Promise<readonly string[]> {
  return (await store.doctor()).filter(({ offenders }) => offenders.length > 0).map(({ name }) => name)
}

describe('the row of a run that ends', () => {
  it('is written once, although it was sent a signal, if it knows its mailbox to be empty', async () => {
    const { bench, rowWrites } = await open()
    const held = await bench.hold()
    const signal = bench.message(held.runId)
    await bench.deliver(signal)
    rowWrites()
    const { inbox } = await bench.commit(held, { ...success, takes: [signal.id], emptyAt: 1 })
    expect([inbox, rowWrites()]).toEqual([1, 1])
  })

  it('is not written as if nothing had come when a signal arrived since', async () => {
    const { bench, store } = await open()
    const held = await bench.hold()
    await bench.deliver(bench.message(held.runId, { id: 'late', policy: { onUnread: 'dead-letter' } }))
    await bench.commit(held, { ...success, emptyAt: 0 })
    expect(await store.deadLetters({}, { limit: 5 })).toMatchObject([{ id: 'late', status: 'succeeded' }])
    expect(await broken(store)).toEqual([])
  })
})

describe('one rescue that ends a parent', () => {
  const times = [
    ['before its child, whose time is over, too, cancels that one', false, 'cancelling'],
    ['after its child has reported its own end, reads nothing and ends', true, 'failed'],
  ] as const

  it.each(times)('%s', async (_, isChildFirst, childBecomes) => {
    const { bench, store } = await open()
    // Ids grow, and the lower one is rescued first.
    const early = bench.newRun()
    const parent = await bench.hold({ timeoutMs: 100 })
    const start = bench.child(parent.runId, { timeoutMs: 100, ...(isChildFirst ? { id: early.id } : {}) })
    await bench.park(parent, { outbound: { ...nobody, starts: [start] } })
    await bench.clock.advance(300)
    const { ended } = await bench.rescue()
    expect((await bench.run(parent.runId)).status).toBe('failed')
    expect((await bench.run(start.run.id)).status).toBe(childBecomes)
    const expected = isChildFirst ? [start.run.id, parent.runId] : [parent.runId]
    expect(ended.map(({ runId }) => runId)).toEqual(expected)
    expect(await broken(store)).toEqual([])
  })
})

describe('a transition that begins anew as another type and starts a child', () => {
  it('leaves that child the key that it has no more', async () => {
    const { bench, store } = await open()
    const parent = await bench.hold({ key: 'order-1' })
    const start = bench.child(parent.runId, { key: 'order-1' }, { awaited: false, onParentEnd: 'abandon' })
    const continues = { type: 'contract.other', version: 1, feed: false }
    const append = [{ kind: 'continued', name: null, meta: continues, data: '1' }] as const
    await bench.commit(parent, { append, continues, outbound: { ...nobody, starts: [start] } })
    expect(await bench.run(start.run.id)).toMatchObject({ type: bench.selector.type, key: 'order-1' })
    expect(await bench.run(parent.runId)).toMatchObject({ type: 'contract.other', inbox: 0 })
    expect(await broken(store)).toEqual([])
  })
})

describe('the feed', () => {
  it('lists a transition before it lists the child that it starts', async () => {
    const { bench, store } = await open()
    const parent = await bench.hold({ feed: true })
    const start = bench.child(parent.runId, { feed: true })
    await bench.commit(parent, { outbound: { ...nobody, starts: [start] } })
    const changes = await store.changes(0, 10)
    expect(changes.map(({ runId, entry }) => [runId, entry.seq])).toEqual([
      [parent.runId, 1],
      [parent.runId, 2],
      [start.run.id, 1],
    ])
  })
})

describe('dead letters', () => {
  it('are read page by page, also when the last of a page was settled meanwhile', async () => {
    const { bench, store } = await open()
    const held = await bench.hold()
    await bench.commit(held, success)
    const policy = { onUnread: 'dead-letter' } as const
    for (let sent = 0; sent < 5; sent += 1) {
      await bench.deliver(bench.message(held.runId, { id: `a message ${sent}`, policy }))
      if (sent % 2 === 1) await bench.clock.advance(1)
    }
    const seen: string[] = []
    let last: DeadLetter | undefined
    do {
      const after = last === undefined ? {} : { after: `${last.runId} ${last.id}` }
      const page = await store.deadLetters({ runId: held.runId }, { limit: 2, ...after })
      seen.push(...page.map(({ id }) => id))
      last = page.at(-1)
      if (last !== undefined) expect(await store.settleDeadLetter(last, 'discarded')).toBe(true)
    } while (last !== undefined)
    expect(seen).toEqual(['a message 4', 'a message 3', 'a message 2', 'a message 1', 'a message 0'])
    const left = await store.deadLetters({}, { limit: 5 })
    expect(left.map(({ id }) => id)).toEqual(['a message 4', 'a message 2'])
  })
})

describe('a broadcast whose id its topic has forgotten', () => {
  it('is another one when it is sent again, and harms nobody', async () => {
    const { bench, store } = await open()
    const topic = { name: 'news', delivery: 'all', retainMs: 0 } as const
    const watches = [{ kind: 'topic', ...topic }] as const
    const had = await bench.hold()
    await bench.park(had, { outbound: { ...nobody, watches } })
    const sent = bench.broadcast({ topic })
    await bench.deliver(sent)
    await bench.clock.advance(25 * 3_600_000)
    await bench.deliver(bench.broadcast({ topic, id: 'what makes it forget' }))
    const fresh = await bench.hold()
    await bench.park(fresh, { outbound: { ...nobody, watches } })
    expect((await bench.deliver(sent)).outcome).toBe('delivered')
    expect(await bench.mailbox(had.runId)).toHaveLength(3)
    expect(await bench.mailbox(fresh.runId)).toHaveLength(1)
    expect((await broken(store)).filter((name) => name === 'mailbox_dense')).toEqual([])
  })
})
