// The order in which a claim takes runs: the highest priority first; at one priority the types take turns, one run each, in
// the order in which the claim first names them; within a type the longest due first, then the lowest id. The versions of a
// type share its turn. A worker that claims one run at a time names the type last that was served last.

import type { Run } from '../../model/run.ts'
import type { ClaimRequest } from './claim.ts'

type Claimable = Pick<Run, 'id' | 'type' | 'priority' | 'due'>

/** The order within a type: higher priority first, then longer due, then the lower id. */
function claimOrder(a: Claimable, b: Claimable): number {
  return b.priority - a.priority || dueOrder(a, b)
}

/** Longer due first, then the lower id. */
export function dueOrder(a: Claimable, b: Claimable): number {
  return (a.due ?? 0) - (b.due ?? 0) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}

/** Where each type stands among those that a claim names. */
export function placesOf(selectors: readonly Pick<Run, 'type'>[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>()
  for (const { type } of selectors) if (!places.has(type)) places.set(type, places.size)
  return places
}

/** Runs that a claim may take, in the order in which it takes them. Suspects are few: the longest due goes first. */
export function inClaimOrder<One extends Claimable>(
  claimable: readonly One[],
  { selectors, isolated = false }: Pick<ClaimRequest, 'selectors' | 'isolated'>,
): readonly One[] {
  return isolated ? claimable.toSorted(dueOrder) : inTurns(claimable, selectors)
}

function inTurns<One extends Claimable>(
  ready: readonly One[],
  selectors: readonly Pick<Run, 'type'>[],
): readonly One[] {
  const places = placesOf(selectors)
  const counted = new Map<string, { priority: number; rounds: number }>()
  const seats = ready.toSorted(claimOrder).map((run) => {
    const before = counted.get(run.type)
    const round = before?.priority === run.priority ? before.rounds : 0
    counted.set(run.type, { priority: run.priority, rounds: round + 1 })
    return { run, round, place: places.get(run.type) ?? places.size }
  })
  seats.sort((a, b) => b.run.priority - a.run.priority || a.round - b.round || a.place - b.place)
  return seats.map(({ run }) => run)
}
