// docs/errors.md is where a person lands with a code in hand: every code is there, once, and says what to do.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { errorCodes, HoldfastError } from '../../src/core/errors/error.ts'

const rows = readFileSync('docs/errors.md', 'utf8')
  .split('\n')
  .filter((line) => /^\| `[A-Z_]+`/.test(line))
  .map((line) => line.split('|').slice(1, -1))
  .map((cells) => cells.map((cell) => cell.trim().replaceAll('`', '')))

describe('docs/errors.md', () => {
  it('lists exactly the codes that exist', () => {
    expect(rows.map(([code]) => code ?? '').toSorted()).toEqual([...errorCodes].toSorted())
  })

  it.each(errorCodes)('%s has its family, its meaning and what to do', (code) => {
    const [, family, meaning, remedy] = rows.find((row) => row[0] === code) ?? []
    expect(family).toBe(new HoldfastError(code, '').family)
    expect(meaning?.length).toBeGreaterThan(10)
    expect(remedy?.length).toBeGreaterThan(10)
  })
})
