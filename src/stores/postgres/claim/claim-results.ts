// What a claim found out about each of its types: how many runs it picked and tried, what it leased, and what is left.

import type { ClaimSelector } from '../../../store.ts'
import type { Row } from '../execution.ts'
import { isBefore, type Place, type WalkResult } from './claim-floors.ts'

/** The result of a claim for a type. */
export interface TypeResult {
  /** How many it picked. */
  picked: number
  /** How many of those it tried to lock. */
  tried: number
  head: Place | null
  /** The first that it picked and did not lease. */
  left: Place | null
  /** The last that it leased, by their places. */
  leased: Place | null
}

/** The results of a claim for each type, in their order. */
export function resultsOf(rows: readonly Row[], types: readonly ClaimSelector[]): readonly TypeResult[] {
  const [first = {}] = rows
  const results = types.map((): TypeResult => ({ picked: 0, tried: 0, head: null, left: null, leased: null }))
  const resultOf = (of: number): TypeResult => results[of] as TypeResult
  const ofs = new Map(types.map(({ type, version }, of) => [`${version} ${type}`, of]))
  for (const row of rows) {
    if (row['id'] === null) continue
    const of = types.length === 1 ? 0 : (ofs.get(`${String(row['version'])} ${String(row['type'])}`) as number)
    const place = { rank: Number(row['rank']), due: Number(row['picked_due']) }
    const result = resultOf(of)
    result.tried += 1
    if (result.leased === null || isBefore(result.leased, place)) result.leased = place
  }
  for (const { of, rank, due, skipped = 0 } of placedOf(first['not_leased'])) {
    const result = resultOf(of)
    result.tried += skipped
    result.left = { rank, due }
  }
  for (const { of, rank, due, picked = 0 } of placedOf(first['heads'])) {
    Object.assign(resultOf(of), { head: { rank, due }, picked })
  }
  if (types.length === 1) resultOf(0).picked = Number(first['found'])
  return results
}

export function sightOf({ picked, tried, head, left, leased }: TypeResult, window: number): WalkResult {
  const isAll = picked < window && picked === tried
  // If it tried all, another transaction has locked what is left. Else it was not needed, unless it is in front of what was leased.
  const isPassed = left !== null && (isAll || leased === null || !isBefore(leased, left))
  return { isAll, passed: isPassed ? left : null, leased, head }
}

interface Placed extends Place {
  readonly of: number
  readonly picked?: number
  readonly skipped?: number
}

/** The places of runs, each with its type. */
function placedOf(json: unknown): readonly Placed[] {
  return typeof json === 'string' ? (JSON.parse(json) as Placed[]) : []
}
