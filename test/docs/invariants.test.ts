// docs/invariants.md lists exactly the invariants that the code checks, in its words.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { tableInvariants } from '../../src/stores/row-checks.ts'
import { bornByStart, stateInvariants, stepInvariants } from '../../src/testing/invariants/index.ts'

const rows = readFileSync('docs/invariants.md', 'utf8')
  .split('\n')
  .filter((line) => /^\| `[a-z_]+`/.test(line))
  .map((line) => line.split('|').slice(1, -1))
  .map(([name = '', about = '', kind = '']) => [name.trim().replaceAll('`', ''), about.trim(), kind.trim()])

const known = [...stateInvariants, ...tableInvariants, bornByStart, ...stepInvariants]

describe('docs/invariants.md', () => {
  it('lists the invariants that exist, with what they say and their kind', () => {
    expect(rows).toEqual(known.map(({ name, about, kind }) => [name, about, kind]))
  })

  it('has no name twice', () => {
    expect(new Set(known.map(({ name }) => name)).size).toBe(known.length)
  })
})
