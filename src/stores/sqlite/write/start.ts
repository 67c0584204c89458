// Inserting runs. Within the write lock no other process can insert, so a read finds the obstacle to each run, and the unique
// indexes guarantee it. Most runs have no keys, and then none are looked for.

import { bug } from '../../../core/errors/error.ts'
import type { MessageDraft } from '../../../core/model/message.ts'
import { uniqueText } from '../../../core/model/key.ts'
import { followingOf, insertedRow, isPlainlyDecided } from '../../../core/deciding/plainly-decided.ts'
import { startRun, type Followed, type StartWork, type Twin } from '../../../core/rules/start.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Transition } from '../../../core/model/transition.ts'
import type { NewRun, RunStart, Started } from '../../../store.ts'
import type { Batch } from './batch.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'
import { insertRuns } from './insert-runs.ts'
import { entryMarkAt } from '../read/read.ts'
import { hasEnded } from './sessions.ts'

/** What follows from the first input of a run, whose row is written. */
export type Follow = (decided: Transition) => Followed

export function startRuns(
  unitOfWork: SqliteUnitOfWork,
  runs: readonly RunStart[],
  follow: Follow = neverFollowed,
): readonly Started[] {
  const work = new SqliteStartWork(unitOfWork, runs, follow)
  const answers = runs.map((given) => startRun(work, given))
  work.write()
  return answers
}

/** The obstacles of a batch of starts, and the rows that it has made so far: rows go in few statements at the end. */
class SqliteStartWork implements StartWork {
  private readonly unitOfWork: SqliteUnitOfWork
  private readonly followRules: Follow
  /** The runs that were inserted with all that follows from their first inputs. */
  private readonly followed = new Set<string>()
  private readonly batch: Batch
  private readonly given: ReadonlyMap<string, RunStart>
  private readonly known: Set<unknown>
  private readonly keys = new TakenKeys()
  private readonly made = new Map<string, Twin>()
  private readonly ended = new Map<string, boolean>()
  private fresh: Run[] = []
  private withMessages: { readonly run: Run; readonly messages: readonly MessageDraft[] }[] = []

  constructor(unitOfWork: SqliteUnitOfWork, runs: readonly RunStart[], follow: Follow) {
    this.given = new Map(runs.map((run) => [run.id, run]))
    this.unitOfWork = unitOfWork
    this.followRules = follow
    this.batch = unitOfWork.batch
    this.known = knownIds(this.batch, runs)
    this.keys.read(this.batch, runs)
  }

  twin({ id }: NewRun): Twin | undefined {
    const made = this.made.get(id)
    if (made !== undefined) return { run: copied(made.run), transition: made.transition }
    if (!this.known.has(id)) return undefined
    return { run: this.stored(id), transition: entryMarkAt(this.batch.db, id, 1)?.transition }
  }

  sameStart(given: NewRun): Run | undefined {
    return this.holder(this.keys.sameStart(given))
  }

  keyRival(given: NewRun): Run | undefined {
    return this.holder(this.keys.rival(given))
  }

  hasEnded(session: string): boolean {
    let answer = this.ended.get(session)
    if (answer === undefined) this.ended.set(session, (answer = hasEnded(this.batch.db, session)))
    return answer
  }

  insert(given: RunStart, isLeased: boolean): Run {
    const { batch } = this
    if (given.shard !== 0) throw bug('This store has one shard', { runId: given.id, shard: given.shard })
    const row = insertedRow(given, batch.now, isLeased)
    const { messages = [], decided = null } = given
    const following = followingOf(given)
    const run = messages.length === 0 ? row : { ...row, inbox: messages.length }
    if (messages.length > 0) this.withMessages.push({ run: row, messages })
    this.made.set(run.id, { run, transition: given.transition })
    this.keys.take(given)
    batch.append(run.id, 0, [given.first], given.transition, given.feed ? 1 : 0)
    batch.append(run.id, 1, following, decided?.id ?? null, given.feed ? following.length : 0)
    if (isPlainlyDecided(given)) this.followed.add(run.id)
    batch.written(undefined, run)
    this.fresh.push(run)
    return run
  }

  follow(decided: Transition): Followed {
    const made = this.made.get(decided.runId)
    if (made !== undefined && this.followed.has(decided.runId)) return { run: copied(made.run) }
    this.write()
    const followed = this.followRules(decided)
    if (made !== undefined) this.made.set(decided.runId, { ...made, run: followed.run })
    this.readAgain(decided)
    return followed
  }

  /** It may have ended, which frees its key, and its children may have taken ids and keys. It touched no others. */
  private readAgain({ runId, outbound = null }: Transition): void {
    const children = (outbound?.starts ?? []).map(({ run }) => run)
    const given = this.given.get(runId)
    const touched = given === undefined ? children : [given, ...children]
    if (children.length > 0) for (const id of knownIds(this.batch, children)) this.known.add(id)
    this.keys.read(this.batch, touched)
  }

  /** Writes the rows that are not written yet, and then what lies in their mailboxes. */
  write(): void {
    insertRuns(this.batch, this.fresh)
    for (const { run, messages } of this.withMessages) {
      messages.forEach((draft, inbox) => this.unitOfWork.receive(draft, { ...run, inbox }))
    }
    this.fresh = []
    this.withMessages = []
  }

  private holder(id: string | undefined): Run | undefined {
    if (id === undefined) return undefined
    const made = this.made.get(id)
    return made === undefined ? this.stored(id) : copied(made.run)
  }

  private stored(id: string): Run {
    const run = this.unitOfWork.run(id)
    if (run === undefined) throw bug('A run vanished', { runId: id })
    return run
  }
}

// Lists are joined and cast, not asked with IN: SQLite does either along the index, and Turso only this (measured among
// 50,000 runs: 0.3 ms instead of one second).
export const knownIdsSql = `
  select run.id from json_each(?) as one cross join runs as run
  where run.shard = 0 and run.id = cast(one.value as text)`

function knownIds({ db }: Batch, runs: readonly NewRun[]): Set<unknown> {
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

/** Which keys of a batch are taken, and by which runs: older ones, and those of the batch that come first. */
class TakenKeys {
  private readonly unique = new Map<string, string>()
  private readonly idempotent = new Map<string, string>()

  /** Which keys of these runs are taken now. */
  read({ db }: Batch, runs: readonly NewRun[]): void {
    const texts = runs.map(uniqueText).filter((text) => text !== null)
    for (const text of texts) this.unique.delete(text)
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

  sameStart({ type, idempotencyKey }: NewRun): string | undefined {
    return idempotencyKey === null ? undefined : this.idempotent.get(pair(type, idempotencyKey))
  }

  rival(run: NewRun): string | undefined {
    const text = uniqueText(run)
    return text === null ? undefined : this.unique.get(text)
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

function neverFollowed({ runId }: Transition): never {
  throw bug('A child is started with an input that is decided', { runId })
}

function copied(run: Run): Run {
  return { ...run, tags: [...run.tags] }
}
