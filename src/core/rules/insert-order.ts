// The order in which runs are inserted. A transaction that inserts a key which another one is about to insert waits for that
// one: two that insert the same keys in opposite orders would deadlock. So every transaction inserts in one order. Of two
// runs in a batch that want the same key only the first is inserted; the second is decided when that is done.

import { uniqueText } from '../model/key.ts'
import type { NewRun } from '../model/new-run.ts'

/** Those of a batch that have no rival before them in it, in the order in which they are inserted. */
export function foremost<Given extends NewRun>(runs: readonly Given[]): readonly Given[] {
  if (areInOrder(runs)) return runs
  const taken = new Set<string>()
  const first = runs.filter((run) => {
    const uniques = uniquesOf(run)
    const isFirst = uniques.every((unique) => !taken.has(unique))
    // A run behind one that has a rival itself must wait for the outcome of that one, too.
    for (const unique of uniques) taken.add(unique)
    return isFirst
  })
  return first.length === 1
    ? first
    : first
        .map((run) => ({ run, place: placeOf(run) }))
        .sort(byPlace)
        .map(({ run }) => run)
}

/** Runs without keys whose ids ascend, which the ids of one process do: most batches. None has a rival, and none has to move. */
function areInOrder(runs: readonly NewRun[]): boolean {
  let last = ''
  for (const { id, key, idempotencyKey } of runs) {
    if (key !== null || idempotencyKey !== null || id <= last) return false
    last = id
  }
  return true
}

function uniquesOf(run: NewRun): readonly string[] {
  const uniques = [`id ${run.id}`]
  const key = uniqueText(run)
  if (key !== null) uniques.push(`key ${key}`)
  if (run.idempotencyKey !== null) uniques.push(`idempotency key ${run.type} ${run.idempotencyKey}`)
  return uniques
}

/** Keys before ids: a key that other transactions may want, too, is waited for before any lock is held. */
function placeOf(run: NewRun): string {
  const key = uniqueText(run)
  if (key !== null) return `1 ${key}`
  return run.idempotencyKey === null ? `3 ${run.id}` : `2 ${run.type} ${run.idempotencyKey}`
}

/** By the units of the text, as every process compares them. */
function byPlace(one: { readonly place: string }, other: { readonly place: string }): number {
  return one.place < other.place ? -1 : one.place > other.place ? 1 : 0
}
