// Repairs of a journal. An entry never changes: a repair is an entry of its own, which says that an earlier outcome counts
// no more, or what its result is instead.

import type { Draft, Entry } from '../../core/model/entry.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Place } from '../../core/payload/place.ts'
import { shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { entryRequest } from '../../engine/store/journal-pages.ts'
import { runNotFound } from '../run-reference.ts'

export type Amendment =
  /** The outcome counts no more: the step is performed again if the code still asks for it. */
  | { readonly seq: number; readonly drop: true }
  /** The step has this result. */
  | { readonly seq: number; readonly result: unknown }

export type Amended = Extract<Draft, { kind: 'amended' }>

export interface Amendments {
  readonly amend: readonly Amended[]
  /** The `seq` that they were made for; null if there are none. */
  readonly seq: number | null
}

/** The entries that repair a run's journal. Throws INVALID_OPTION if an entry cannot be repaired. @internal */
export async function amendments(engine: Engine, id: string, given: readonly Amendment[]): Promise<Amendments> {
  checkAmendments(given)
  if (given.length === 0) return { amend: [], seq: null }
  const [run] = await engine.store.get([id])
  if (run === undefined) throw runNotFound(id)
  const amend: Amended[] = []
  for (const one of given) {
    const entry = await outcomeAt(engine, id, one.seq)
    const meta = { seq: one.seq, dropped: !('result' in one) }
    const place = engine.payloads.place(id, run.seq + amend.length + 1, 'amended', entry.name)
    const data = 'result' in one ? await encoded(engine, one.result, place) : null
    if ('result' in one && entry.kind === 'woken') throw notAnOutcome(one.seq, 'a wait, which can only be dropped')
    amend.push({ kind: 'amended', name: entry.name, meta, data })
  }
  return { amend, seq: run.seq }
}

function checkAmendments(given: unknown): void {
  const isAmendment = (one: unknown): boolean => typeof one === 'object' && one !== null && 'seq' in one
  if (Array.isArray(given) && given.every(isAmendment)) return
  const message = 'resume({ amend }) takes a list of { seq, drop: true } and { seq, result }.'
  throw new HoldfastError('INVALID_OPTION', `${message} Got ${shown(given)}.`)
}

/** The entry whose outcome ended a failed run; null if it was no outcome of a step. */
export function causeOf(last: Entry | undefined): number | null {
  return last?.kind === 'failed' ? (last.meta?.cause ?? null) : null
}

async function encoded({ payloads }: Engine, value: unknown, place: Place): Promise<string> {
  return payloads.keep(payloads.encode(value, place), place)
}

async function outcomeAt({ store }: Engine, runId: string, seq: number): Promise<Entry> {
  if (!Number.isInteger(seq) || seq < 1) throw notAnOutcome(seq, 'no entry')
  const [page] = await store.load([entryRequest(runId, seq)])
  const entry = page?.entries[0]
  if (entry === undefined) throw notAnOutcome(seq, 'no entry')
  if (entry.kind === 'step-succeeded' || entry.kind === 'step-failed' || entry.kind === 'woken') return entry
  throw notAnOutcome(seq, entry.kind)
}

function notAnOutcome(seq: unknown, is: string): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    `Only the outcome of a step or a wait can be repaired. Entry ${shown(seq)} is ${is}: see the journal for its outcomes.`,
    { details: { seq } },
  )
}
