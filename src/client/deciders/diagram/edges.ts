// The edges of a state machine as they are drawn: what was declared, what was observed, and where the two differ.

import type { StateMachine } from '../../../core/definition/state-machine.ts'
import type { Observed } from '../instance-views.ts'

/** Where an edge is known from; null if nothing was observed, so that nothing is compared. */
export type EdgeMark = 'declared-only' | 'seen-only' | 'both' | null

export interface Edge {
  readonly from: string
  readonly to: string
  readonly input: string
  readonly effects: readonly string[]
  readonly timers: readonly string[]
  readonly description: string | null
  readonly mark: EdgeMark
  /** How often it was seen; 0 if never. */
  readonly count: number
  readonly lastAt: Date | null
}

export interface Graph {
  /** In the order in which they are named first. */
  readonly statuses: readonly string[]
  readonly initial: readonly string[]
  readonly terminal: readonly string[]
  readonly edges: readonly Edge[]
}

/** Both are never null. */
export function graphOf(declared: StateMachine | null, observed: Observed | null): Graph {
  const edges = new Map<string, Edge>()
  const isCompared = declared !== null && observed !== null
  for (const { from, input, to, effects, timers, description } of declared?.transitions ?? []) {
    const mark = isCompared ? 'declared-only' : null
    edges.set(keyOf({ from, input, to }), {
      from,
      input,
      to,
      effects,
      timers,
      description,
      mark,
      count: 0,
      lastAt: null,
    })
  }
  for (const { from, input, to, outcome, count, lastAt, effects, timers } of observed?.transitions ?? []) {
    if (outcome !== 'accepted') continue
    const key = keyOf({ from, input, to })
    const known = edges.get(key)
    const named = timers.map((timer) => (timer === '#' ? '' : timer))
    const seen: Edge =
      known === undefined
        ? {
            from,
            input,
            to,
            effects,
            timers: named,
            description: null,
            mark: isCompared ? 'seen-only' : null,
            count,
            lastAt,
          }
        : { ...known, mark: 'both', count, lastAt }
    edges.set(key, seen)
  }
  const initial = union(declared === null ? [] : [declared.initial], observed?.initial ?? [])
  const terminal = union(declared?.terminal ?? [], observed?.terminal ?? [])
  const all = [...edges.values()]
  const statuses = union(initial, [...all.flatMap(({ from, to }) => [from, to]), ...terminal])
  return { statuses, initial, terminal, edges: all }
}

/** `Pay [ship] ⏱payment (12×)`: the input, the effects that it asks for, the timers that it sets, and how often it was seen. */
export function labelOf({ input, effects, timers, mark, count }: Edge): string {
  const parts = [input, ...effects.map((effect) => `[${effect}]`), ...timers.map((timer) => `⏱${timer}`)]
  if (count > 0) parts.push(`(${count}×)`)
  if (mark === 'declared-only') parts.push('(never seen)')
  if (mark === 'seen-only') parts.push('(not declared)')
  return parts.join(' ')
}

function keyOf({ from, input, to }: Pick<Edge, 'from' | 'input' | 'to'>): string {
  return JSON.stringify([from, input, to])
}

function union(one: readonly string[], other: readonly string[]): readonly string[] {
  return [...new Set([...one, ...other])]
}
