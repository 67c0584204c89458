// Inserting runs. Within the write lock nobody else can insert, so a look tells what is new, and the primary key stands
// behind it.

import { bug } from '../../core/error.ts'
import type { Run } from '../../core/run.ts'
import { dueAt } from '../../core/transition.ts'
import type { NewRun, Started } from '../../store.ts'
import type { Batch } from './batch.ts'
import type { Value } from './driver.ts'
import { readRun, transitionAt } from './reading.ts'
import { hasEnded } from './sessions.ts'

export function startRuns(batch: Batch, runs: readonly NewRun[]): readonly Started[] {
  const known = knownIds(batch, runs)
  const made = new Map<string, { readonly run: Run; readonly transition: string }>()
  const alive = new Map<string, boolean>()
  const isAlive = (session: string): boolean => {
    let answer = alive.get(session)
    if (answer === undefined) alive.set(session, (answer = !hasEnded(batch.db, session)))
    return answer
  }
  const fresh: Run[] = []
  const answers = runs.map((given): Started => {
    if (known.has(given.id)) return existing(batch, given)
    const twin = made.get(given.id)
    if (twin !== undefined) return { created: twin.transition === given.transition, run: { ...twin.run } }
    const run = newRow(given, batch.now, given.lease !== null && isAlive(given.lease.session))
    made.set(run.id, { run, transition: given.transition })
    batch.append(run.id, 0, [given.first], given.transition)
    if (run.session === null) batch.ready(run.type)
    fresh.push(run)
    return { created: true, run }
  })
  insertRuns(batch, fresh)
  return answers
}

function knownIds({ db }: Batch, runs: readonly NewRun[]): ReadonlySet<unknown> {
  const ids = JSON.stringify(runs.map(({ id }) => id))
  const rows = db.all('select id from runs where shard = 0 and id in (select value from json_each(?))', [ids])
  return new Set(rows.map((row) => row['id']))
}

/** Most new runs are plain: ready or leased, without bounds on their time. Columns that need no value are left out. */
function insertRuns({ db }: Batch, runs: readonly Run[]): void {
  const ready: Value[] = []
  const leased: Value[] = []
  const others: Value[] = []
  for (const run of runs) {
    const { id, type, version, status, readiness, priority, due, token, session, deadline, timeoutAt, expiresAt } = run
    const now = run.createdAt
    if (deadline !== null || timeoutAt !== null || expiresAt !== null || readiness === 'timed') {
      others.push(id, type, version, status, readiness, priority, due, token, session)
      others.push(deadline, timeoutAt, expiresAt, now, now)
    } else if (session === null) ready.push(id, type, version, priority, due, now, now)
    else leased.push(id, type, version, status, readiness, priority, token, session, now, now)
  }
  const times = 'created_at, updated_at'
  db.insert(`runs (shard, id, type, version, priority, due, ${times})`, 7, ready)
  db.insert(`runs (shard, id, type, version, status, readiness, priority, token, session, ${times})`, 10, leased)
  const bounds = 'deadline, timeout_at, expires_at'
  const all = `id, type, version, status, readiness, priority, due, token, session, ${bounds}, ${times}`
  db.insert(`runs (shard, ${all})`, 14, others)
}

/** Our own insert whose answer was lost carries our transition id; any other run of that id is somebody else's. */
function existing({ db }: Batch, given: NewRun): Started {
  const run = readRun(db, given.id)
  if (run === undefined) throw bug('A run vanished', { runId: given.id })
  return { created: transitionAt(db, given.id, 1) === given.transition, run }
}

function newRow(given: NewRun, now: number, leased: boolean): Run {
  if (given.shard !== 0) throw bug('This store has one shard', { runId: given.id, shard: given.shard })
  const due = dueAt(given.due, now) ?? now
  const unleased = {
    status: 'pending',
    readiness: due > now ? 'timed' : 'ready',
    due,
    token: 0,
    session: null,
  } as const
  const lease = given.lease ?? { session: '', token: 0 }
  return {
    id: given.id,
    shard: 0,
    type: given.type,
    version: given.version,
    priority: given.priority,
    ...(leased ? { status: 'running', readiness: 'leased', due: null, ...lease } : unleased),
    seq: 1,
    base: 1,
    inbox: 0,
    crashes: 0,
    deadline: leased && given.leaseMs !== null ? now + given.leaseMs : null,
    timeoutAt: given.timeoutMs === null ? null : now + given.timeoutMs,
    expiresAt: leased || given.expiresInMs === null ? null : now + given.expiresInMs,
    createdAt: now,
    updatedAt: now,
    endedAt: null,
  }
}
