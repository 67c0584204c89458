// One instance as a whole, for a person who asks what it is doing: its state, how it came to it, and what it waits for. All of it
// is folded from one reading of its journal, so the parts agree. An event that cannot be read hides nothing else: what was folded
// before it is shown, and the error says the rest.

import type { DeciderDefinition, DeciderInstance } from '../../core/definition/decider-model.ts'
import type { Definition } from '../../core/definition/definition.ts'
import { effectRunId } from '../../core/deciding/effect-run.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import type { Entry } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import { findInstanceRun } from '../../engine/deciders/cached-instance.ts'
import type { Engine } from '../../engine/engine.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import { abortable } from '../abort-option.ts'
import { checkWhole } from '../read/cursor.ts'
import { copied, deciderOf } from './execute.ts'
import type { InspectOptions } from './instance-reader.ts'
import type { HistoricEvent, Inspection, PendingEffectView } from './instance-views.ts'
import { codeOf, entriesOf, openInstance } from './instance-walk.ts'
import { backlogOf, causeOf, checkInstanceId, eventOf } from './read-instance.ts'

/** @internal */
export async function inspectInstance(
  engine: Engine,
  decider: Definition | string,
  id: string,
  options: InspectOptions = {},
): Promise<Inspection | undefined> {
  engine.assertOpen()
  checkOptions(options, ['limit', 'abortSignal'], 'inspect()')
  const { limit = 100, abortSignal } = options
  checkWhole(limit, 'inspect({ limit })', { least: 0, most: Number.MAX_SAFE_INTEGER })
  const { type } = deciderOf(engine, decider)
  const named = checkInstanceId(id)
  return abortable('inspect()', abortSignal, async () => {
    const run = await findInstanceRun(engine, type, named)
    return run === null ? undefined : inspected(engine, run, limit)
  })
}

async function inspected(engine: Engine, run: Run, limit: number): Promise<Inspection> {
  const code = codeOf(engine, run)
  const instance = openInstance(engine, code, run)
  const { history, unreadable } = await folded(engine, run, { code, instance, limit })
  const { view } = code.model
  const { state, hasBegun, seq } = instance
  const isShown = view !== null && hasBegun
  return {
    type: run.type,
    version: run.version,
    id: run.idempotencyKey ?? run.id,
    runId: run.id,
    status: run.status,
    seq,
    createdAt: new Date(run.createdAt),
    endedAt: run.endedAt === null ? null : new Date(run.endedAt),
    state: hasBegun ? copied(state) : undefined,
    info: isShown ? view.stateInfo(state) : null,
    transitions: isShown && !instance.isOver ? view.transitions(state) : [],
    history,
    effects: await effectsOf(engine, run, instance),
    timers: instance.timers.map(({ key, dueAt, failures }) => ({ key, dueAt: dateOf(dueAt), failures })),
    backlog: await backlogOf(engine, run),
    unreadable,
  }
}

interface Folding {
  readonly code: DeciderDefinition
  readonly instance: DeciderInstance
  readonly limit: number
}

async function folded(
  engine: Engine,
  run: Run,
  { code, instance, limit }: Folding,
): Promise<Pick<Inspection, 'history' | 'unreadable'>> {
  let recent: HistoricEvent[] = []
  let cause: HistoricEvent['cause'] = { input: null, from: { kind: 'start' }, commandId: null }
  const add = (entry: Entry): void => {
    if (entry.kind === 'input') cause = causeOf(entry)
    const event = entry.kind === 'event' ? eventOf(engine, { run, model: code.model }, entry) : null
    if (event !== null) recent.push({ ...event, cause })
    // Only now and then: each cut copies the rest.
    if (recent.length > 2 * limit + 100) recent = last(recent, limit)
  }
  try {
    for await (const entry of entriesOf(engine, run)) {
      instance.apply([entry])
      add(entry)
    }
  } catch (error) {
    if (!isHoldfastError(error, 'EVENT_UNREADABLE')) throw error
    return { history: last(recent, limit), unreadable: error }
  }
  return { history: last(recent, limit), unreadable: null }
}

function last<One>(list: readonly One[], count: number): One[] {
  return count === 0 ? [] : list.slice(-count)
}

async function effectsOf(
  engine: Engine,
  { id }: Run,
  instance: DeciderInstance,
): Promise<readonly PendingEffectView[]> {
  const pending = instance.effects
  const ids = pending.map(({ seq }) => effectRunId(engine.ports.digest, id, seq))
  const rows = ids.length === 0 ? [] : await engine.store.get(ids)
  const byId = new Map(rows.flatMap((row) => (row === undefined ? [] : [[row.id, row] as const])))
  return pending.map(({ name, type, seq, createdAt }, at) => {
    const row = byId.get(ids[at] ?? '')
    const run = row === undefined ? null : { id: row.id, status: row.status, dueAt: dateOf(row.due) }
    return { name, type, seq, createdAt: dateOf(createdAt), run }
  })
}

function dateOf(at: number | null): Date | null {
  return at === null ? null : new Date(at)
}
