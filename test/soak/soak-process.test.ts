// `npm run soak` in small, as real processes on a SQLite file: once to its end, and once until it is interrupted.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, it } from 'vitest'
import { elementsOf } from './xml.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-soak-'))
const env = { ...process.env, TMPDIR: folder, TMP: folder, TEMP: folder }
afterAll(() => rmSync(folder, { recursive: true }))

interface Printed {
  readonly code: number | null
  readonly output: string
}

/** Runs it to its end, or until a line comes that makes it end. */
async function soak(args: readonly string[], interruptAt?: RegExp): Promise<Printed> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'bench/soak/main.ts', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line)
      if (interruptAt?.test(line) === true) child.kill('SIGINT')
    })
  }
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output: lines.join('\n') }
}

/** What it left in the folder for temporary files. */
const leftovers = () => readdirSync(folder).filter((name) => name.startsWith('holdfast-'))

const recorded = (out: string) =>
  readFileSync(`${out}.ndjson`, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)

describe('a soak', { timeout: 300_000 }, () => {
  it('measures, lets mixed work arrive, looks at everything, draws it and finds nothing wrong', async () => {
    const out = join(folder, 'whole')
    const { code, output } = await soak(['--minutes', '0.25', '--store', 'sqlite', '--share', '0.3', '--out', out])
    expect(output).toMatch(/✓ Nothing is wrong\.\n.*whole\.svg shows it/)
    expect(code).toBe(0)
    expect(output).toMatch(/Capacity [\d,.]+ runs\/s; now 30\.0 % of it arrives/)
    // Of each kind some, or what they do was not looked at.
    for (const kind of ['order', 'reminder', 'approval', 'trip', 'payment', 'refund', 'reader']) {
      expect(output).toMatch(new RegExp(`^${kind} +[1-9][\\d,]* `, 'm'))
    }
    const [setting, ...rest] = recorded(out)
    expect(setting).toMatchObject({ kind: 'setting', store: 'sqlite', share: 0.3 })
    expect(rest.filter(({ kind }) => kind === 'sample').length).toBeGreaterThan(3)
    expect(rest.filter(({ kind }) => kind === 'visit')).not.toEqual([])
    expect(rest.at(-1)).toMatchObject({ kind: 'visit', violations: [] })
    expect(elementsOf(readFileSync(`${out}.svg`, 'utf8')).filter(({ name }) => name === 'path')).toHaveLength(9)
    expect(leftovers()).toEqual([])
  })

  it('that cannot begin says why, and leaves nobody behind', async () => {
    const { code, output } = await soak(['--store', `sqlite:${join(folder, 'nowhere', 'x.db')}`])
    expect(output).toContain('does its folder exist')
    expect(output).toContain('The worker ended with exit code 1; see above.')
    expect(code).toBe(1)
  })

  it('that is interrupted closes in good order and draws what there is', async () => {
    const out = join(folder, 'part')
    const { code, output } = await soak(['--minutes', '0.2', '--out', out], /\d in\/s/)
    expect(output).toContain('Ends in good order')
    expect(output).toMatch(/part\.svg shows it/)
    expect(code).toBe(0)
    expect(recorded(out).filter(({ kind }) => kind === 'sample')).not.toEqual([])
    expect(elementsOf(readFileSync(`${out}.svg`, 'utf8'))[0]).toMatchObject({ name: 'svg' })
    expect(leftovers()).toEqual([])
  })
})
