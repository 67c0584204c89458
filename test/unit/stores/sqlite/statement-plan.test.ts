// SQLite does everything under one lock, so it needs neither the plan's locks nor its order. What it writes must be what the
// plan writes all the same: a store that writes something else does something else. The feed is left out where they differ
// by design: SQLite gives positions while it writes.

import Database from 'libsql'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { StoreAdmin, Store } from '../../../../src/store.ts'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { statementPlan, type PlannedMethod, type PlannedStatement } from '../../../read-committed/statement-plan.ts'
import { createVirtualClock } from '../../../../src/testing/index.ts'
import { createContractBench, type ContractBench } from '../../../../src/testing/contract/index.ts'
import { createPlannedStore } from '../../../support/planned-store.ts'
import { temporaryPaths } from './folder.ts'

const nextPath = temporaryPaths()

type Roles = Readonly<Record<string, string>>

/** What a statement of SQLite is for: the beginning of its text, and the name of its like in the plan, by method. */
const roles: readonly (readonly [RegExp, string | Roles])[] = [
  [/^insert into runs\b/, { start: 'insert', commit: 'start' }],
  [/^insert into journal\b/, 'append'],
  [/^insert into feed\b/, 'feed'],
  [/^insert into messages\b/, { start: 'messages', deliver: 'insert', other: 'put' }],
  [/^insert into sessions\b/, 'session'],
  [/^update sessions set ended_at\b/, 'sessions'],
  [/^update messages set taken_by = \?/, 'take'],
  [/^update messages (?:indexed by messages_unread )?set taken_by = \(select seq/, 'settle'],
  [/^update messages indexed by messages_id set fate\b/, 'settle'],
  [/^(?:insert into|delete from) waits\b/, 'waits'],
  [/^(?:insert into|update|delete from) (?:broadcasts|topics)\b/, 'broadcasts'],
  [/^update runs set seq\b/, 'update'],
  [/^update runs set (?:type|watched)\b/, 'write'],
  // Elsewhere the counter is written with the rest of the row.
  [/^update runs set inbox\b/, { start: 'messages', deliver: 'bump', other: 'write' }],
  [/^update runs set readiness = 'ready' where rowid\b/, 'promote'],
  [/^update runs set status = \?, readiness\b/, 'lease'],
  [/^update runs set deadline\b/, 'extend'],
]

/** The name of a statement that writes; null for one that reads. */
function roleOf(sql: string, method: string): string | null {
  const text = sql.trim().replaceAll(/\s+/g, ' ')
  if (!/^(?:insert|update|delete|replace)\b/.test(text)) return null
  // Elsewhere that is done by the statement that locks topics.
  if (/^insert into topics .* do nothing$/.test(text)) return null
  const role = roles.find(([form]) => form.test(text))?.[1] ?? `unknown: ${text}`
  return typeof role === 'string' ? role : (role[method] ?? role['other'] ?? `unknown in ${method}: ${text}`)
}

/** What was written since one last asked. */
type Writes = () => readonly string[]

async function openTracedSqlite(): Promise<Traced> {
  const database = new Database(nextPath())
  onTestFinished(() => void database.close())
  let written: string[] = []
  let method = ''
  const handle = {
    prepare(sql: string) {
      const statement = database.prepare(sql)
      const noted =
        <Answer>(ask: (values: unknown) => Answer) =>
        (values: unknown): Answer => {
          const role = roleOf(sql, method)
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
  const opened = await openSqliteStore({ handle, clock })
  await opened.migrate()
  // Everything that a call does, it does at once.
  const store = new Proxy(opened, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...given: unknown[]): unknown => {
        method = String(name)
        return Reflect.apply(member, target, given)
      }
    },
  })
  const writes = (): readonly string[] => {
    const names = [...new Set(written)].toSorted()
    written = []
    return names
  }
  return { bench: createContractBench({ store, clock }), writes }
}

function openPlanned(): Traced {
  const kinds = new Map<string, PlannedStatement['kind']>()
  for (const plan of Object.values(statementPlan)) for (const { name, kind } of plan) kinds.set(name, kind)
  let written: string[] = []
  const onCall = (_: PlannedMethod, executed: readonly string[]): void => {
    const names = executed.filter((name) => kinds.get(name) === 'write')
    written.push(...names.map((name) => name.slice(name.indexOf('.') + 1)))
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

interface Traced {
  readonly bench: ContractBench
  readonly writes: Writes
}

/** What each call has written, under the name that the story gives it. */
class Tale {
  readonly recorded: Record<string, readonly string[]> = {}
  private readonly writes: Writes

  constructor(writes: Writes) {
    this.writes = writes
  }

  async record<Answer>(what: string, call: () => Promise<Answer>): Promise<Answer> {
    // What was written before is no part of it.
    this.writes()
    const answer = await call()
    this.recorded[what] = this.writes()
    return answer
  }
}

const end = {
  append: [{ kind: 'succeeded', name: null, meta: null, data: '1' }],
  status: 'succeeded',
} as const

/** A life of one that nobody else knows of, recorded call by call. */
async function liveAlone({ bench, writes }: Traced): Promise<Tale['recorded']> {
  const { store, clock, start, take, commit, park, deliver, message, control, beat, rescue, hold } = bench
  const tale = new Tale(writes)
  await tale.record('a session opens', () => beat('me'))
  const { id } = await tale.record('a start', () => start({ due: { at: null, afterMs: 5 } }))
  await clock.advance(5)
  const held = await tale.record('a claim of what has come due', () => take(id, 'me'))
  await tale.record('a checkpoint', () => commit(held))
  const first = message(id)
  await tale.record('a message to a run that is held', () => deliver(first))
  await tale.record('a message that comes again', () => deliver(first))
  await tale.record('parking that must look again', () => park(held))
  await tale.record('parking', () => park(held, { append: [], parkIf: { inbox: 1 }, takes: [first.id] }))
  await tale.record('a message that wakes', () => deliver(message(id)))
  await tale.record('a pause', () => control(id, { kind: 'pause', reason: 'operator', note: null }))
  const other = await hold({ lease: { session: 'me', token: 1 }, leaseMs: 100 })
  await tale.record('a beat', () => beat('me', { held: [{ runId: other.runId, token: 1, extendMs: 900 }] }))
  await tale.record('a lease that is given back', () => store.release([{ runId: other.runId, ...other.lease }]))
  await take(other.runId, 'me')
  await clock.advance(30_000)
  await tale.record('a takeover', () => rescue())
  const last = await take(other.runId, 'you')
  await tale.record('an end', () => commit(last, end))
  return tale.recorded
}

const nobody = { starts: [], watches: [], unwatches: [] } as const
const news = { name: 'news', delivery: 'all', retainMs: 0 } as const
const jobs = { name: 'jobs', delivery: 'one', retainMs: 0 } as const
const dead = { onUnread: 'dead-letter' } as const
const onward = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 } as const

/** A life among others. */
async function liveAmongOthers({ bench, writes }: Traced): Promise<Tale['recorded']> {
  const { store, newRun, hold, commit, park, deliver, message, broadcast, child, control, clock, beat, rescue } = bench
  const tale = new Tale(writes)
  const messageArrived = newRun()
  await tale.record('a start with messages', () =>
    store.start([{ ...messageArrived, messages: [message(messageArrived.id)] }]),
  )
  const parent = await hold()
  // SQLite looks before it inserts, so a refusal alone would be recorded otherwise.
  const starts = [child(parent.runId), child(parent.runId, { id: messageArrived.id })]
  await tale.record('a child that is started, and one that is refused', () =>
    commit(parent, { outbound: { ...nobody, starts } }),
  )
  const topic = { kind: 'topic', ...news } as const
  await tale.record('a wait on a topic', () =>
    park(parent, { parkIf: { inbox: 1 }, outbound: { ...nobody, watches: [topic] } }),
  )
  await tale.record('a broadcast', () => deliver(broadcast({ topic: news })))
  await tale.record('a broadcast that nobody waits for', () => deliver(broadcast({ topic: jobs })))
  const worker = await hold()
  const queue = { kind: 'topic', ...jobs } as const
  await tale.record('a wait that finds something', () => park(worker, { outbound: { ...nobody, watches: [queue] } }))
  const watched = { kind: 'run', runId: parent.runId } as const
  await tale.record('a wait for a run', () => commit(worker, { outbound: { ...nobody, watches: [watched] } }))
  const leaver = await hold()
  await commit(leaver, { outbound: { ...nobody, watches: [watched] } })
  // SQLite does so only for one that knows its mailbox.
  await tale.record('a wait for a run that is given up', () =>
    park(leaver, { outbound: { ...nobody, unwatches: [watched] } }),
  )
  await deliver(message(parent.runId, { policy: dead }))
  await tale.record('an end that is notified', () =>
    control(parent.runId, { kind: 'cancel', mode: 'now', reason: null }),
  )
  const after = message(parent.runId, { name: 'jobs', policy: onward })
  await tale.record('a message that comes too late and goes on', () => deliver(after))
  const [letter] = await store.deadLetters({}, { limit: 1 })
  if (letter !== undefined) await tale.record('a dead letter', () => store.settleDeadLetter(letter, 'discarded'))
  await tale.record('an end with unread messages', () => commit(worker, end))
  await beat('gone')
  const late = await hold({ timeoutMs: 30_000 })
  await park(late)
  await deliver(message(late.runId))
  await clock.advance(30_000)
  await tale.record('an end by time with unread messages, and a session that is gone', () => rescue())
  return tale.recorded
}

describe('SQLite', () => {
  it('writes with every call what the statement plan writes, and nothing else', async () => {
    const seen = new Set<string>()
    for (const live of [liveAlone, liveAmongOthers]) {
      const planned = await live(openPlanned())
      expect(await live(await openTracedSqlite())).toEqual(planned)
      for (const role of Object.values(planned).flat()) seen.add(role)
    }
    const all = roles.flatMap(([, role]) => (typeof role === 'string' ? [role] : Object.values(role)))
    expect(seen, 'every role takes place').toEqual(new Set(all))
  })
})
