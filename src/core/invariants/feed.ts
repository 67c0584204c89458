// What must be true of the feed: it tells of every entry of every run, once, in the order of each journal, and no position
// is left out.

import type { Entry } from '../entry.ts'
import type { RunState, Violation } from './invariant.ts'

/** What the feed tells of one entry. */
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
    return found === undefined ? [] : [{ runId: found.runId, told: `${at + 1} changes on, position ${found.position}` }]
  },
}

const feedComplete: FeedInvariant = {
  name: 'feed_complete',
  kind: 'S',
  about: 'The feed tells of every entry of every run, once and in the order of its journal.',
  check(changes, states) {
    const seqs = new Map<string, number[]>()
    for (const { runId, entry } of changes) {
      const told = seqs.get(runId)
      if (told === undefined) seqs.set(runId, [entry.seq])
      else told.push(entry.seq)
    }
    return states.flatMap(({ run: { id }, entries }) => {
      const told = (seqs.get(id) ?? []).join(' ')
      const wanted = entries.map(({ seq }) => seq).join(' ')
      return told === wanted ? [] : [{ runId: id, told: `the feed tells of "${told}", the journal has "${wanted}"` }]
    })
  },
}

export const feedInvariants: readonly FeedInvariant[] = [feedDense, feedComplete]
