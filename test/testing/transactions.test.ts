// Transactions of a workflow are tested as they run: in a real database, with the user's own library, on the time of the test, and
// with a process that dies of their COMMIT.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { afterAll, describe, expect, it } from 'vitest'
import { createHoldfast, workflow } from '../../src/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { crashEverywhere, createTest, silentLogger } from '../../src/testing/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-kit-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0

/** What an ORM is to Holdfast: it has a connection of its own to the file, and begins and ends transactions itself. */
class Library {
  readonly path = join(folder, `${(files += 1)}.db`)
  readonly ends: string[] = []
  private readonly db = new Database(this.path)

  constructor() {
    this.db.exec('pragma journal_mode = wal; create table moves (amount integer, at text)')
  }

  readonly transaction = async (work: (tx: unknown) => Promise<unknown>): Promise<void> => {
    this.db.exec('begin immediate')
    try {
      await work(this.db)
    } catch (error) {
      this.db.exec('rollback')
      this.ends.push('rollback')
      throw error
    }
    this.db.exec('commit')
    this.ends.push('commit')
  }

  get moves(): readonly { amount: number; at: string }[] {
    return this.db.prepare('select amount, at from moves order by rowid').all() as { amount: number; at: string }[]
  }

  close(): void {
    this.db.close()
  }
}

interface Tx {
  prepare(sql: string): { run(...values: unknown[]): unknown }
}

const move = (tx: unknown, amount: number): void =>
  void (tx as Tx).prepare('insert into moves values (?, ?)').run(amount, new Date().toISOString())

const transfer = workflow(
  'transfer',
  { retry: { initial: '1 min', jitter: { mode: 'none' } } },
  async (ctx, amount: number) => {
    await ctx.transaction('debit', (tx) => move(tx, -amount))
    await ctx.sleep('1 min')
    await ctx.transaction('credit', (tx) => move(tx, amount))
  },
)

describe('createTest({ store, transaction })', () => {
  it("performs transactions with the user's library, in the database and on the time of the test", async () => {
    const library = new Library()
    const { path, transaction } = library
    await using t = await createTest({ workflows: [transfer], store: `sqlite:${path}`, transaction })
    const run = await t.start(transfer, 5)
    await t.drain()
    expect(library.moves).toEqual([{ amount: -5, at: '2030-01-01T00:00:00.000Z' }])
    await t.crash()
    await t.advance('1 min')
    expect(await run.status()).toBe('succeeded')
    expect(library.moves).toEqual([
      { amount: -5, at: '2030-01-01T00:00:00.000Z' },
      { amount: 5, at: '2030-01-01T00:01:00.000Z' },
    ])
    expect(t.attempts().map(({ step, outcome }) => `${step} ${outcome}`)).toEqual([
      'debit succeeded',
      'credit succeeded',
    ])
    library.close()
  })

  it('rolls back what an attempt wrote that fails after its work is done', async () => {
    const library = new Library()
    const { path, transaction } = library
    await using t = await createTest({ workflows: [transfer], store: `sqlite:${path}`, transaction })
    t.fail('debit', { when: 'after' })
    await t.start(transfer, 5)
    await t.drain()
    expect(library.moves).toEqual([])
    await t.advance('1 min')
    expect(library.moves).toEqual([{ amount: -5, at: '2030-01-01T00:01:00.000Z' }])
    expect(library.ends).toEqual(['rollback', 'commit'])
    library.close()
  })

  it('rolls back what a process wrote that dies in the middle, and the next one writes it once', async () => {
    const library = new Library()
    const { path, transaction } = library
    await using t = await createTest({ workflows: [transfer], store: `sqlite:${path}`, transaction })
    t.slow('debit', '1 min', { times: 1 })
    await t.start(transfer, 5)
    await t.drain()
    expect(library.ends).toEqual([])
    await t.crash()
    expect(library.ends).toEqual(['rollback', 'commit'])
    expect(library.moves).toHaveLength(1)
    expect(t.attempts('debit').map(({ outcome }) => outcome)).toEqual(['died', 'succeeded'])
    library.close()
  })

  it('needs no library: then the store begins them', async () => {
    const count = workflow('count', {}, async (ctx) =>
      ctx.transaction('count', (tx) => {
        ;(tx as { exec(sql: string): void }).exec('create table counted (n integer)')
        return 'counted'
      }),
    )
    await using t = await createTest({ workflows: [count], store: 'sqlite::memory:' })
    const run = await t.start(count)
    await t.drain()
    expect(await run.result()).toBe('counted')
  })
})

describe('crashEverywhere({ store, transaction })', () => {
  it('lets the process die before and after every COMMIT of the library: what it wrote is there exactly once', async () => {
    let library = new Library()
    const ends = new Set<string>()
    const report = await crashEverywhere(transfer, 5, {
      services: () => ({ library: (library = new Library()) }),
      store: (clock) => openSqliteStore({ path: library.path, clock }),
      transaction: (work) => library.transaction(work),
      check: ({ services }) => {
        for (const end of services.library.ends) ends.add(end)
        assert.deepEqual(
          services.library.moves.map(({ amount }) => amount),
          [-5, 5],
        )
        services.library.close()
      },
    })
    expect(report.boundaries).toBeGreaterThanOrEqual(3)
    expect(report.withoutKey).toEqual(['credit', 'debit'])
    expect([...ends].toSorted()).toEqual(['commit', 'rollback'])
  })

  it('refuses a file that all trials would share', async () => {
    const { path, transaction } = new Library()
    const trying = crashEverywhere(transfer, 5, { store: `sqlite:${path}`, transaction })
    await expect(trying).rejects.toThrow(/holds runs already.*every trial of crashEverywhere/s)
  })
})

describe('a store is refused, with what to do instead, that', () => {
  const refusal = (options: object): Promise<unknown> =>
    createTest({ workflows: [transfer], ...options }).then(
      () => 'opened',
      (error: unknown) => error,
    )

  it('has no transactions, or is missing', async () => {
    const { transaction } = new Library()
    expect(await refusal({ transaction })).toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('createTest({ transaction }) needs `store`, too') as string,
    })
    expect(await refusal({ transaction, store: 'memory:' })).toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('goes by a clock of its own', async () => {
    expect(await refusal({ store: () => openSqliteStore({ path: ':memory:' }) })).toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('Pass the clock on to the store') as string,
    })
    expect(await refusal({ store: 'postgres://localhost/test' })).toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('goes by the clock of its server') as string,
    })
    const store = await openSqliteStore({ path: ':memory:' })
    expect(await refusal({ store })).toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('A store that is already open uses its own time') as string,
    })
    await store.close()
  })

  it('holds runs already', async () => {
    const store = `sqlite:${join(folder, 'used.db')}`
    const holdfast = await createHoldfast({ store, workflows: [transfer], logger: silentLogger })
    await holdfast.start(transfer, 5)
    await holdfast.close()
    expect(await refusal({ store })).toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('holds runs already, of "transfer"') as string,
    })
  })
})
