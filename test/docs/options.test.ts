// docs/options.md lists exactly the options that the code takes, and the presets with their numbers.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { startOptionNames } from '../../src/client/start/start-options.ts'
import { retryOptionNames, retryPresets } from '../../src/core/definition/retry.ts'
import { transactionOptionNames } from '../../src/functions/api/call-options.ts'
import { workflowOptionNames } from '../../src/functions/api/workflow.ts'
import { deciderOptionNames } from '../../src/deciders/decider.ts'
import { holdfastOptionNames } from '../../src/holdfast-options.ts'
import { projectionOptionNames } from '../../src/projections/definition.ts'
import { tableOptionNames } from '../../src/projections/table-projection.ts'
import { testOptionNames } from '../../src/testing/kit/create-test.ts'
import { workOptionNames } from '../../src/worker/work-options.ts'

const [, ...sections] = readFileSync('docs/options.md', 'utf8').split(/^## /m)

/** The rows of the table of a section whose first column has that title. */
function rowsOf(heading: string, first: string): readonly (readonly string[])[] {
  const section = sections.find((text) => text.startsWith(`\`${heading}`)) ?? ''
  const lines = section.split('\n')
  const begin = lines.findIndex((line) => line.startsWith(`| ${first} `))
  const rest = lines.slice(begin + 2)
  const end = rest.findIndex((line) => !line.startsWith('|'))
  return rest.slice(0, end === -1 ? rest.length : end).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
}

describe('docs/options.md', () => {
  it.each([
    ['createHoldfast(', 'option', holdfastOptionNames],
    ['workflow(', 'option', workflowOptionNames],
    ['decider(', 'option', deciderOptionNames],
    ['projection(', 'option', projectionOptionNames],
    ['tableProjection(', 'option', tableOptionNames],
    ['ctx.step(', 'option', transactionOptionNames],
    ['holdfast.start(', 'option', startOptionNames],
    ['holdfast.work(', 'option', workOptionNames],
    ['retry', 'field', retryOptionNames],
    ['retry', 'preset', Object.keys(retryPresets)],
  ])('lists under %s every %s that the code takes', (heading, first, names) => {
    expect(rowsOf(heading, first).map(([name]) => name)).toEqual(names)
  })

  it('gives a default and a sentence for each option', () => {
    for (const heading of [
      'createHoldfast(',
      'workflow(',
      'decider(',
      'projection(',
      'tableProjection(',
      'ctx.step(',
      'holdfast.start(',
      'holdfast.work(',
    ]) {
      for (const row of rowsOf(heading, 'option')) expect(row).not.toContain('')
    }
  })

  it('gives the attempts of each preset', () => {
    const attempts = rowsOf('retry', 'preset').map(([name, count]) => [name, Number(count)])
    expect(attempts).toEqual(Object.entries(retryPresets).map(([name, { maxAttempts }]) => [name, maxAttempts]))
  })
})

it('docs/testing-your-workflows.md names options of createTest that there are', () => {
  const text = readFileSync('docs/testing-your-workflows.md', 'utf8')
  const row = text.split('\n').find((line) => line.startsWith('| `createTest({ workflows')) ?? ''
  const [, ...named] = Array.from(row.matchAll(/`(\w+)`/g), ([, name]) => name)
  expect(named.length).toBeGreaterThan(1)
  expect(testOptionNames).toEqual(expect.arrayContaining(named))
})
