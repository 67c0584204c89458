// What a statement may cost: so many pages for itself and so many for each run that the call is about. Two to three times
// what was measured over 775,000 runs: it is not the number that matters, but that it stays when the tables grow.

import type { Call } from './call.ts'
import type { Explained } from './explained-store.ts'

interface Bound {
  readonly base: number
  readonly each: number
  /** For each row that it takes, where that is more than the call is about. */
  readonly row?: number
}

/** By the first of its names in the statement plan, or by how it begins. */
const bounds: readonly (readonly [string, Bound])[] = [
  // Every index of the table gets an entry.
  ['start.session', { base: 150, each: 80 }],
  ['start.look', { base: 20, each: 20 }],
  // What has come due, a thousand at most: 24 pages for each were measured.
  ['claim.promote', { base: 100, each: 0, row: 50 }],
  ['claim.', { base: 200, each: 80 }],
  // Two names of each mailbox.
  ['load.messages', { base: 20, each: 30 }],
  ['load.', { base: 20, each: 12 }],
  ['commit.lock', { base: 20, each: 12 }],
  // A hundred of what a topic kept for long enough may go with it.
  ['commit.broadcasts', { base: 1_500, each: 80 }],
  ['commit.put', { base: 200, each: 80 }],
  ['commit.', { base: 200, each: 40 }],
  ['deliver.broadcasts', { base: 1_500, each: 80 }],
  ['deliver.insert', { base: 100, each: 80 }],
  ['dead.', { base: 200, each: 20 }],
  ['deliver.bump', { base: 60, each: 90 }],
  ['deliver.', { base: 40, each: 20 }],
  ['beat.session', { base: 60, each: 0 }],
  ['beat.look', { base: 20, each: 12 }],
  ['beat.', { base: 60, each: 30 }],
  ['release.', { base: 60, each: 40 }],
  // A look from the front steps over what other calls of the test have left behind, which nothing cleans up here; what
  // begins where that ended does not. `run-held-snapshot.ts` says what both cost when nothing can be cleaned up.
  ['with recursive', { base: 1_000, each: 0 }],
  ['with clock', { base: 100, each: 0 }],
  ['rescue.next', { base: 1_000, each: 0 }],
  ['rescue.', { base: 1_000, each: 800 }],
  ['get.', { base: 20, each: 12 }],
  ['steer.', { base: 60, each: 60 }],
  ['changes.', { base: 600, each: 12 }],
  ['find.', { base: 20_000, each: 0 }],
  ['count.', { base: 20_000, each: 0 }],
  ['', { base: 200, each: 20 }],
]

/** How many rows a statement may look at: some take more at once than the call is about. */
const rowBounds: readonly (readonly [RegExp, number])[] = [
  // A promotion, positions in the feed, and what a dead session held.
  [/^(claim\.promote|changes\.|rescue\.)/, 5_000],
  // Everything that is being executed, and what the test has started last.
  [/^(find|count)\./, 12_000],
]

/** What is wrong with what a statement did; empty if nothing is. */
export function excess(call: Call, done: Explained): readonly string[] {
  const { base, each, row = 0 } = (bounds.find(([name]) => done.name.startsWith(name)) as (typeof bounds)[number])[1]
  const rows = rowBounds.find(([name]) => name.test(done.name))?.[1] ?? 100 + 8 * call.size
  const exceeded = (what: string, is: number, may: number): readonly string[] =>
    is <= may ? [] : [`${what}: ${is} > ${may}`]
  const wrong = [
    ...done.scanned.map((table) => `reads all of ${table}`),
    ...exceeded('rows', done.rows, rows),
    ...exceeded('rows sorted', done.sorted, rows),
    ...(call.walks === true ? [] : exceeded('pages', done.buffers, base + each * call.size + row * done.rows)),
    ...(call.walks === true ? [] : exceeded('rows thrown away', done.removed, rows)),
  ]
  return wrong.map((one) => `${call.name}: ${done.name}: ${one}`)
}
