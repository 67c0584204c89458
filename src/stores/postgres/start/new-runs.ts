// Runs to be inserted, each with its first entry, as columns. Most columns are empty mostly, for few runs have a key, tags or a
// parent: then the statement does without them.

import { uniqueText } from '../../../core/model/key.ts'
import type { Due } from '../../../core/model/due.ts'
import type { MessageDraft } from '../../../core/model/message.ts'
import { followingOf, isPlainlyDecided } from '../../../core/deciding/plainly-decided.ts'
import type { NewRun, RunStart } from '../../../store.ts'
import { ArrayText, noValues, rowFrom, rowsFrom } from '../array-text.ts'
import type { Value } from '../execution.ts'

const usual = {
  place: 'integer',
  nth: 'integer',
  id: 'uuid',
  type: 'text',
  version: 'integer',
  rank: 'integer',
  session: 'text',
  token: 'bigint',
  lease_ms: 'bigint',
  key_scope: 'text',
  entry_kind: 'text',
  entry_name: 'text',
  entry_data: 'text',
  transition: 'text',
}

const rare = {
  due_at: 'bigint',
  due_after: 'bigint',
  timeout_ms: 'bigint',
  expires_ms: 'bigint',
  key: 'text',
  unique_key: 'text',
  idempotency_key: 'text',
  parent_id: 'uuid',
  tags: 'text',
  metadata: 'text',
  key_id: 'text',
  inbox: 'integer',
  feed: 'boolean',
  entry_meta: 'text',
}

const columns = { ...usual, ...rare }

/** What a run has besides if its first input is decided, or that of another one of its batch is. */
const decided = { waits: 'boolean', seq: 'integer' }

/** How many values the runs of a batch take, if they have more than the usual. */
export const newRunValues = Object.keys(columns).length

/** The same if the first input of one of them is decided. */
export const decidedRunValues = newRunValues + Object.keys(decided).length

/** The rows of runs whose first value has that place. */
export function newRunsFrom(first: number): string {
  return `select * from ${rowsFrom(columns, first)} as given`
}

/** The same if the first input of one of them is decided. */
export function decidedRunsFrom(first: number): string {
  return `select * from ${rowsFrom({ ...columns, ...decided }, first)} as given`
}

/** The same for runs that have nothing but the usual; `isOne`: there is one. */
export function usualRunsFrom(first: number, isOne: boolean): string {
  const nulls = Object.entries(rare).map(([name, type]) => `null::${type} as ${name}`)
  return `select given.*, ${nulls.join(', ')} from ${(isOne ? rowFrom : rowsFrom)(usual, first)} as given`
}

/** Runs in the order of their insertion, and where each stands in its batch, for one of the two. */
export function valuesOfNewRuns(
  runs: readonly RunStart[],
  nthOf: (run: RunStart, place: number) => number,
): { readonly values: readonly Value[]; readonly isUsual: boolean } {
  const arrays = Object.fromEntries(
    Object.keys({ ...columns, ...decided }).map((name) => [name, new ArrayText()]),
  ) as Readonly<Record<keyof typeof columns | keyof typeof decided, ArrayText>>
  const isDecided = runs.some(isDecidedRun)
  for (const [place, run] of runs.entries()) {
    const { first } = run
    const { length } = messagesOf(run)
    const waits = isDecidedRun(run)
    const lease = waits ? null : run.lease
    const due = waits ? dueOfDecided(run) : run.due
    if (isDecided) {
      arrays.waits.add(waits ? 'true' : 'false')
      arrays.seq.add(1 + followingOf(run).length)
    }
    arrays.place.add(place)
    arrays.nth.add(nthOf(run, place))
    arrays.id.add(run.id)
    arrays.type.add(run.type)
    arrays.version.add(run.version)
    arrays.rank.add(0 - run.priority)
    arrays.due_at.add(due?.at)
    arrays.due_after.add(due?.afterMs)
    arrays.timeout_ms.add(run.timeoutMs)
    arrays.expires_ms.add(run.expiresInMs)
    arrays.session.add(lease?.session)
    arrays.token.add(lease?.token)
    arrays.lease_ms.add(lease === null ? null : run.leaseMs)
    arrays.key.add(run.key)
    arrays.key_scope.add(run.keyScope)
    arrays.unique_key.add(run.key === null ? null : uniqueText(run))
    arrays.idempotency_key.add(run.idempotencyKey)
    arrays.parent_id.add(run.parentId)
    arrays.tags.add(run.tags.length > 0 ? JSON.stringify(run.tags) : null)
    arrays.metadata.add(run.metadata)
    arrays.key_id.add(run.keyId)
    arrays.inbox.add(length > 0 ? length : null)
    arrays.feed.add(run.feed ? 'true' : null)
    arrays.entry_kind.add(first.kind)
    arrays.entry_name.add(first.name)
    arrays.entry_meta.add(first.meta === null ? null : JSON.stringify(first.meta))
    arrays.entry_data.add(first.data)
    arrays.transition.add(run.transition)
  }
  const arraysOf = (names: object): readonly ArrayText[] =>
    Object.keys(names).map((name) => arrays[name as keyof typeof columns])
  const rest = arraysOf(isDecided ? { ...rare, ...decided } : rare).map(String)
  const isUsual = rest.every((text) => text === noValues)
  if (isUsual && runs.length === 1) return { values: arraysOf(usual).map(({ last }) => last), isUsual }
  const values = arraysOf(usual).map(String)
  return { values: isUsual ? values : [...values, ...rest], isUsual }
}

export function isDecidedRun({ decided = null }: RunStart): boolean {
  return decided !== null
}

function dueOfDecided(run: RunStart): Due | null {
  if (isPlainlyDecided(run)) return run.decided?.due ?? null
  // A message wakes it, and what follows does not take that back.
  return messagesOf(run).length > 0 ? { at: null, afterMs: 0 } : null
}

/** The first messages of its mailbox, each once. */
export function messagesOf({ messages = [] }: NewRun): readonly MessageDraft[] {
  return messages.length < 2
    ? messages
    : [...new Map(messages.toReversed().map((one) => [one.id, one])).values()].toReversed()
}
