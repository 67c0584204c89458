// An instance in the memory of this process: its fold, and what is known of its run. Other processes decide for it, too, so it
// may lag behind the store at any time; only a commit, or a look at the row, says that it does not.

import { isDecider, type DeciderDefinition, type DeciderInstance } from '../../core/definition/decider-model.ts'
import type { Host } from '../../core/definition/definition.ts'
import { HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import type { Entry } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import { fetchedEntries } from '../../core/deciding/read-entries.ts'
import type { WrittenRun } from '../../core/deciding/decided-transition.ts'
import { quotedText } from '../../core/text/printable.ts'
import type { DecidingEngine } from './deciding-engine.ts'
import { loadEntries } from '../store/journal-pages.ts'
import { adminOf } from '../store/store-admin.ts'

/** What an instance costs besides the texts that it was folded from. */
const leastBytes = 2_000

export class CachedInstance {
  run: WrittenRun
  readonly definition: DeciderDefinition
  readonly instance: DeciderInstance
  /** What it takes of memory, by the texts that were folded: at least what its state can take. */
  bytes = leastBytes
  private readonly engine: DecidingEngine

  constructor(engine: DecidingEngine, definition: DeciderDefinition, run: WrittenRun) {
    this.engine = engine
    this.definition = definition
    this.run = run
    const { payloads, ports } = engine
    const prepare: Host['prepare'] = (child) => engine.outgoing.prepare(child)
    this.instance = definition.model.open({ runId: run.id, id: run.instanceId, payloads, ports, prepare })
  }

  /** Folds all that the store has behind the last known entry. True if there was something. */
  async catchUp(): Promise<boolean> {
    const entries = await loadEntries(this.engine.store, this.run.id, this.instance.seq)
    await this.fold(entries)
    return entries.length > 0
  }

  /** Entries in order. `stale`: they begin with a snapshot of other code. */
  async fold(entries: readonly Entry[]): Promise<'folded' | 'stale'> {
    for (const { data } of entries) this.bytes += data?.length ?? 0
    return this.instance.apply(await fetchedEntries(this.engine, entries, () => true))
  }

  /** Whether the store has nothing that is not known here. */
  async isCurrent(): Promise<boolean> {
    const [run] = await this.engine.store.get([this.run.id])
    return run !== undefined && run.deletedAt === null && run.seq === this.instance.seq
  }
}

/** The row of the instance that has this id and is not deleted; null if there is none. */
export async function findInstanceRun(engine: DecidingEngine, type: string, id: string): Promise<Run | null> {
  const [run] = await adminOf(engine).find({ types: [type], idempotencyKey: id }, { limit: 1 })
  return run ?? null
}

/** Reads an instance; null if there is none. Throws EVENT_UNREADABLE, or WORKFLOW_UNKNOWN at a version that is not here. */
export async function loadInstance(engine: DecidingEngine, type: string, id: string): Promise<CachedInstance | null> {
  const run = await findInstanceRun(engine, type, id)
  return run === null ? null : instanceOf(engine, run)
}

/** The instance of that run, as its journal is now. */
export async function instanceOf(engine: DecidingEngine, run: Run): Promise<CachedInstance> {
  const instanceId = run.idempotencyKey ?? run.id
  const definition = engine.registry.get(run.type, run.version)
  if (!isDecider(definition)) throw notDecider(run.type)
  const written: WrittenRun = { ...run, instanceId }
  const cached = new CachedInstance(engine, definition, written)
  if ((await cached.fold(await loadEntries(engine.store, run.id, run.base - 1))) === 'folded') return cached
  const whole = new CachedInstance(engine, definition, written)
  await whole.fold(await loadEntries(engine.store, run.id))
  return whole
}

export function notDecider(type: string): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    `${quotedText(type)} is no decider: its runs take no inputs. Send it a signal, or start it.`,
    { details: { type } },
  )
}

/** Why the store refused a transition; null if the error is none of its refusals. */
export function refusalReason(error: unknown): string | null {
  if (!isHoldfastError(error)) return null
  const { reason } = error.details
  return error.family === 'conflict' || error.code === 'RUN_NOT_FOUND'
    ? typeof reason === 'string'
      ? reason
      : null
    : null
}
