// A text of several statements is taken apart where they end, and nowhere else.

import { expect, it } from 'vitest'
import { migrations } from '../../../../../src/stores/postgres/schema/schema.ts'
import { splitSql } from '../../../../../src/stores/postgres/schema/split-sql.ts'

it('a semicolon ends a statement unless it is in a comment, a text or a name', () => {
  const text = `
    create table "a;b" (c text default 'd;''e;'); -- One; two.
    -- Three; four.
    drop table f;;
    select 5 - 6`
  expect(splitSql(text)).toEqual([
    `create table "a;b" (c text default 'd;''e;')`,
    '-- One; two.\n    -- Three; four.\n    drop table f',
    'select 5 - 6',
  ])
})

it('what is only a comment is no statement', () => {
  expect(splitSql('-- nothing; at all\n')).toEqual([])
})

it('every statement of a migration begins with what it does', () => {
  const all = migrations.flatMap((migration) => splitSql(migration('s')))
  const verbs = all.map((text) => /^(?:--[^\n]*\n\s*)*(\w+)/.exec(text)?.[1])
  expect(verbs.filter((verb) => !['create', 'alter', 'drop', 'insert', 'update'].includes(verb ?? ''))).toEqual([])
  expect(all.length).toBeGreaterThan(migrations.length)
})
