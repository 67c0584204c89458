// A chaos run must be able to fail: over a store with a planted bug it does, within three minutes, and mostly within one.

import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { performChaos } from './chaos.ts'

const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000)
const minutes = 3

describe('chaos over a store with a planted bug', { timeout: (minutes + 3) * 60_000 }, () => {
  it.each(['no-fence', 'blind-retry'] as const)(`finds %s (seed ${seed})`, async (plant) => {
    const { violations, command, dumped } = await performChaos({
      store: 'postgres',
      minutes,
      seed,
      workers: 4,
      plant,
      print: (line) => console.log(line),
    })
    expect(violations.length).toBeGreaterThan(0)
    const folder = dumped ?? ''
    expect(readFileSync(join(folder, 'command'), 'utf8')).toBe(`${command}\n`)
    expect(readFileSync(join(folder, 'timeline'), 'utf8')).toContain('strikes')
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(['history.ndjson', 'runs.ndjson', 'locks.ndjson']))
    rmSync(folder, { recursive: true })
  })
})
