// SQLite does everything under one lock, so it needs neither the plan's locks nor its order. What it writes must be what the
// plan writes all the same: a store that writes something else does something else. The feed is left out where they differ
// by design: SQLite gives positions while it writes.

import Database from 'libsql'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { StoreAdmin, Store } from '../../../../src/store.ts'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { statementPlan, type PlannedMethod, type PlannedStatement } from '../../../../src/stores/statement-plan.ts'
import { createContractBench, createVirtualClock, type ContractBench } from '../../../../src/testing/index.ts'
import { createPlannedStore } from '../../../support/planned-store.ts'
import { temporaryPaths } from './folder.ts'

const nextPath = temporaryPaths()

/** What a statement of SQLite is for: the beginning of its text, and the name of its like in the plan. */
const roles: readonly (readonly [RegExp, string])[] = [
  [/^insert into runs\b/, 'insert'],
  [/^insert into journal\b/, 'append'],
  [/^insert into feed\b/, 'feed'],
  [/^insert into messages\b/, 'insert'],
  [/^insert into sessions\b/, 'session'],
  [/^update sessions set ended_at\b/, 'sessions'],
  [/^update messages set taken_by\b/, 'take'],
  [/^update runs set seq\b/, 'update'],
  [/^update runs set type\b/, 'write'],
  [/^update runs set inbox\b/, 'bump'],
  [/^update runs set readiness = 'ready' where rowid\b/, 'promote'],
  [/^update runs set status = case\b/, 'lease'],
  [/^update runs set deadline\b/, 'extend'],
]

/** The name of a statement that writes; null for one that reads. */
function roleOf(sql: string): string | null {
  const text = sql.trim().replaceAll(/\s+/g, ' ')
  if (!/^(?:insert|update|delete|replace)\b/.test(text)) return null
  return roles.find(([form]) => form.test(text))?.[1] ?? `unknown: ${text}`
}

/** What was written since one last asked. */
type Writes = () => readonly string[]

async function openTracedSqlite(): Promise<{ readonly bench: ContractBench; readonly writes: Writes }> {
  const database = new Database(nextPath())
  onTestFinished(() => void database.close())
  let written: string[] = []
  const handle = {
    prepare(sql: string) {
      const statement = database.prepare(sql)
      const role = roleOf(sql)
      const noted =
        <Answer>(ask: (values: unknown) => Answer) =>
        (values: unknown): Answer => {
          if (role !== null) written.push(role)
          return ask(values)
        }
      return {
        run: noted((values) => statement.run(values)),
        get: noted((values) => statement.get(values)),
        all: noted((values) => statement.all(values)),
      }
    },
    exec: (sql: string) => database.exec(sql),
    pragma: (source: string) => database.pragma(source),
    close: () => database.close(),
  }
  const clock = createVirtualClock()
  const store = await openSqliteStore({ handle, clock })
  await store.migrate()
  const writes = (): readonly string[] => {
    const names = [...new Set(written)].toSorted()
    written = []
    return names
  }
  return { bench: createContractBench({ store, clock }), writes }
}

function openPlanned(): { readonly bench: ContractBench; readonly writes: Writes } {
  const kinds = new Map<string, PlannedStatement['kind']>()
  for (const plan of Object.values(statementPlan)) for (const { name, kind } of plan) kinds.set(name, kind)
  let written: string[] = []
  const onCall = (method: PlannedMethod, executed: readonly string[]): void => {
    const names = executed.filter((name) => kinds.get(name) === 'write').map((name) => name.slice(method.length + 1))
    written.push(...names)
  }
  const clock = createVirtualClock()
  const store: Store & StoreAdmin = createPlannedStore({ clock, schedule: async () => undefined }, onCall)
  const writes = (): readonly string[] => {
    const names = [...new Set(written)].toSorted()
    written = []
    return names
  }
  return { bench: createContractBench({ store, clock }), writes }
}

/** A life in which every write takes place, told call by call. */
async function live({ bench, writes }: { readonly bench: ContractBench; readonly writes: Writes }) {
  const { store, clock, start, take, commit, park, deliver, message, steer, beat, rescue, hold } = bench
  const told: Record<string, readonly string[]> = {}
  const tell = async <Answer>(what: string, call: Promise<Answer>): Promise<Answer> => {
    const answer = await call
    told[what] = writes()
    return answer
  }
  writes()
  await tell('a session opens', beat('me'))
  const { id } = await tell('a start', start({ due: { at: null, afterMs: 5 } }))
  await clock.advance(5)
  const held = await tell('a claim of what has come due', take(id, 'me'))
  await tell('a checkpoint', commit(held))
  const first = message(id)
  await tell('a message to a run that is held', deliver(first))
  await tell('a message that comes again', deliver(first))
  await tell('parking that must look again', park(held))
  await tell('parking', park(held, { append: [], parkIf: { inbox: 1 }, takes: [first.id] }))
  await tell('a message that wakes', deliver(message(id)))
  await tell('a pause', steer(id, { kind: 'pause', reason: 'operator', note: null }))
  const other = await hold({ lease: { session: 'me', token: 1 }, leaseMs: 100 })
  writes()
  await tell('a beat', beat('me', { held: [{ runId: other.runId, token: 1, extendMs: 900 }] }))
  await tell('a lease that is given back', store.release([{ runId: other.runId, ...other.lease }]))
  await take(other.runId, 'me')
  await clock.advance(30_000)
  writes()
  await tell('a takeover', rescue())
  const last = await take(other.runId, 'you')
  writes()
  const end = { kind: 'succeeded', name: null, meta: null, data: '1' } as const
  await tell('an end', commit(last, { append: [end], status: 'succeeded' }))
  return told
}

describe('SQLite', () => {
  it('writes with every call what the statement plan writes, and nothing else', async () => {
    const sqlite = await live(await openTracedSqlite())
    const planned = await live(openPlanned())
    expect(sqlite).toEqual(planned)
    const all = new Set(Object.values(planned).flat())
    expect(all, 'every role takes place').toEqual(new Set(roles.map(([, role]) => role)))
  })
})
