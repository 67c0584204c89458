// A run together with its journal, all of it, as the store has them.

import type { Entry } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import type { Engine } from '../../engine/engine.ts'
import { loadEntries } from '../../engine/store/journal-pages.ts'
import { abortableLoads } from '../abort-option.ts'
import { idOf, runNotFound, type RunReference } from '../run-reference.ts'

export interface JournaledRun {
  readonly run: Run
  readonly entries: readonly Entry[]
}

/** Reads a journal from its first entry on, or from the `base` of the run. @internal */
export async function wholeJournal(
  { store }: Pick<Engine, 'store'>,
  reference: RunReference,
  from: 'first' | ((run: Run) => 'first' | 'base'),
  abortSignal?: AbortSignal,
): Promise<JournaledRun> {
  const id = idOf(reference)
  const [run] = await store.get([id])
  if (run === undefined) throw runNotFound(id)
  const before = typeof from === 'function' && from(run) === 'base' ? run.base - 1 : 0
  const entries = await loadEntries(abortableLoads(store, abortSignal), id, before)
  return { run: asOf(run, entries), entries }
}

/** The run may have moved on since its row was read: the journal, which was read later, says what it is by then. */
function asOf(run: Run, entries: readonly Entry[]): Run {
  const began = entries.findLast(({ kind }) => kind === 'started' || kind === 'continued')
  const seq = entries.at(-1)?.seq ?? run.seq
  if (began?.kind !== 'continued') return { ...run, seq }
  const { type, version } = began.meta
  return { ...run, seq, base: began.seq, type, version }
}
