// Which rows a filter means. Everything that it names must match; of a list, any member.

import { lowestIdAt } from '../model/run-id.ts'
import type { Run } from '../model/run.ts'
import type { RunFilter } from '../model/store-admin.ts'

type Findable = Pick<
  Run,
  'id' | 'type' | 'status' | 'key' | 'idempotencyKey' | 'version' | 'parentId' | 'tags' | 'deletedAt'
>

/** Those that match, newest first. */
export function matching<Row extends Findable>(rows: Iterable<Row>, filter: RunFilter): readonly Row[] {
  const { from = '', before = null } = createdIds(filter)
  return Array.from(rows)
    .filter((row) => row.id >= from && (before === null || row.id < before) && matches(row, filter))
    .sort((a, b) => (a.id < b.id ? 1 : -1))
}

function matches(row: Findable, filter: RunFilter): boolean {
  return (
    (row.deletedAt !== null) === (filter.deleted ?? false) &&
    isAmong(row.id, filter.ids) &&
    isAmong(row.type, filter.types) &&
    isAmong(row.status, filter.statuses) &&
    isSame(row.key, filter.key) &&
    isSame(row.idempotencyKey, filter.idempotencyKey) &&
    isSame(row.version, filter.version) &&
    isSame(row.parentId, filter.parentId) &&
    (filter.tag === undefined || row.tags.includes(filter.tag)) &&
    (filter.typePrefix === undefined || row.type.startsWith(filter.typePrefix))
  )
}

/** The times of creation of a filter as a range of ids, which carry the time: the order of a list is that of its ids. */
export function createdIds({ createdFrom, createdBefore }: RunFilter): {
  readonly from?: string
  readonly before?: string
} {
  return {
    ...(createdFrom === undefined ? {} : { from: lowestIdAt(createdFrom) }),
    ...(createdBefore === undefined ? {} : { before: lowestIdAt(createdBefore) }),
  }
}

function isAmong<Member>(value: Member, members: readonly Member[] | undefined): boolean {
  return members === undefined || members.includes(value)
}

function isSame<Value>(value: Value | null, wanted: Value | undefined): boolean {
  return wanted === undefined || value === wanted
}
