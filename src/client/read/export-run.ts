// A run as a file: its row and its whole journal, in a form that can be replayed anywhere. Payloads leave the codec and the
// offload of this Holdfast behind: they are written with the default codec, in plain text. The secrets of completion tokens
// are blanked, wherever a run has left one: a file may be copied, and the completion of a wait cannot be taken back.

import { blankCompletionTokens, noSecret } from '../../core/completion/blank-completion-tokens.ts'
import { jsonCodec, type Codec, type ErrorClass } from '../../core/payload/codec.ts'
import { isEntryKind, type Entry } from '../../core/model/entry.ts'
import { HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import { isDecider } from '../../core/definition/decider-model.ts'
import { fetchedEntries } from '../../core/deciding/read-entries.ts'
import { isRunId } from '../../core/model/run-id.ts'
import { deepest, mostBigintDigits } from '../../core/payload/json-decode.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import { nowhere } from '../../core/payload/place.ts'
import { isPrintable } from '../../core/text/printable.ts'
import type { Run } from '../../core/model/run.ts'
import { shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import type { RunReference } from '../run-reference.ts'
import { reading, type AbortOption } from '../abort-option.ts'
import { openInstance } from '../deciders/instance-walk.ts'
import { readData } from './run-view.ts'
import { wholeJournal } from './whole-journal.ts'

/** A run with its journal, as data that JSON can hold. Its payloads are in plain text. */
export interface ExportedRun {
  readonly format: 1
  readonly run: Run
  readonly entries: readonly Entry[]
  /** Of an instance of a decider, its state after the last entry, if the code that exported it could fold it: `data`. */
  readonly kept?: { readonly seq: number; readonly stateVersion: number; readonly data: string }
}

const format = 1

/** Writes and reads the payloads of exported runs, without bounds: it must hold what any other codec could. */
export function exportCodec(errors: readonly ErrorClass[] = []): Codec {
  return jsonCodec({
    errors,
    maxDepth: deepest,
    maxBytes: Number.MAX_SAFE_INTEGER,
    maxBigintDigits: mostBigintDigits,
  })
}

const codec = exportCodec()

/** @internal */
export async function exportRun(engine: Engine, reference: RunReference, options?: AbortOption): Promise<ExportedRun> {
  engine.assertOpen()
  const { run, entries } = await reading('export()', options, () =>
    wholeJournal(engine, reference, 'first', options?.abortSignal),
  )
  const exported: Entry[] = []
  for (const entry of entries) exported.push(await exportEntry(run.id, entry, engine.payloads))
  const kept = await keptState(engine, run, entries)
  // The session that holds the run means nothing elsewhere.
  return {
    format,
    run: withoutTokens({ ...run, session: null }),
    entries: exported,
    ...(kept === null ? {} : { kept }),
  }
}

/** Null if it is no instance of a decider that is here, or one that cannot be folded. */
async function keptState(
  engine: Engine,
  run: Run,
  entries: readonly Entry[],
): Promise<NonNullable<ExportedRun['kept']> | null> {
  const definition = engine.registry.find(run.type, run.version)
  if (definition === undefined || !isDecider(definition)) return null
  const instance = openInstance(engine, definition, run)
  try {
    instance.apply(await fetchedEntries(engine, entries, () => true))
    if (!instance.hasBegun) return null
    const { seq, state } = instance
    return withoutTokens({ seq, stateVersion: definition.model.stateVersion, data: codec.encode(state, nowhere) })
  } catch (error) {
    if (isHoldfastError(error, 'EVENT_UNREADABLE') || isHoldfastError(error, 'NOT_STORABLE')) return null
    throw error
  }
}

async function exportEntry(runId: string, entry: Entry, payloads: Payloads): Promise<Entry> {
  if (entry.data === null) return withoutTokens(entry)
  const value = entry.kind === 'issued' ? noSecret : await readData(runId, entry, payloads)
  return withoutTokens({ ...entry, data: codec.encode(value, nowhere) })
}

/** The same data with every completion token in it blanked: the body that is replayed is given such tokens, too. */
function withoutTokens<Data>(data: Data): Data {
  const text = JSON.stringify(data)
  const blanked = blankCompletionTokens(text)
  return blanked === text ? data : (JSON.parse(blanked) as Data)
}

/** The same value, if it is an exported run. Throws INVALID_OPTION otherwise. */
export function checkExported(value: unknown): ExportedRun {
  if (typeof value !== 'object' || value === null) throw notExported(`Got ${shown(value)}.`)
  const { format: found, run, entries, kept } = value as { readonly [Key in keyof ExportedRun]?: unknown }
  if (found !== format) {
    const newer = typeof found === 'number' && found > format
    throw notExported(
      newer ? `Its format is ${found}: a newer Holdfast wrote it, so update this one.` : 'It has no format.',
    )
  }
  if (!isRow(run)) throw notExported('Its `run` is incomplete.')
  if (!Array.isArray(entries) || entries.length === 0) throw notExported('It has no `entries`.')
  const wrong = entries.findIndex((entry, at) => !isEntry(entry, at + 1))
  if (wrong !== -1) throw notExported(`Entry ${wrong + 1} is incomplete, or an entry before it is missing.`)
  if (kept !== undefined && !isKept(kept)) throw notExported('Its `kept` is incomplete.')
  return value as ExportedRun
}

/** The fields that are shown or looked up have the form that they have in every store. */
function isRow(run: unknown): boolean {
  if (typeof run !== 'object' || run === null) return false
  const { id, type, version, seq, token } = run as { readonly [Key in keyof Run]?: unknown }
  const areTexts = typeof id === 'string' && isRunId(id) && typeof type === 'string' && isPrintable(type)
  return areTexts && [version, seq, token].every((number) => Number.isSafeInteger(number))
}

function isKept(kept: unknown): boolean {
  if (typeof kept !== 'object' || kept === null) return false
  const { seq, stateVersion, data } = kept as { readonly [Key in keyof NonNullable<ExportedRun['kept']>]?: unknown }
  return Number.isSafeInteger(seq) && Number.isSafeInteger(stateVersion) && typeof data === 'string'
}

function isEntry(entry: unknown, place: number): boolean {
  if (typeof entry !== 'object' || entry === null) return false
  const { seq, at, kind, name, meta, data } = entry as { readonly [Key in keyof Entry]?: unknown }
  const isFirst = place === 1
  return (
    seq === place &&
    Number.isFinite(at) &&
    typeof kind === 'string' &&
    isEntryKind(kind) &&
    (kind === 'started') === isFirst &&
    (name === null || (typeof name === 'string' && isPrintable(name))) &&
    (data === null || typeof data === 'string') &&
    typeof meta === 'object' &&
    !Array.isArray(meta)
  )
}

function notExported(why: string): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    `This is not an exported run. ${why} Make one with \`holdfast export <run>\` or holdfast.export(run), and hand it over as ` +
      'JSON.parse gives it back.',
  )
}
