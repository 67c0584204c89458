// In which order runs are inserted. Whoever inserts a key that another transaction is about to insert waits for that one: two
// that insert the same keys in opposite orders would wait for each other. So everybody inserts in one order. Of two in a batch
// that want the same for themselves only the first is inserted; the other one is looked at again when that is done.

import { uniqueText } from '../core/model/key.ts'
import type { NewRun } from '../store.ts'

/** Those of a batch that nobody before them in it is a rival of, in the order in which they are inserted. */
export function foremost(runs: readonly NewRun[]): readonly NewRun[] {
  const wanted = new Set<string>()
  const first = runs.filter((run) => {
    const wants = wantsOf(run)
    const isFirst = wants.every((want) => !wanted.has(want))
    // Whoever comes behind one that is a rival itself must wait for what becomes of that one, too.
    for (const want of wants) wanted.add(want)
    return isFirst
  })
  return first.length === 1
    ? first
    : first
        .map((run) => ({ run, place: placeOf(run) }))
        .sort(byPlace)
        .map(({ run }) => run)
}

function wantsOf(run: NewRun): readonly string[] {
  const wants = [`id ${run.id}`]
  const key = uniqueText(run)
  if (key !== null) wants.push(`key ${key}`)
  if (run.idempotencyKey !== null) wants.push(`idempotency key ${run.type} ${run.idempotencyKey}`)
  return wants
}

/** Keys before ids: what others may want, too, is waited for before anything else is held. */
function placeOf(run: NewRun): string {
  const key = uniqueText(run)
  if (key !== null) return `1 ${key}`
  return run.idempotencyKey === null ? `3 ${run.id}` : `2 ${run.type} ${run.idempotencyKey}`
}

/** By the units of the text, as every process compares them. */
function byPlace(one: { readonly place: string }, other: { readonly place: string }): number {
  return one.place < other.place ? -1 : one.place > other.place ? 1 : 0
}
