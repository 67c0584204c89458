// The one text of a user that becomes part of a statement.

import { describe, expect, it } from 'vitest'
import { migrate } from '../../../../src/stores/postgres/migrating.ts'
import { quoteSchema, quoteText } from '../../../../src/stores/postgres/schema-name.ts'
import { emptyPlace } from './database.ts'

describe('the name of a schema', () => {
  it.each([
    ['upper case', 'UPPER'],
    ['spaces', ' a  b '],
    ['quotes', `"'"";drop schema public;--`],
    ['a backslash and a dollar', '\\$1$$'],
    ['Unicode', 'größe 数 🐘'],
    ['a word of SQL', 'select'],
    ['a line break', 'a\nb'],
    ['dots', 'a.b.c'],
  ])('may have %s, and the tables stand in exactly that schema (PQ-S5)', async (_, name) => {
    const { pool, schema, rows, quoted } = await emptyPlace(name)
    await migrate(pool, { schema })
    await rows(`insert into ${quoted}.keys (shard, type, key, run_id) values (0, 't', 'k', gen_random_uuid())`)
    const found = await rows(`select nspname from pg_namespace where nspname = ${quoteText(schema)}`)
    expect(found).toEqual([{ nspname: schema }])
    await rows(`drop schema ${quoted} cascade`)
  })

  it('may have 63 bytes and no more: Postgres would cut it short without a word', () => {
    expect(quoteSchema('x'.repeat(63))).toBe(`"${'x'.repeat(63)}"`)
    expect(() => quoteSchema('x'.repeat(64))).toThrow('has at most 63 bytes')
    expect(() => quoteSchema('ü'.repeat(32))).toThrow('has at most 63 bytes')
    expect(quoteSchema('ü'.repeat(31))).toBe(`"${'ü'.repeat(31)}"`)
  })

  it.each([
    ['', 'is a text that is not empty'],
    [undefined, 'is a text that is not empty'],
    [7, 'is a text that is not empty'],
    ['a\0b', 'has no NUL in it'],
    ['a\ud800', 'is well-formed Unicode'],
    ['pg_mine', 'is not one of Postgres itself'],
    ['pg_catalog', 'is not one of Postgres itself'],
    ['information_schema', 'is not one of Postgres itself'],
  ])('is refused before anything is sent: %j', (name, rule) => {
    expect(() => quoteSchema(name)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }) as Error)
    expect(() => quoteSchema(name)).toThrow(rule)
  })
})
