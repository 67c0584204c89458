// Which entries are in the feed: those of runs whose workflow asks for it, and no others. A run that begins anew may go on as
// a workflow with another setting. The entry with which it does belongs to both, and one of them is enough.

import type { Run } from '../model/run.ts'

type Fed = Pick<Run, 'feed'>

/** How many of this many entries, counted from the last one, are in the feed. `after` is the run as they leave it. */
export function fedCount(before: Fed, after: Fed, appended: number): number {
  if (before.feed) return appended
  return after.feed ? Math.min(appended, 1) : 0
}
