// Runs to be inserted, each with its first entry, as columns. Most columns are empty mostly, for few runs have a key, tags or a
// parent: then the statement does without them.

import { uniqueText } from '../../../core/model/key.ts'
import type { MessageDraft } from '../../../core/model/message.ts'
import type { NewRun } from '../../../store.ts'
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

/** How many values the runs of a batch take, if they have more than the usual. */
export const newRunValues = Object.keys(columns).length

/** The rows of runs whose first value has that place. */
export function newRunsFrom(first: number): string {
  return `select * from ${rowsFrom(columns, first)} as given`
}

/** The same for runs that have nothing but the usual; `isOne`: there is one. */
export function usualRunsFrom(first: number, isOne: boolean): string {
  const nulls = Object.entries(rare).map(([name, type]) => `null::${type} as ${name}`)
  return `select given.*, ${nulls.join(', ')} from ${(isOne ? rowFrom : rowsFrom)(usual, first)} as given`
}

/** Runs in the order of their insertion, and where each stands in its batch, for one of the two. */
export function valuesOfNewRuns(
  runs: readonly NewRun[],
  nthOf: (run: NewRun) => number,
): { readonly values: readonly Value[]; readonly isUsual: boolean } {
  const arrays = Object.fromEntries(Object.keys(columns).map((name) => [name, new ArrayText()])) as Readonly<
    Record<keyof typeof columns, ArrayText>
  >
  for (const [place, run] of runs.entries()) {
    const { due, lease, first } = run
    const { length } = messagesOf(run)
    arrays.place.add(place)
    arrays.nth.add(nthOf(run))
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
  const rest = arraysOf(rare).map(String)
  const isUsual = rest.every((text) => text === noValues)
  if (isUsual && runs.length === 1) return { values: arraysOf(usual).map(({ last }) => last), isUsual }
  const values = arraysOf(usual).map(String)
  return { values: isUsual ? values : [...values, ...rest], isUsual }
}

/** The first messages of its mailbox, each once. */
export function messagesOf({ messages = [] }: NewRun): readonly MessageDraft[] {
  return messages.length < 2
    ? messages
    : [...new Map(messages.toReversed().map((one) => [one.id, one])).values()].toReversed()
}
