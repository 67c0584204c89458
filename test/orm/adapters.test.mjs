// Each library's transaction as a `SqlHandle`: what is sent through it belongs to the transaction, and values come and go
// untouched.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sqlHandleOf } from '../../src/stores/sql-handle.ts'
import { findPostgres } from './database.mjs'
import { libraries } from './libraries.mjs'

const found = await findPostgres()

describe.skipIf(found === null)('(PQ-C3) a transaction of', () => {
  const admin = new pg.Client({ connectionString: found?.url })

  beforeAll(async () => {
    await admin.connect()
    await admin.query('drop table if exists orders, sent')
    await admin.query('create table orders (id text primary key, note text)')
    await admin.query(
      'create table sent (id int primary key, big_one bigint, words text, list_of int[], is_so boolean, data json)',
    )
  })
  afterAll(async () => {
    await admin.end()
    await found?.stop()
  })

  describe.each(libraries)('$name', ({ open }) => {
    let library
    beforeAll(async () => {
      library = await open(found.url)
      await admin.query('truncate orders, sent')
    })
    afterAll(() => library?.close())

    it('carries what is sent through it, and only if it commits', async () => {
      await library.transaction(async (tx) => {
        await library.insert(tx, 'kept')
        await sqlHandleOf(tx).query('insert into orders (id) values ($1::text)', ['kept, too'])
      })
      const rolledBack = library.transaction(async (tx) => {
        await library.insert(tx, 'lost')
        await sqlHandleOf(tx).query('insert into orders (id) values ($1::text)', ['lost, too'])
        throw new Error('rolled back')
      })
      await expect(rolledBack).rejects.toThrow('rolled back')
      const { rows } = await admin.query('select id from orders order by id')
      expect(rows.map(({ id }) => id)).toEqual(['kept', 'kept, too'])
    })

    it('passes values on untouched', async () => {
      const words = `it's "quoted" \\ $1 ? ?? 日本語 🙂 line\nbreak`
      const data = JSON.stringify({ words, list: [1, 2], nothing: null })
      const rows = await library.transaction(async (tx) => {
        const handle = sqlHandleOf(tx)
        const values = [1, 2 ** 40, words, '{1,2,3}', data]
        const inserted = await handle.query(
          `insert into sent (id, big_one, words, list_of, is_so, data)
           values ($1::int, $2::bigint, $3::text, $4::text::int[], '{"a":1}'::jsonb ? 'a', $5::text::json)
           returning id, big_one`,
          values,
        )
        const nulls = await handle.query('insert into sent (id, words) select $2::int, $1::text', [null, 2])
        expect(nulls).toEqual([])
        expect(inserted).toHaveLength(1)
        expect(Object.keys(inserted[0])).toEqual(['id', 'big_one'])
        expect(Number(inserted[0].big_one)).toBe(2 ** 40)
        const updated = await handle.query(
          'update sent set words = words || $1::text where id = $2::int returning id, words, big_one',
          ['!', 1],
        )
        expect(updated).toHaveLength(1)
        const all = handle.query('select id, words from sent order by id', [])
        const count = handle.query('select count(*)::int as how_many from sent where words is null', [])
        expect(await all).toMatchObject([{ words: `${words}!` }, { words: null }])
        expect(Number((await count)[0].how_many)).toBe(1)
        return handle.query(
          `with given as (select * from json_to_recordset($1::text::json) as given (id int, "runId" text))
           select sent.id, list_of::text as list_of, is_so, data::text as data_text, "runId" as run_id
           from sent join given on given.id = sent.id`,
          [JSON.stringify([{ id: 1, runId: 'r' }])],
        )
      })
      expect(rows).toHaveLength(1)
      expect(rows[0]).toMatchObject({ list_of: '{1,2,3}', is_so: true, run_id: 'r', data_text: data })
    })

    it('is told apart from what is none', () => {
      expect(() => sqlHandleOf(library.misuse)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    })
  })
})
