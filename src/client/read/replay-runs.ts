// Replays runs against the workflows that are registered here: those of the store, or exported ones.

import { jsonCodec, type ErrorClass } from '../../core/payload/codec.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import { deepest, mostBigintDigits } from '../../core/payload/json-decode.ts'
import { Payloads } from '../../core/payload/payload.ts'
import type { Engine } from '../../engine/engine.ts'
import { replayRun, type ReplayResult } from '../../engine/replay/replay-run.ts'
import { reading, type AbortOption } from '../abort-option.ts'
import { checkExported, type ExportedRun } from './export-run.ts'
import type { RunReference } from '../run-reference.ts'
import { wholeJournal } from './whole-journal.ts'

export async function replayHere(
  engine: Engine,
  services: unknown,
  replayed: RunReference | ExportedRun,
  options?: AbortOption,
): Promise<ReplayResult> {
  engine.assertOpen()
  const { registry, ports } = engine
  const isExported = typeof replayed === 'object' && replayed !== null && 'entries' in replayed
  const { run, entries } = await reading('replay()', options, async () =>
    isExported ? checkExported(replayed) : wholeJournal(engine, replayed, 'base', options?.abortSignal),
  )
  const payloads = isExported ? exportedPayloads([]) : engine.payloads
  const tokenKey = isExported ? null : await readableKey(engine)
  return replayRun(registry.get(run.type, run.version), run, entries, { ports, payloads, services, tokenKey })
}

/** Null for who may look at runs and not perform them: their body is given tokens that complete nothing. */
function readableKey(engine: Engine): Promise<string | null> {
  return engine.readTokenKey().catch((error: unknown) => {
    if (isHoldfastError(error, 'STORE_REFUSED')) return null
    throw error
  })
}

/** What reads the payloads of an exported run. Errors of these classes come back as such. */
export function exportedPayloads(errors: readonly ErrorClass[]): Payloads {
  return new Payloads(
    jsonCodec({ errors, maxDepth: deepest, maxBytes: Number.MAX_SAFE_INTEGER, maxBigintDigits: mostBigintDigits }),
  )
}
