// Every statement that the store makes, as a text: none of them leaves it to the search path what a name means. What is asked
// of Postgres itself, among traps, stands in `test/postgres/hostile-overloads.long.ts`; this says at once which words to write.

import { describe, expect, it, vi } from 'vitest'
import type * as DialectModule from '../../../../src/stores/postgres/dialect.ts'

const made = vi.hoisted(() => new Set<string>())
vi.mock('../../../../src/stores/postgres/dialect.ts', async (original) => {
  const module = await original<typeof DialectModule>()
  const statement: typeof module.statement = (plan, text) => {
    made.add(text)
    return module.statement(plan, text)
  }
  return { ...module, statement }
})

const { databaseClock } = await import('../../../../src/stores/postgres/dialect.ts')
const { claimStatements } = await import('../../../../src/stores/postgres/claim/claim-statements.ts')
const { settingsFor, settingsSql } = await import('../../../../src/stores/postgres/connection/pool.ts')
const { timesFor, timesSql } = await import('../../../../src/stores/postgres/connection/timeouts.ts')
const { PostgresStore } = await import('../../../../src/stores/postgres/store.ts')

const schema = '"holdfast"'
const id = '01890000-0000-7000-8000-000000000000'

/** Words of the language that stand before a bracket, and mean the same everywhere. */
const words = [
  'any',
  'all',
  'array',
  'case',
  'cast',
  'coalesce',
  'exists',
  'extract',
  'greatest',
  'in',
  'least',
  'nullif',
  'over',
]

/** Each is in Postgres for exactly the types that we give it, and so is found there first. Several arrays are a form of its own. */
const exact = [
  'count',
  'max',
  'min',
  'row_number',
  'sum',
  'length',
  'octet_length',
  'json_array_elements',
  'json_array_elements_text',
  'json_to_record',
  'json_to_recordset',
  'unnest',
]

async function statements(): Promise<readonly string[]> {
  const dialects = [1, 4].flatMap((shards) =>
    (['skip locked', ''] as const).map((skipLocked) => {
      const feedNumber = `'${schema}.feed_number'::regclass`
      return { schema, now: databaseClock, feedNumber, shards, skipLocked, isSpread: skipLocked === '' }
    }),
  )
  for (const dialect of dialects) {
    const x = { hints: [], execute: () => Promise.resolve([{ at: 1 }]) }
    const database = {
      reserved: () => database,
      alone: (work: (execution: typeof x) => Promise<unknown>) => work(x),
    }
    const store = new PostgresStore({
      database: database as never,
      dialect,
      namespace: 'holdfast',
      monotonic: () => 0,
      random: () => 0,
      migrate: () => Promise.resolve(),
      tokenKey: () => Promise.resolve(''),
      hints: {
        hears: false,
        listen: () => Promise.resolve(() => undefined),
        notifyInTransaction: null,
        attend: () => undefined,
        expectEnds: () => false,
      },
      onClose: () => Promise.resolve(),
    })
    const filter = { createdFrom: 1, createdBefore: 2, version: 1, typePrefix: 'a', types: ['a'] }
    const kinds = [{}, { tag: 't' }, { ids: [id] }, { idempotencyKey: 'i' }, { key: 'k' }, { parentId: id }]
    const statuses = [['running'], ['failed'], ['pending']] as const
    for (const kind of [...kinds, ...statuses.map((some) => ({ statuses: some }))]) {
      for (const after of [undefined, id]) {
        const page = { limit: 10, ...(after === undefined ? {} : { after }) }
        await store.find({ ...filter, ...kind }, page).catch(() => undefined)
      }
      await store.count({ ...filter, ...kind }, 10)
    }
    await store.deadLetters({ name: 'n', runId: id }, { limit: 10, after: `${id} letter` }).catch(() => undefined)
    const claims = claimStatements(dialect)
    for (const choice of [undefined, { keys: ['key'], without: [id] }]) {
      claims.isolated(choice !== undefined)
      claims.promote(choice !== undefined)
      for (const types of [1, 200]) {
        const selectors = Array.from({ length: types }, () => ({}) as never)
        const request = {
          shard: 0,
          session: 's',
          limit: 1,
          window: 1,
          offset: 0,
          again: false,
          isInTurn: true,
          selectors,
          choice,
          timed: {} as never,
        }
        claims.lease(request)
      }
    }
  }
  const settings = settingsSql(settingsFor(1_000, 'shortly'))
  return [...made, settings, `select ${timesSql(timesFor(1_000, 'long'), false)}`]
}

describe('a statement', async () => {
  const texts = await statements()

  it('is one of many, and they are all of them', () => {
    expect(texts.length).toBeGreaterThan(120)
    expect(texts.join('\n')).toContain('pg_catalog.starts_with')
  })

  it('calls no function that another schema could have for types that fit better', () => {
    const called = texts.flatMap((text) => Array.from(text.matchAll(/(?<![\w."$])([a-z_]+)\(/g), ([, name]) => name))
    const bare = new Set(called.filter((name) => name !== undefined && ![...words, ...exact].includes(name)))
    expect([...bare]).toEqual([])
  })

  it('says of every key of a JSON object that it is a text: a bare one is taken for JSON', () => {
    expect(texts.filter((text) => /->>? *'[^']*'(?!::text)/.test(text))).toEqual([])
  })

  it('counts in whole numbers, for which Postgres has every operator', () => {
    const others = /\b(?:numeric|decimal|real|double precision|float[48]?)\b|(?<![\w.'"$])[0-9]+(?:\.[0-9]|e[0-9])/
    expect(texts.filter((text) => others.test(text.replaceAll(databaseClock, 'now')))).toEqual([])
  })

  it('joins nothing but texts to a text', () => {
    const joined = texts.flatMap((text) => text.match(/\S+ \|\| \S+/g) ?? [])
    const isText = (word: string): boolean => /::text\)?$|^'|'$|^key$|^type$|^text\)$|^cast\(/.test(word)
    expect(joined.filter((pair) => !pair.split(' || ').every(isText))).toEqual([])
  })

  it('casts every parameter where it stands', () => {
    expect(texts.filter((text) => /\$[0-9]+(?!::|[0-9])/.test(text))).toEqual([])
  })
})
