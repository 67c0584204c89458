// The linter's rules that the design rests on, proved by planting what they forbid: promises that nobody awaits, and
// time, chance and the machine read past the ports. A rule that is switched off, or never ran, fails here.

import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const ambient = {
  'Date.now()': 'no-ambient-date',
  'new Date()': 'no-ambient-date',
  'Date()': 'no-ambient-date',
  '[1].map(Date)': 'no-ambient-date',
  'performance.now()': 'no-restricted-globals',
  'Math.random()': 'no-restricted-properties',
  'setTimeout(() => undefined, 1)': 'no-restricted-globals',
  'setInterval(() => undefined, 1)': 'no-restricted-globals',
  'setImmediate(() => undefined)': 'no-restricted-globals',
  'queueMicrotask(() => undefined)': 'no-restricted-globals',
  'process.env': 'no-restricted-globals',
  'crypto.randomUUID()': 'no-restricted-globals',
  'globalThis.crypto': 'no-restricted-globals',
  "fetch('x')": 'no-restricted-globals',
  'AbortSignal.timeout(1)': 'no-restricted-properties',
}
const pure = ['new Date(1).toISOString()', 'Date.UTC(2026, 1)', "Date.parse('x')", 'new AbortController().signal']
const careless = {
  'export function f(p: Promise<void>) { p }': 'no-floating-promises',
  'export const f = (p: () => Promise<void>) => [1].forEach(p)': 'no-misused-promises',
  'export const f = async (n: number) => { await n }': 'await-thenable',
  'export const f = (x: any) => [x]': 'no-explicit-any',
  "export function f(x: 'a' | 'b') { switch (x) { case 'a': return 1 } return 2 }": 'switch-exhaustiveness-check',
  "export const f: string = JSON.parse('1')": 'no-unsafe-assignment',
  "export const f = () => JSON.parse('1').x": 'no-unsafe-member-access',
  "export const f = (): string => JSON.parse('1')": 'no-unsafe-return',
  "export const f = () => Math.abs(JSON.parse('1'))": 'no-unsafe-argument',
  "export const f = () => JSON.parse('1')()": 'no-unsafe-call',
}
const pureRooms = ['core', 'functions', 'deciders', 'graphs', 'engine', 'client', 'worker']

let folder = ''
const found = new Map<string, Set<string>>()

function plant(path: string, code: string): void {
  mkdirSync(join(folder, path, '..'), { recursive: true })
  writeFileSync(join(folder, path), `${code}\n`)
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-lint-'))
  for (const file of ['.oxlintrc.json', 'tsconfig.json', 'tsconfig.base.json', 'tools']) {
    cpSync(file, join(folder, file), { recursive: true })
  }
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  for (const room of pureRooms) {
    for (const [index, code] of Object.keys(ambient).entries())
      plant(`src/${room}/a${index}.ts`, `export const a = ${code}`)
    for (const [index, code] of pure.entries()) plant(`src/${room}/p${index}.ts`, `export const a = ${code}`)
  }
  for (const [index, code] of Object.keys(careless).entries()) plant(`src/core/c${index}.ts`, code)
  plant('src/http/env.ts', 'export const a = process.env')
  plant('src/cli/env.ts', 'export const a = [process.env, Date.now()]')

  const lint = spawnSync(resolve('node_modules/.bin/oxlint'), ['--format', 'json', 'src'], {
    cwd: folder,
    encoding: 'utf8',
  })
  const report = JSON.parse(lint.stdout) as { diagnostics: { code: string; filename: string }[] }
  for (const { code, filename } of report.diagnostics) {
    const rule = /\(([\w-]+)\)/.exec(code)?.[1] ?? code
    found.set(filename, (found.get(filename) ?? new Set()).add(rule))
  }
})

afterAll(() => rmSync(folder, { recursive: true }))

describe.each(pureRooms)('in src/%s', (room) => {
  const rulesAgainst = (file: string): string => [...(found.get(`src/${room}/${file}.ts`) ?? [])].join(', ')

  it('reading time, chance or the machine past the ports is refused', () => {
    const refused = Object.keys(ambient).map((code, index) => [code, rulesAgainst(`a${index}`)])
    expect(Object.fromEntries(refused)).toEqual(ambient)
  })

  it('what is a function of its arguments is allowed', () => {
    expect(pure.map((code, index) => [code, rulesAgainst(`p${index}`)])).toEqual(pure.map((code) => [code, '']))
  })
})

it.each(Object.entries(careless).map(([code, rule], index) => ({ code, rule, index })))(
  '$rule refuses $code',
  ({ rule, index }) => {
    expect([...(found.get(`src/core/c${index}.ts`) ?? [])]).toContain(rule)
  },
)

it('only the command line reads the process', () => {
  expect([...(found.get('src/http/env.ts') ?? [])]).toEqual(['no-restricted-globals'])
  expect(found.get('src/cli/env.ts')).toBeUndefined()
})
