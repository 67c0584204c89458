// The primary is killed under load and its standby takes its place behind the same address, again and again. What was
// acknowledged is there if the standby followed synchronously; if it had lost touch, the checker names what is not.

import { rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { performChaos } from './chaos.ts'

const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000)
const print = (line: string): void => console.log(line)

describe('chaos with failovers to a standby that follows synchronously', { timeout: 6 * 60_000 }, () => {
  it(`loses nothing that was acknowledged, and doubles nothing (seed ${seed})`, async () => {
    const { violations, result } = await performChaos({
      store: 'postgres',
      minutes: 0.7,
      seed,
      workers: 4,
      plant: 'none',
      only: ['failover'],
      print,
    })
    expect(violations).toEqual([])
    expect(result?.counts).toMatchObject({ lost: 0, doubled: 0 })
    expect(result?.counts.recoveries).not.toEqual([])
  })
})

describe('chaos with failovers to a standby that has lost touch', { timeout: 6 * 60_000 }, () => {
  it(`names every run that was acknowledged and is lost, and doubles none (seed ${seed})`, async () => {
    const { violations, result, dumped } = await performChaos({
      store: 'postgres',
      minutes: 0.7,
      seed,
      workers: 4,
      plant: 'lost-touch',
      only: ['failover'],
      print,
    })
    expect(violations.map(({ name }) => name)).toContain('start_not_lost')
    expect(result?.counts).toMatchObject({ doubled: 0 })
    rmSync(dumped ?? '', { recursive: true })
  })
})
