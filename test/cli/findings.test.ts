// What the deploy gate keeps and prints of what it finds: bounded, whatever there is to find, and harmless.

import { describe, expect, it } from 'vitest'
import { findingLines, Findings } from '../../src/cli/output/findings.ts'
import { HoldfastError } from '../../src/core/errors/error.ts'
import type { ReplayResult } from '../../src/engine/replay/replay-run.ts'
import { poison } from '../poison.ts'
import { hazardous } from './world.ts'

const run = (at: number) => ({ id: `run-${at}`, type: 'shop.order', version: 1 })
const throws = (message: string): ReplayResult => ({ outcome: 'throws', error: new Error(message) })

describe('findings', () => {
  it('are the same for runs that differ by nothing but their ids', () => {
    const findings = new Findings()
    for (let at = 0; at < 1_000; at += 1) findings.add(run(at), throws(`Run run-${at} has no shelf`))
    for (let at = 0; at < 10; at += 1) findings.add(run(at), { outcome: 'same' })
    const { runs, all } = findings
    expect({ runs, all: all.map(({ kind, runs: many, ids }) => [kind, many, ids.length]) }).toEqual({
      runs: 1_000,
      all: [['throws', 1_000, 100]],
    })
    expect(all[0]?.ids.slice(0, 2)).toEqual(['run-0', 'run-1'])
  })

  it('do not grow without end when every run has one of its own', () => {
    const findings = new Findings()
    for (let at = 0; at < 1_000; at += 1) findings.add(run(at), throws(`Number ${at}`))
    expect([findings.runs, findings.all.length, findings.unlisted]).toEqual([1_000, 200, 800])
  })

  it('come with those first that most runs share', () => {
    const findings = new Findings()
    findings.add(run(1), new HoldfastError('WORKFLOW_UNKNOWN', 'Nobody knows it'))
    for (const at of [2, 3]) {
      const [recorded, now] = [{ status: 'succeeded', output: at } as const, { status: 'waiting' } as const]
      findings.add(run(at), { outcome: 'ends-otherwise', recorded, now })
    }
    expect(findings.all.map(({ kind, runs }) => [kind, runs])).toEqual([
      ['ends-otherwise', 2],
      ['unknown-workflow', 1],
    ])
  })

  it('are printed without anything that a terminal would obey', () => {
    const texts = poison.map(({ value }) => value()).filter((value) => typeof value === 'string')
    expect(texts.length).toBeGreaterThan(10)
    for (const text of texts) {
      const findings = new Findings()
      findings.add({ id: 'run-1', type: text, version: 1 }, throws(text))
      expect(findings.all.flatMap(findingLines).join('\n')).not.toMatch(hazardous)
    }
  })
})
