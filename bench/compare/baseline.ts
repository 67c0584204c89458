// A baseline: numbers that depend little on the machine, ratios and counts, with the range of their samples. It is committed,
// and what is measured later is compared with it.

import { access, constants, readFile, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Result } from '../conduct.ts'
import { thisMachine, type Machine } from '../report.ts'
import type { Better, Settings } from '../scenario.ts'
import { storeKindOf, type StoreKind } from '../stores.ts'
import { didYouMean, UsageError } from '../usage.ts'

/** One number, as it was: the median of its samples, the lowest and the highest. */
export interface Row {
  readonly scenario: string
  readonly case: string
  readonly metric: string
  readonly unit: string
  readonly better: Better
  readonly value: number
  readonly low: number
  readonly high: number
}

export interface Baseline {
  readonly shape: 1
  readonly store: StoreKind
  readonly quick: boolean
  readonly machine: Machine
  readonly rows: readonly Row[]
}

/** The numbers of these results that can be compared. */
export function rowsOf(results: readonly Result[]): readonly Row[] {
  return results.flatMap(({ scenario, case: of, metric, unit, value, samples, better }) => {
    if (better === null || !samples.every(Number.isFinite)) return []
    const [low, high] = [Math.min(...samples), Math.max(...samples)]
    return [{ scenario, case: of, metric, unit, better, value: short(value), low: short(low), high: short(high) }]
  })
}

/** What distinguishes a row from all others. */
export function keyOf({ scenario, case: of, metric }: Pick<Row, 'scenario' | 'case' | 'metric'>): string {
  return [scenario, of, metric].join(' · ')
}

/** Reads a baseline for these settings. Whatever is wrong with it is said in words. */
export async function readBaseline(file: string, settings: Settings, scenarios: readonly string[]): Promise<Baseline> {
  const baseline = parse(file, await textOf(file))
  const { store, quick, rows } = baseline
  const kind = storeKindOf(settings.store)
  if (store !== kind) {
    throw new UsageError(`The baseline ${file} was measured on ${store}, not on ${kind}: add --store ${store}.`)
  }
  if (quick !== settings.quick) {
    const how = quick ? 'with --quick: add it' : 'without --quick: leave it out'
    throw new UsageError(`The baseline ${file} was measured ${how}.`)
  }
  for (const { scenario } of rows) {
    if (scenarios.includes(scenario)) continue
    const hint = didYouMean(scenario, scenarios)
    throw new UsageError(`The baseline ${file} names a scenario "${scenario}", which does not exist.${hint}`)
  }
  return baseline
}

/** Writes these results as a baseline; what an existing one of the same kind says about other scenarios stays. */
export async function writeBaseline(file: string, settings: Settings, results: readonly Result[]): Promise<void> {
  const rows = rowsOf(results)
  if (rows.length === 0) {
    throw new UsageError('Nothing was measured that could be compared: no baseline was written.')
  }
  const { quick } = settings
  const store = storeKindOf(settings.store)
  const before = await readIfThere(file)
  const measured = new Set(results.map(({ scenario }) => scenario))
  const isSameKind = before !== null && before.store === store && before.quick === quick
  const kept = isSameKind ? before.rows.filter(({ scenario }) => !measured.has(scenario)) : []
  const baseline: Baseline = { shape: 1, store, quick, machine: thisMachine(), rows: [...kept, ...rows] }
  await writeFile(file, `${JSON.stringify(baseline, null, 2)}\n`)
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw unreadable(file, error)
    throw new UsageError(`There is no baseline ${file}. "npm run bench -- --write-baseline ${file}" writes one.`)
  }
}

/** A baseline can be written there: over another one, and over nothing else. */
export async function checkTarget(file: string): Promise<void> {
  await readIfThere(file)
  await access(dirname(resolve(file)), constants.W_OK).catch(() => {
    throw new UsageError(`The baseline ${file} cannot be written: its folder does not exist, or may not be changed.`)
  })
}

async function readIfThere(file: string): Promise<Baseline | null> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null
    throw unreadable(file, error)
  })
  return text === null ? null : parse(file, text)
}

function unreadable(file: string, error: unknown): UsageError {
  return new UsageError(`The baseline ${file} cannot be read: ${String(codeOf(error))}.`)
}

function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown }).code
}

function parse(file: string, text: string): Baseline {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new UsageError(`${file} is no baseline: it is not JSON.`)
  }
  if (!isBaseline(value)) {
    throw new UsageError(`${file} is no baseline of this version. --write-baseline writes one; --json writes a report.`)
  }
  return value
}

function isBaseline(value: unknown): value is Baseline {
  if (!isObject(value) || value['shape'] !== 1 || typeof value['quick'] !== 'boolean') return false
  const { store, machine, rows } = value
  if (typeof store !== 'string' || !isObject(machine)) return false
  return Array.isArray(rows) && rows.length > 0 && rows.every(isRow)
}

function isRow(value: unknown): value is Row {
  if (!isObject(value)) return false
  const isText = (name: string): boolean => typeof value[name] === 'string'
  const isNumber = (name: string): boolean => Number.isFinite(value[name])
  return (
    ['scenario', 'case', 'metric', 'unit'].every(isText) &&
    ['value', 'low', 'high'].every(isNumber) &&
    (value['better'] === 'higher' || value['better'] === 'lower')
  )
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Four digits are more than any of them is worth. */
function short(value: number): number {
  return Number(value.toPrecision(4))
}
