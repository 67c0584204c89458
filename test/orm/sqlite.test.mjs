// The libraries that open a SQLite file, each with its real package: a run exists if and only if the transaction on the user's
// own connection commits.

import { mkdtempSync, rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { drizzle as drizzleBetter } from 'drizzle-orm/better-sqlite3'
import { sql } from 'drizzle-orm'
import { createHoldfast, workflow } from '../../src/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const double = workflow('orm.double', (_ctx, n) => n * 2)
const patient = workflow('orm.patient', (ctx) => ctx.sleep('1 h'))

async function openBetterSqlite(path) {
  const { default: Database } = await import('better-sqlite3')
  return new Database(path)
}

/** Some applications read every whole number as a bigint. */
async function openBetterSqliteWithBigints(path) {
  const db = await openBetterSqlite(path)
  db.defaultSafeIntegers(true)
  return db
}

async function openLibsql(path) {
  const { default: Database } = await import('libsql')
  return new Database(path)
}

async function openNodeSqlite(path) {
  const { DatabaseSync } = await import('node:sqlite')
  return new DatabaseSync(path)
}

/** Why a library cannot be had here; null if it can. Only `better-sqlite3` is compiled, where its script may run. */
async function whyNot(open) {
  try {
    const db = await open(':memory:')
    db.close()
    return null
  } catch (error) {
    return error.message.split('\n')[0]
  }
}

const handles = [
  { name: 'better-sqlite3', open: openBetterSqlite },
  { name: 'better-sqlite3 with bigints', open: openBetterSqliteWithBigints },
  { name: 'libsql', open: openLibsql },
  { name: 'node:sqlite', open: openNodeSqlite, missing: isBuiltin('node:sqlite') ? null : 'this runtime has none' },
]

async function world(open, handle = false) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-orm-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'app.db')
  const db = await open(path)
  onTestFinished(() => db.close())
  const store = await openSqliteStore(handle ? { handle: db } : { path })
  onTestFinished(() => store.close())
  db.exec('create table orders (id text primary key)')
  return {
    db,
    store,
    orders: () =>
      db
        .prepare('select id from orders order by id')
        .all()
        .map(({ id }) => id),
  }
}

for (const { name, open, missing } of handles) {
  const why = missing ?? (await whyNot(open))
  describe.skipIf(why !== null)(`(PQ-C3) a transaction of ${name}${why === null ? '' : `: ${why}`}`, () => {
    // A store over a connection reads numbers as its owner configured it, so that one needs its own.
    const places = name.endsWith('bigints') ? [false] : [false, true]
    it.each(places)('starts, delivers and cancels if and only if it commits; the store on it: %s', async (on) => {
      const { db, store, orders } = await world(open, on)
      const holdfast = await createHoldfast({ store, workflows: [double, patient], logger: quiet })
      onTestFinished(() => holdfast.close())
      await holdfast.work()
      const insert = (id) => db.prepare('insert into orders (id) values (?)').run(id)
      const waiting = await holdfast.start(patient)

      db.exec('begin immediate')
      insert('lost')
      const lost = await holdfast.using(db).start(double, 1)
      await holdfast.using(db).cancel(waiting)
      db.exec('rollback')
      await expect(lost.status()).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
      expect(['pending', 'running', 'waiting']).toContain(await waiting.status())

      db.exec('begin')
      insert('kept')
      const using = holdfast.using(db)
      const kept = await using.start(double, 21, { key: 'kept', tags: ['a', 'b'], timeout: '1 h' })
      expect(await using.signal(waiting, 'paid', 3)).toMatchObject({ outcome: expect.any(String) })
      await using.cancel(waiting)
      db.exec('commit')
      expect(await kept.result()).toBe(42)
      await expect(waiting.result()).rejects.toMatchObject({ code: 'RUN_CANCELLED' })
      expect(orders()).toEqual(['kept'])
      expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
      expect(() => holdfast.using(db)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    })

    it('is what ctx.transaction lends to its function', async () => {
      const { db, store, orders } = await world(open, true)
      const book = workflow('orm.book', { retry: { maxAttempts: 2, initial: 1 } }, (ctx, id) =>
        ctx.transaction('insert', async (tx, step) => {
          if (name.startsWith('better-sqlite3')) drizzleBetter(tx).run(sql`insert into orders (id) values (${id})`)
          else tx.prepare('insert into orders (id) values (?)').run(id)
          await new Promise((resolve) => setImmediate(resolve))
          if (step.attempt === 1) throw new Error('rolled back')
          return step.attempt
        }),
      )
      if (name.endsWith('bigints')) db.defaultSafeIntegers(false)
      const holdfast = await createHoldfast({ store, workflows: [book], logger: quiet })
      onTestFinished(() => holdfast.close())
      await holdfast.work()
      expect(await (await holdfast.start(book, 'a')).result()).toBe(2)
      expect(orders()).toEqual(['a'])
    })
  })
}
