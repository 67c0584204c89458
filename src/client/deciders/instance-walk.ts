// An instance folded from its first entry on, page by page: for readers who want its state at an earlier time, or to see how it
// came to the present one. The fold that this process keeps is not touched.

import { isDecider, type DeciderDefinition, type DeciderInstance } from '../../core/definition/decider-model.ts'
import { fetchedEntries } from '../../core/deciding/read-entries.ts'
import type { Entry } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import { notDecider } from '../../engine/deciders/cached-instance.ts'
import type { Engine } from '../../engine/engine.ts'
import { loadJournal } from '../../engine/store/journal-pages.ts'

/** The code of the version that an instance has. Throws WORKFLOW_UNKNOWN. */
export function codeOf({ registry }: Engine, { type, version }: Run): DeciderDefinition {
  const definition = registry.get(type, version)
  if (isDecider(definition)) return definition
  throw notDecider(type)
}

/** An instance of which nothing is folded yet. */
export function openInstance({ payloads, ports }: Engine, { model }: DeciderDefinition, run: Run): DeciderInstance {
  return model.open({ runId: run.id, id: run.idempotencyKey ?? run.id, payloads, ports })
}

/** The entries of a journal in order, with their texts at hand. */
export async function* entriesOf(engine: Engine, run: Run): AsyncGenerator<Entry, void> {
  for await (const { entries } of loadJournal(engine.store, run.id)) {
    for (const entry of await fetchedEntries(engine, entries, () => true)) yield entry
  }
}
