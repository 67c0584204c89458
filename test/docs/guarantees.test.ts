// docs/guarantees.md: its programs do what the page says, and its defaults are those of the code.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { retryPresets } from 'holdfast'

const page = readFileSync('docs/guarantees.md', 'utf8')

/** The program below a heading. */
function programUnder(heading: string): string {
  const [, section = ''] = page.split(`## ${heading}\n`)
  const [, code = ''] = /```ts\n(.*?)\n```/s.exec(section.split(/^## /m)[0] ?? '') ?? []
  if (!code.includes('assert.')) throw new Error(`The program under "${heading}" asserts nothing`)
  return code
}

/** How a program ends, in a process of its own. */
async function run(code: string): Promise<{ readonly status: number | null; readonly stderr: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-guarantees-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'program.mts')
  writeFileSync(file, code)
  const env = { ...process.env, TSX_TSCONFIG_PATH: resolve('tsconfig.json') }
  const child = spawn(process.execPath, ['--import', 'tsx', file], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (text) => (stderr += String(text)))
  const status = await new Promise<number | null>((done) => child.on('close', done))
  return { status, stderr }
}

it(
  'IF-N2 IF-N3 the program of the mailbox shows that inputs wait in line, and that execute overtakes them',
  { timeout: 60_000 },
  async () => {
    const code = programUnder('The mailbox')
    expect(await run(code)).toEqual({ status: 0, stderr: '' })
    const wrong = code.replace("['first', 'at once', 'second', 'third']", "['first', 'second', 'third', 'at once']")
    expect((await run(wrong)).status).toBe(1)
  },
)

it(
  'IF-C7 IF-N1 IF-N3 the program of effects shows one that is performed twice, with one key',
  { timeout: 60_000 },
  async () => {
    const code = programUnder('Effects that may be performed twice')
    expect(await run(code)).toMatchObject({ status: 0 })
    expect((await run(code.replace('set(idempotencyKey,', 'set(String(calls),'))).status).toBe(1)
  },
)

/** The rows of the tables under a heading, cell by cell. */
function rowsUnder(heading: string): readonly (readonly string[])[] {
  const [, section = ''] = page.split(`## ${heading}\n`)
  const lines = (section.split(/^## /m)[0] ?? '').split('\n').filter((line) => /^\| (?!---)/.test(line))
  return lines.slice(1).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

it('IF-C7 IF-N1 lists what is not guaranteed, each with what to do', () => {
  const rows = rowsUnder('Not guaranteed')
  const named = rows.map(([what]) => what)
  for (const what of [
    'The order of effects',
    'Effects exactly once',
    'Timers to the second',
    'Transactions over several instances',
  ]) {
    expect(named).toContain(what)
  }
  for (const row of rows) expect(row.filter((cell) => cell !== '')).toHaveLength(3)
})

it('IF-C5 IF-V1 says that no process is the leader, and names every change that is not safe', () => {
  expect(page).toMatch(/\| Any number of processes, and none is the leader \|/)
  const unsafe = rowsUnder('Deployments').map(([change = '']) => change)
  for (const word of [
    'event type is removed',
    'field has another type',
    'effect type is removed',
    'decider is renamed',
  ]) {
    expect(unsafe.some((change) => change.includes(word))).toBe(true)
  }
})

it('IF-P2 gives the defaults that the code has', () => {
  const defaults = new Map(
    rowsUnder('Defaults, for those who come from elsewhere').map(([, , here = '', value = '']) => [here, value]),
  )
  const all = readFileSync('docs/options.md', 'utf8')
  const ofWork = all.split('## `holdfast.work(options)`')[1] ?? ''
  const inOptions = (name: string, options = ofWork): string => {
    const [, value = ''] = new RegExp(`^\\| \`${name}\` \\| ([^|]+) \\|`, 'm').exec(options) ?? []
    return value
      .trim()
      .replaceAll(/[`']/g, '')
      .replace(/^(\d+)s$/, '$1 s')
  }
  const valueOf = (name: string): string | undefined =>
    [...defaults].find(([here]) => here.startsWith(`\`${name}\``))?.[1]
  for (const name of ['concurrency', 'lease', 'shutdownTimeout']) expect(valueOf(name)).toBe(inOptions(name))
  expect(inOptions('poll', all)).toContain(`${valueOf('poll')} for work`)
  const { maxAttempts, initialMs, maxMs, jitter } = retryPresets.patient
  expect([valueOf('retry'), defaults.get('the same')]).toEqual([
    String(maxAttempts),
    `${initialMs / 1000} s, ${maxMs / 1000} s, ${jitter.mode === 'none' ? 'no jitter' : 'jitter'}`,
  ])
})
