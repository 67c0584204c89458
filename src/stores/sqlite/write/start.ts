// Inserting runs. Within the write lock nobody else can insert, so a look tells what is new and what is in its way, and the
// unique indexes stand behind it. Most runs have no keys, and then nobody looks for any.

import { bug } from '../../../core/errors/error.ts'
import type { MessageDraft } from '../../../core/rules/unit-of-work.ts'
import { uniqueText } from '../../../core/model/key.ts'
import type { Run } from '../../../core/model/run.ts'
import type { NewRun, Started } from '../../../store.ts'
import type { Batch } from './batch.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'
import { newRow } from '../../new-row.ts'
import { insertRuns } from './insert-runs.ts'
import { entryMarkAt, readRun } from '../read/read.ts'
import { hasEnded } from './sessions.ts'

export function startRuns(unitOfWork: SqliteUnitOfWork, runs: readonly NewRun[]): readonly Started[] {
  const { batch } = unitOfWork
  const known = knownIds(batch, runs)
  const keys = new TakenKeys(batch, runs)
  const made = new Map<string, { readonly run: Run; readonly transition: string }>()
  const alive = new Map<string, boolean>()
  const isAlive = (session: string): boolean => {
    let answer = alive.get(session)
    if (answer === undefined) alive.set(session, (answer = !hasEnded(batch.db, session)))
    return answer
  }
  const fresh: Run[] = []
  const messageArrived: { readonly run: Run; readonly mail: readonly MessageDraft[] }[] = []
  const answers = runs.map((given): Started => {
    if (known.has(given.id)) return existing(batch, given)
    const twin = made.get(given.id)
    if (twin !== undefined) return startedBefore(twin.run, twin.transition, given)
    const obstacle = keys.obstacle(given)
    if (obstacle !== null) {
      const { taken, runId } = obstacle
      return { created: false, taken, run: copied(made.get(runId)?.run ?? stored(batch, runId)) }
    }
    if (given.shard !== 0) throw bug('This store has one shard', { runId: given.id, shard: given.shard })
    const row = newRow(given, batch.now, given.lease !== null && isAlive(given.lease.session))
    const { mail = [] } = given
    const run = mail.length === 0 ? row : { ...row, inbox: mail.length }
    if (mail.length > 0) messageArrived.push({ run: row, mail })
    made.set(run.id, { run, transition: given.transition })
    keys.take(given)
    batch.append(run.id, 0, [given.first], given.transition, given.feed ? 1 : 0)
    if (run.session === null) batch.ready(run.type)
    batch.deadline(run)
    fresh.push(run)
    return { created: true, taken: null, run }
  })
  insertRuns(batch, fresh)
  if (messageArrived.length > 0) putMail(unitOfWork, messageArrived)
  return answers
}

function putMail(
  unitOfWork: SqliteUnitOfWork,
  messageArrived: readonly { readonly run: Run; readonly mail: readonly MessageDraft[] }[],
): void {
  for (const { run, mail } of messageArrived)
    mail.forEach((draft, inbox) => unitOfWork.receive(draft, { ...run, inbox }))
}

// Lists are joined and cast, not asked with IN: SQLite does either along the index, and Turso only this (measured among
// 50,000 runs: 0.3 ms instead of one second).
export const knownIdsSql = `
  select run.id from json_each(?) as one cross join runs as run
  where run.shard = 0 and run.id = cast(one.value as text)`

function knownIds({ db }: Batch, runs: readonly NewRun[]): ReadonlySet<unknown> {
  const ids = JSON.stringify(runs.map(({ id }) => id))
  return new Set(db.all(knownIdsSql, [ids]).map((row) => row['id']))
}

export const takenKeysSql = `
  select run.unique_key, run.id from json_each(?) as one cross join runs as run
  where run.shard = 0 and run.unique_key = cast(one.value as text) and run.unique_key is not null
    and run.ended_at is null and run.deleted_at is null`

export const takenIdempotencySql = `
  select run.started_as, run.idempotency_key, run.id from json_each(?) as one cross join runs as run
  where run.shard = 0 and run.idempotency_key = one.value ->> 1 and run.started_as = one.value ->> 0
    and run.idempotency_key is not null and run.deleted_at is null`

/** Which keys of a batch are taken, and by whom: before it, and by those of the batch that come first. */
class TakenKeys {
  private readonly unique = new Map<string, string>()
  private readonly idempotent = new Map<string, string>()

  constructor({ db }: Batch, runs: readonly NewRun[]) {
    const texts = runs.map(uniqueText).filter((text) => text !== null)
    if (texts.length > 0) {
      for (const row of db.all(takenKeysSql, [JSON.stringify(texts)])) {
        this.unique.set(row['unique_key'] as string, row['id'] as string)
      }
    }
    const pairs = runs.filter((run) => run.idempotencyKey !== null).map((run) => [run.type, run.idempotencyKey])
    if (pairs.length > 0) {
      for (const row of db.all(takenIdempotencySql, [JSON.stringify(pairs)])) {
        this.idempotent.set(pair(row['started_as'] as string, row['idempotency_key'] as string), row['id'] as string)
      }
    }
  }

  obstacle(run: NewRun): { readonly taken: 'idempotency-key' | 'key'; readonly runId: string } | null {
    const same = run.idempotencyKey === null ? undefined : this.idempotent.get(pair(run.type, run.idempotencyKey))
    if (same !== undefined) return { taken: 'idempotency-key', runId: same }
    const text = uniqueText(run)
    const holder = text === null ? undefined : this.unique.get(text)
    return holder === undefined ? null : { taken: 'key', runId: holder }
  }

  take(run: NewRun): void {
    if (run.idempotencyKey !== null) this.idempotent.set(pair(run.type, run.idempotencyKey), run.id)
    const text = uniqueText(run)
    if (text !== null) this.unique.set(text, run.id)
  }
}

/** A type has no space. */
function pair(type: string, key: string): string {
  return `${type} ${key}`
}

function existing(batch: Batch, given: NewRun): Started {
  return startedBefore(stored(batch, given.id), entryMarkAt(batch.db, given.id, 1)?.transition, given)
}

/** Our own insert whose answer was lost carries our transition id; any other run of that id is somebody else's. */
function startedBefore(run: Run, transition: string | null | undefined, given: NewRun): Started {
  const created = transition === given.transition
  return { created, taken: created ? null : 'id', run: copied(run) }
}

function stored({ db }: Batch, id: string): Run {
  const run = readRun(db, id)
  if (run === undefined) throw bug('A run vanished', { runId: id })
  return run
}

function copied(run: Run): Run {
  return { ...run, tags: [...run.tags] }
}
