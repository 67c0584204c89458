// The one text of a user that becomes part of a statement.

import { describe, expect, it } from 'vitest'
import { migrate } from '../../../../../src/stores/postgres/schema/migrate.ts'
import { openPostgresStore } from '../../../../../src/stores/postgres/index.ts'
import { checkSchema, quoteSchema, quoteText } from '../../../../../src/stores/postgres/schema/schema-name.ts'
import { installViews, viewNames } from '../../../../../src/stores/postgres/views.ts'
import { emptyPlace, openPool } from '../database.ts'

/** Names that have been tried, or that mean one thing here and another there. */
const hostile: readonly string[] = [
  'UPPER',
  'Mixed',
  'a b',
  ' a',
  'a ',
  'a.b',
  'a-b',
  'a/b',
  'a,b',
  '1a',
  '',
  '$user',
  'a$b',
  `"`,
  `'`,
  `a"b`,
  `a'b`,
  `"'"";drop schema public;--`,
  `a'; drop schema public; --`,
  'a--',
  'a/*b*/',
  'a;b',
  // With standard_conforming_strings off, a backslash takes the quote behind it with it.
  '\\',
  `\\'`,
  `a\\`,
  `\\'; drop schema public; --`,
  `\\' or true --`,
  '\\$1$$',
  `a\\\\'b`,
  'größe',
  '数',
  '🐘',
  'a\nb',
  'a\0b',
  'a\ud800',
  'a\u202eb',
  'a\u200bb',
  'ａ',
  'a\u0301',
  'x'.repeat(64),
]

describe('the name of a schema', () => {
  it.each(['a', '_', 'holdfast', 'select', 'tenant_42', 'x'.repeat(63)])(
    'may be %s, in small letters and without quotes (PQ-S5)',
    (name) => {
      expect(quoteSchema(name)).toBe(`"${name}"`)
    },
  )

  it.each(hostile.map((name) => [name]))('is refused before anything is sent: %j', (name) => {
    expect(() => checkSchema(name)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('is 1 to 63 of a–z, 0–9 and _, and begins with no digit') as string,
      }) as Error,
    )
  })

  it.each([undefined, null, 7, ['holdfast'], { toString: () => 'holdfast' }])('is a text: not %j', (name) => {
    expect(() => checkSchema(name)).toThrow('is 1 to 63 of')
  })

  it.each(['pg_mine', 'pg_catalog', 'pg_temp', 'information_schema'])('is none of Postgres itself: %s', (name) => {
    expect(() => checkSchema(name)).toThrow('is not one of Postgres itself')
  })

  it('gets nothing through by an option, the address or a migration, with standard_conforming_strings off', async () => {
    const { schema, rows, pool } = await emptyPlace()
    const url = new URL(pool.options.connectionString as string)
    url.searchParams.set('options', '-c standard_conforming_strings=off')
    const odd = openPool(url.href)
    const before = await rows('select nspname from pg_namespace order by 1')
    for (const name of hostile) {
      const refused = { code: 'INVALID_OPTION' }
      await expect(migrate(odd, { schema: name })).rejects.toMatchObject(refused)
      await expect(openPostgresStore({ pool: odd, schema: name })).rejects.toMatchObject(refused)
      // An address cannot hold half a character.
      const address = `postgres://127.0.0.1:1/none?${new URLSearchParams({ schema: name }).toString()}`
      await expect(openPostgresStore({ url: address })).rejects.toMatchObject(refused)
    }
    const after = await rows('select nspname from pg_namespace order by 1')
    // Other files of tests make theirs at the same time.
    expect(after.filter(({ nspname }) => hostile.includes(String(nspname)))).toEqual([])
    expect(before.length).toBeGreaterThan(0)
    await migrate(odd, { schema })
    expect(await rows(`select nspname from pg_namespace where nspname = ${quoteText(schema)}`)).toHaveLength(1)
  })

  it('leaves room for those of its views, or they are refused before anything is sent', async () => {
    const { pool } = await emptyPlace()
    const long = 'x'.repeat(60)
    const sent: string[] = []
    const views = installViews(pool, { schema: long, views: viewNames, onSql: (sql) => void sent.push(sql) })
    await expect(views).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(sent).toEqual([])
  })
})

it('a text with a backslash never stands in a statement: what that means is a setting of the server', () => {
  expect(quoteText(`it's`)).toBe(`'it''s'`)
  expect(() => quoteText('\\')).toThrow(expect.objectContaining({ code: 'BUG' }) as Error)
})
