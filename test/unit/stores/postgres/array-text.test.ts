// Batches as columns: what the server reads is what was sent, whatever stands in it.

import fc from 'fast-check'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { ArrayText, rowsFrom } from '../../../../src/stores/postgres/array-text.ts'
import { sharedPostgres } from '../../../support/postgres-shared.ts'

type Cell = string | number | null

function arrayOf(cells: readonly Cell[]): string {
  const array = new ArrayText()
  for (const cell of cells) array.add(cell)
  return String(array)
}

/** The rows as the server reads them. */
async function read(
  columns: Readonly<Record<string, string>>,
  values: readonly string[],
  shard: number | null = 0,
): Promise<readonly unknown[]> {
  const client = new Client({ connectionString: await sharedPostgres() })
  await client.connect()
  try {
    const text = `select * from ${rowsFrom(columns, 2)} as given`
    const { rows } = await client.query<Readonly<Record<string, unknown>>>(text, [shard, ...values])
    return rows
  } finally {
    await client.end()
  }
}

describe('an array', () => {
  it('of nothing but nulls is empty, and gives a null in each row of longer ones', async () => {
    expect(arrayOf([null, null])).toBe('{}')
    expect(await read({ a: 'text', b: 'integer' }, [arrayOf(['x', 'y']), arrayOf([null, null])])).toEqual([
      { a: 'x', b: null },
      { a: 'y', b: null },
    ])
  })

  it('gives no row at all without a shard', async () => {
    expect(await read({ a: 'text' }, [arrayOf(['x'])], null)).toEqual([])
  })

  it.each([
    ['the word for nothing', ['null', 'NULL', '']],
    ['what arrays are made of', ['{}', '{a,b}', ',', '"', '\\', '\\"', ' a ', '"a"']],
    ['lines, tabs and other control characters beside quotes', ['"\n', '\\\t"', '"\u0001', '"\u007f']],
    ['characters outside of the first plane beside quotes', ['"😀', '😀\\', '"\u2028"']],
    ['JSON in JSON', [JSON.stringify({ text: JSON.stringify(['a"b', 'c\\d', '\n']) })]],
  ])('keeps %s', async (_, texts) => {
    const rows = await read({ text: 'text' }, [arrayOf(texts)])
    expect(rows).toEqual(texts.map((text) => ({ text })))
  })

  it('keeps every text that Postgres can store, beside numbers and nulls', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 20 }).map((some) => some.replaceAll('\0', '"'))
    const row = fc.tuple(fc.option(text), fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })))
    const samples = fc.sample(fc.array(row, { minLength: 200, maxLength: 300 }), { numRuns: 5, seed: 7 })
    for (const rows of samples) {
      const sent = [arrayOf(rows.map(([a]) => a)), arrayOf(rows.map(([, b]) => b))]
      expect(await read({ a: 'text', b: 'integer' }, sent)).toEqual(rows.map(([a, b]) => ({ a, b })))
    }
  })
})
