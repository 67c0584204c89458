// How long the database lets a statement of ours take, and wait for a lock. Both follow the storage timeout, and that follows
// the leases of the worker here: a statement that the database still executes when its caller has given up keeps its locks,
// and delays the next transactions.

export interface Times {
  readonly statementMs: number
  readonly lockMs: number
}

/**
 * How long a statement waits for a lock
 *
 *   shortly   in every batch that others queue behind: most locks are ours, and gone by then
 *   a while   in items that go apart, so that one that waits for a row that many want gets it at some time
 *   long      in transactions of users, which are not repeated for them, and where no row can be skipped
 */
export type LockWait = 'shortly' | 'a while' | 'long'

/** At most this part of the storage timeout, so that the answer comes in time. */
const waits: Readonly<Record<LockWait, { readonly part: number; readonly mostMs: number }>> = {
  shortly: { part: 1 / 15, mostMs: 50 },
  'a while': { part: 1 / 10, mostMs: 200 },
  long: { part: 1 / 15, mostMs: Number.POSITIVE_INFINITY },
}

export function timesFor(storageMs: number, wait: LockWait): Times {
  const { part, mostMs } = waits[wait]
  return { statementMs: whole(storageMs * 0.9), lockMs: whole(Math.min(storageMs * part, mostMs)) }
}

/** As expressions that set them, for one transaction or for the rest of a connection. */
export function timesSql({ statementMs, lockMs }: Times, isLocal: boolean): string {
  const set = (name: string, ms: number): string =>
    `pg_catalog.set_config('${name}'::text, '${ms}'::text, ${String(isLocal)})`
  return `${set('statement_timeout', statementMs)}, ${set('lock_timeout', lockMs)}`
}

export function areSame(one: Times, other: Times): boolean {
  return one.statementMs === other.statementMs && one.lockMs === other.lockMs
}

function whole(ms: number): number {
  return Math.max(1, Math.round(ms))
}
