// Folds the journal of an instance with the code of its decider, and says whether the two agree. What was decided stays decided,
// so only the fold can disagree: it cannot read an event, or makes another state of them than the one that was kept. States are
// kept in snapshots, in the last entry of an instance that is over, and in exported journals.
//
// A state that was kept under another `stateVersion` is compared only if the code says how to bring it up to date: raising that
// number says that the fold is meant to be another.

import { isDecider, type DeciderInstance, type DeciderModel } from '../../core/definition/decider-model.ts'
import type { Definition } from '../../core/definition/definition.ts'
import type { Entry } from '../../core/model/entry.ts'
import { HoldfastError, isHoldfastError, messageOf } from '../../core/errors/error.ts'
import { isErased } from '../../core/payload/codec.ts'
import type { Run } from '../../core/model/run.ts'
import { isSameValue } from '../../core/payload/same-value.ts'
import { fetchedEntries } from '../../core/deciding/read-entries.ts'
import type { Lent } from './dry-replay.ts'
import type { KeptState } from './kept-state.ts'
import type { ReplayResult } from './replay-result.ts'

const same: ReplayResult = { outcome: 'same' }

/** Nothing of an effect is replayed: it is performed, and its outcome recorded. */
export async function replayInstance(
  definition: Definition,
  run: Run,
  entries: readonly Entry[],
  { ports, payloads, kept }: Pick<Lent, 'ports' | 'payloads' | 'kept'>,
): Promise<ReplayResult> {
  if (!isDecider(definition)) return same
  const { model } = definition
  try {
    const journal = await fetchedEntries({ ports, payloads }, entries, () => true)
    const id = run.idempotencyKey ?? run.id
    const instance = model.open({ runId: run.id, id, payloads, ports })
    const read = (entry: Entry): unknown =>
      entry.data === null
        ? undefined
        : payloads.decode(entry.data, payloads.place(run.id, entry.seq, entry.kind, entry.name))
    for (const entry of journal) {
      // A snapshot of other code says nothing of this one: the whole journal would.
      if (instance.apply([entry]) === 'stale') return same
      const found = differenceAt(model, instance, { entry, read, kept })
      if (found !== null) return found
    }
    return same
  } catch (error) {
    return { outcome: 'throws', error }
  }
}

interface Point {
  readonly entry: Entry
  readonly read: (entry: Entry) => unknown
  readonly kept: KeptState | undefined
}

/** What a state that was kept at this entry says of the fold; null if there is none, or if they agree. */
function differenceAt(
  model: DeciderModel,
  { state }: DeciderInstance,
  { entry, read, kept }: Point,
): ReplayResult | null {
  if (entry.kind === 'succeeded') {
    const output = readOutput(entry, read)
    if (output === erasedOutput) return null
    const now = { status: 'succeeded', output: state } as const
    if (isSameValue(output, state)) return null
    return { outcome: 'ends-otherwise', recorded: { status: 'succeeded', output }, now }
  }
  const recorded =
    entry.kind === 'snapshot'
      ? snapshotState(model, entry, read)
      : kept?.seq === entry.seq
        ? upcasted(model, kept, entry.seq)
        : null
  if (recorded === null || isSameValue(recorded.state, state)) return null
  return { outcome: 'folds-otherwise', seq: entry.seq, recorded: recorded.state, now: state }
}

const erasedOutput = Symbol('erased')

/** Of an instance whose data subject was erased nothing is left to compare. */
function readOutput(entry: Entry, read: Point['read']): unknown {
  try {
    return read(entry)
  } catch (error) {
    if (isErased(error)) return erasedOutput
    throw error
  }
}

function snapshotState(
  model: DeciderModel,
  entry: Extract<Entry, { kind: 'snapshot' }>,
  read: Point['read'],
): { readonly state: unknown } | null {
  const { stateVersion } = entry.meta
  if (stateVersion === undefined) return null
  let value: unknown
  try {
    value = read(entry)
  } catch (error) {
    // Nothing depends on a snapshot: one that cannot be read is passed over.
    if (isHoldfastError(error, 'PAYLOAD_CORRUPT')) return null
    throw error
  }
  const state = model.snapshotState(value)
  return state === null ? null : upcasted(model, { ...state, stateVersion }, entry.seq)
}

function upcasted(
  model: DeciderModel,
  kept: Pick<KeptState, 'stateVersion' | 'state'>,
  seq: number,
): { readonly state: unknown } | null {
  try {
    return model.presentState(kept.state, kept.stateVersion)
  } catch (cause) {
    const message = `upcastState of decider "${model.type}" cannot read a state of version ${kept.stateVersion}: ${messageOf(cause)}`
    throw new HoldfastError('DRIFT', message, { cause, details: { type: model.type, seq } })
  }
}
