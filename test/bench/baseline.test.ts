// Files with baselines: what is written, what is kept, and how a wrong one is refused.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkTarget, readBaseline, writeBaseline } from '../../bench/compare/baseline.ts'
import type { Result } from '../../bench/conduct.ts'
import { UsageError } from '../../bench/usage.ts'

const settings = { store: 'memory:', quick: true }
const scenarios = ['runs', 'steps']
let folder = ''
const file = (name: string): string => join(folder, name)

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-baseline-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function resultOf(scenario: string, samples: readonly number[], more: Partial<Result> = {}): Result {
  const value = samples[1] ?? Number.NaN
  return { scenario, case: '', metric: 'late / early', unit: '×', value, samples, goal: null, better: 'lower', ...more }
}

/** The error must say in words what is wrong: a benchmark has no stack trace for its user. */
async function refused(work: Promise<unknown>): Promise<string> {
  const error = await work.catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(UsageError)
  return (error as UsageError).message
}

describe('a baseline', () => {
  it('holds what depends little on the machine, with its range, and reads as it was written', async () => {
    const absolute = resultOf('runs', [1, 2, 3], { metric: 'throughput', better: null })
    const broken = resultOf('runs', [1, Number.NaN, 3], { metric: 'empty claims' })
    await writeBaseline(file('a.json'), settings, [absolute, broken, resultOf('steps', [0.9, 1.00004, 1.1])])
    const { rows, store, quick } = await readBaseline(file('a.json'), settings, scenarios)
    expect({ store, quick }).toEqual({ store: 'memory', quick: true })
    expect(rows).toEqual([
      {
        scenario: 'steps',
        case: '',
        metric: 'late / early',
        unit: '×',
        better: 'lower',
        value: 1,
        low: 0.9,
        high: 1.1,
      },
    ])
  })

  it('keeps what it says about scenarios that were not measured now', async () => {
    await writeBaseline(file('b.json'), settings, [resultOf('runs', [1, 1, 1]), resultOf('steps', [1, 1, 1])])
    await writeBaseline(file('b.json'), settings, [resultOf('steps', [2, 2, 2])])
    const { rows } = await readBaseline(file('b.json'), settings, scenarios)
    expect(rows.map(({ scenario, value }) => [scenario, value])).toEqual([
      ['runs', 1],
      ['steps', 2],
    ])
  })

  it('of another store or another thoroughness keeps nothing when it is written over', async () => {
    await writeBaseline(file('c.json'), settings, [resultOf('runs', [1, 1, 1])])
    await writeBaseline(file('c.json'), { store: 'sqlite:', quick: true }, [resultOf('steps', [2, 2, 2])])
    const { rows } = await readBaseline(file('c.json'), { store: 'sqlite', quick: true }, scenarios)
    expect(rows.map(({ scenario }) => scenario)).toEqual(['steps'])
  })

  it('is not written if nothing of it could be compared', async () => {
    const absolute = resultOf('runs', [1, 2, 3], { better: null })
    expect(await refused(writeBaseline(file('d.json'), settings, [absolute]))).toContain('no baseline was written')
  })
})

describe('a baseline that is refused', () => {
  it('is not there', async () => {
    expect(await refused(readBaseline(file('nope.json'), settings, scenarios))).toContain('--write-baseline')
  })

  it.each([
    ['{', 'it is not JSON'],
    ['[]', 'no baseline of this version'],
    ['{"shape":1,"store":"memory","quick":true,"machine":{},"rows":[]}', 'no baseline of this version'],
    ['{"shape":1,"store":"memory","quick":true,"machine":{},"rows":[{"scenario":"runs"}]}', 'no baseline of this'],
    ['{"shape":2,"store":"memory","quick":true,"machine":{},"rows":[]}', 'no baseline of this version'],
  ])('is %j', async (text, words) => {
    writeFileSync(file('bad.json'), text)
    expect(await refused(readBaseline(file('bad.json'), settings, scenarios))).toContain(words)
    expect(await refused(checkTarget(file('bad.json')))).toContain(words)
  })

  it('is of another store, of another thoroughness, or about a scenario that does not exist', async () => {
    await writeBaseline(file('e.json'), settings, [resultOf('runs', [1, 1, 1])])
    const read = (store: string, quick: boolean, names = scenarios): Promise<unknown> =>
      readBaseline(file('e.json'), { store, quick }, names)
    const other = await refused(read('postgres://user:secret@host/db', true))
    expect(other).toContain('was measured on memory, not on postgres: add --store memory')
    expect(other).not.toContain('secret')
    expect(await refused(read('memory', false))).toContain('was measured with --quick: add it')
    expect(await refused(read('memory', true, ['run', 'steps']))).toContain(
      '"runs", which does not exist. Did you mean run?',
    )
  })

  it('is a folder, or in one that does not exist', async () => {
    expect(await refused(readBaseline(folder, settings, scenarios))).toContain('EISDIR')
    expect(await refused(checkTarget(join(folder, 'no', 'a.json')))).toContain('cannot be written')
    await expect(checkTarget(file('fresh.json'))).resolves.toBeUndefined()
  })
})
