// A statement has one name wherever it is made: processes behind one pooler share what is prepared.

import { describe, expect, it } from 'vitest'
import { statement } from '../../../../src/stores/postgres/dialect.ts'

describe('a statement', () => {
  it('has the same name for the same text, whichever process makes it, and another for any other text', () => {
    expect(statement('get.read', 'select 1').name).toBe(statement('find.read', 'select 1').name)
    const texts = Array.from({ length: 20_000 }, (_, index) => `select ${index} from runs where ${index % 7}`)
    expect(new Set(texts.map((text) => statement([], text).name)).size).toBe(texts.length)
  })

  it('never changes its name: an update of the program finds what the old one has prepared', () => {
    expect(statement([], 'select 1').name).toMatch(/^holdfast-[0-9a-f]{16}$/)
    expect(statement([], 'ab').name).not.toBe(statement([], 'ba').name)
  })

  it('has a name that Postgres does not cut', () => {
    expect(statement([], 'x'.repeat(10_000)).name.length).toBeLessThan(63)
  })

  it('takes one place in the plan, several, or none', () => {
    expect(statement('get.read', '').plan).toEqual(['get.read'])
    expect(statement(['deliver.bump', 'deliver.insert'], '').plan).toEqual(['deliver.bump', 'deliver.insert'])
    expect(statement([], '').plan).toEqual([])
  })
})
