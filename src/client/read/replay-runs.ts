// Replays runs of the store and exported runs against the code of their workflows. Both are performed by `replayRun` of the
// engine, which is given the journal and what reads its payloads.

import type { ErrorClass } from '../../core/payload/codec.ts'
import type { Definition } from '../../core/definition/definition.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import { Payloads } from '../../core/payload/payload.ts'
import { nowhere } from '../../core/payload/place.ts'
import type { Run } from '../../core/model/run.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import type { Engine } from '../../engine/engine.ts'
import { replayRun, type ReplayResult } from '../../engine/replay/replay-run.ts'
import { reading, type AbortOption } from '../abort-option.ts'
import { checkExported, exportCodec, type ExportedRun } from './export-run.ts'
import type { RunReference } from '../run-reference.ts'
import { wholeJournal } from './whole-journal.ts'

/** Replays a run against the workflow that is registered for it. Throws RUN_NOT_FOUND or WORKFLOW_UNKNOWN. @internal */
export async function replayHere(
  engine: Engine,
  services: unknown,
  replayed: RunReference | ExportedRun,
  options?: AbortOption,
): Promise<ReplayResult> {
  engine.assertOpen()
  const { registry, ports, payloads } = engine
  if (typeof replayed === 'object' && replayed !== null && 'entries' in replayed) {
    const exported = await reading('replay()', options, async () => checkExported(replayed))
    const { type, version } = exported.run
    return replayExported(registry.get(type, version), exported, { ports, services })
  }
  // A body is replayed from its last beginning on, an instance is folded as a whole: a snapshot would hide what is before it.
  const begin = ({ type, version }: Run): 'first' | 'base' =>
    registry.find(type, version)?.style === 'decider' ? 'first' : 'base'
  const { run, entries } = await reading('replay()', options, () =>
    wholeJournal(engine, replayed, begin, options?.abortSignal),
  )
  const tokenKey = await readableKey(engine)
  return replayRun(registry.get(run.type, run.version), run, entries, { ports, payloads, services, tokenKey })
}

/** Null for a reader who may not perform runs: the bodies are given tokens that complete nothing. */
function readableKey(engine: Engine): Promise<string | null> {
  return engine.readTokenKey().catch((error: unknown) => {
    if (isHoldfastError(error, 'STORE_REFUSED')) return null
    throw error
  })
}

export interface ExportedReplay {
  readonly ports: Ports
  readonly services: unknown
  /** Errors of these classes come back as such. */
  readonly errors?: readonly ErrorClass[]
}

/** Replays an exported run: its payloads are in plain text, and its tokens complete nothing. */
export function replayExported(
  definition: Definition,
  { run, entries, kept }: ExportedRun,
  { ports, services, errors }: ExportedReplay,
): Promise<ReplayResult> {
  const codec = exportCodec(errors)
  const state = kept === undefined ? undefined : { ...kept, state: codec.decode(kept.data, nowhere) }
  return replayRun(definition, run, entries, { ports, payloads: new Payloads(codec), services, kept: state })
}
