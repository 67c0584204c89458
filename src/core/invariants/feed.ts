// The invariants of the feed: it has every entry of the runs that ask for it, once, in the order of each journal, no entry
// of other runs, and no gap in its positions.

import type { Entry } from '../model/entry.ts'
import type { Run } from '../model/run.ts'
import type { RunState, Violation } from './invariant.ts'

/** One entry in the feed. */
export interface FeedItem {
  readonly position: number
  readonly runId: string
  readonly entry: Entry
}

export interface FeedInvariant {
  readonly name: string
  readonly kind: 'S'
  readonly about: string
  readonly check: (changes: readonly FeedItem[], states: readonly RunState[]) => readonly Omit<Violation, 'name'>[]
}

const feedDense: FeedInvariant = {
  name: 'feed_dense',
  kind: 'S',
  about: 'The positions of the feed are 1, 2, 3 … without a gap.',
  check(changes) {
    const at = changes.findIndex(({ position }, index) => position !== index + 1)
    const found = changes[at]
    return found === undefined
      ? []
      : [{ runId: found.runId, message: `${at + 1} changes on, position ${found.position}` }]
  },
}

/**
 * Earlier incarnations may have been of workflows with another `feed` flag: of their entries it is only known that none
 * comes twice or backwards. The entry with the present input also belongs to the incarnation before, so either flag may put
 * it into the feed.
 */
function isFedRight(
  { base, feed }: Pick<Run, 'base' | 'feed'>,
  fed: readonly number[],
  all: readonly number[],
): boolean {
  const isAscending = fed.every((seq, index) => index === 0 || seq > (fed[index - 1] ?? 0))
  const from = feed || base === 1 ? base : base + 1
  const own = (seqs: readonly number[]): string => seqs.filter((seq) => seq >= from).join(' ')
  return isAscending && own(fed) === (feed ? own(all) : '')
}

const feedComplete: FeedInvariant = {
  name: 'feed_complete',
  kind: 'S',
  about:
    'The feed has every entry of each run that asks for it, once and in the order of its journal, and of no other run.',
  check(changes, states) {
    const seqs = new Map<string, number[]>()
    for (const { runId, entry } of changes) {
      const fed = seqs.get(runId)
      if (fed === undefined) seqs.set(runId, [entry.seq])
      else fed.push(entry.seq)
    }
    return states.flatMap(({ run, entries }) => {
      const fed = seqs.get(run.id) ?? []
      const wanted = entries.map(({ seq }) => seq)
      if (isFedRight(run, fed, wanted)) return []
      const must = run.feed ? 'must have' : 'must not have'
      const from = `the feed has "${fed.join(' ')}", and ${must} "${wanted.join(' ')}" from ${run.base} on`
      return [{ runId: run.id, message: from }]
    })
  },
}

export const feedInvariants: readonly FeedInvariant[] = [feedDense, feedComplete]
