// Replays runs against the workflows that are registered here: those of the store, or exported ones.

import { jsonCodec, type ErrorClass } from '../core/codec.ts'
import { deepest } from '../core/json-decode.ts'
import { Payloads } from '../core/payload.ts'
import type { Engine } from '../engine/engine.ts'
import { replayRun, type Replayed } from '../engine/replaying.ts'
import { checkExported, type ExportedRun } from './exporting.ts'
import type { RunReference } from './run-reference.ts'
import { wholeJournal } from './whole-journal.ts'

export async function replayHere(
  engine: Engine,
  services: unknown,
  replayed: RunReference | ExportedRun,
): Promise<Replayed> {
  engine.assertOpen()
  const { registry, ports } = engine
  const isExported = typeof replayed === 'object' && replayed !== null && 'entries' in replayed
  const { run, entries } = isExported ? checkExported(replayed) : await wholeJournal(engine, replayed, 'base')
  const payloads = isExported ? exportedPayloads([]) : engine.payloads
  return replayRun(registry.get(run.type, run.version), run, entries, { ports, payloads, services })
}

/** What reads the payloads of an exported run. Errors of these classes come back as such. */
export function exportedPayloads(errors: readonly ErrorClass[]): Payloads {
  return new Payloads(jsonCodec({ errors, maxDepth: deepest, maxBytes: Number.MAX_SAFE_INTEGER }))
}
