// When a run may next be claimed, as the transition that leaves it says.

/** When a run is next due: the earlier of a point in time and a delay from the commit, in store time. */
export interface Due {
  readonly at: number | null
  readonly afterMs: number | null
}

/** The point in time that a due time means at a commit; null if it names none. */
export function dueAt(due: Due | null, now: number): number | null {
  if (due === null) return null
  const afterwards = due.afterMs === null ? null : now + due.afterMs
  if (due.at === null || afterwards === null) return due.at ?? afterwards
  return Math.min(due.at, afterwards)
}
