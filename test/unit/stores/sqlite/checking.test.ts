// The state invariants as SQL. Each is broken in a file by hand, and both must see it: the statement, and the predicate on
// what is read from the file.

import Database from 'libsql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSqliteStore } from 'holdfast/sqlite'
import { checkQuery, checkTables, checks, tableInvariants } from '../../../../src/stores/sqlite/checking.ts'
import { Connection } from '../../../../src/stores/sqlite/connection.ts'
import { overLibsql } from '../../../../src/stores/sqlite/libsql.ts'
import { checkAll, checkFeed, stateInvariants } from '../../../../src/testing/invariants/index.ts'
import { makeCorpus, type Corpus } from '../../../support/corpus.ts'
import { statesOf } from '../../../support/watched-store.ts'

const database = new Database(':memory:')
const connection = new Connection(overLibsql(database))
let corpus: Corpus

beforeAll(async () => {
  corpus = await makeCorpus(async (clock) => {
    const store = await openSqliteStore({ handle: database, clock })
    await store.migrate()
    return store
  })
}, 60_000)
afterAll(async () => {
  await corpus.close()
  database.close()
})

/** A name, the run that is to break it, and the statement that does; `?` is the id of the run. */
type Plant = readonly [name: string, special: keyof Corpus['ids'], ...statements: string[]]

const setRun = (change: string): string => `update runs set ${change} where id = ?`
const setEntry = (change: string, which: string): string => `update journal set ${change} where run_id = ? and ${which}`
/** Appends an entry. */
const append = (kind: string, name: string | null, meta = 'null', data = 'null'): readonly string[] => [
  `insert into journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
   select 0, id, seq + 1, '${kind}', ${name === null ? 'null' : `'${name}'`}, ${meta}, ${data}, updated_at, null
   from runs where id = ?`,
  setRun('seq = seq + 1'),
]
const withUndo = `'{"attempt":1,"ms":1,"undo":true}'`
const done = `'{"attempt":1,"ms":1}'`

const plants: readonly Plant[] = [
  ['history_gapless', 'succeeded', 'delete from journal where run_id = ? and seq = 2'],
  ['seq_counts_entries', 'succeeded', setRun('seq = seq + 1')],
  ['history_single_writer', 'failed', setEntry(`transition_id = 'same'`, 'seq < 3')],
  ['history_begins_with_start', 'ready', setEntry('transition_id = null', 'seq = 1')],
  ['history_begins_with_start', 'waiting', ...append('started', null)],
  ['base_is_input', 'succeeded', setRun('base = 2')],
  ['base_is_input', 'continued', setRun('version = 2')],
  ['base_is_input', 'continued', setRun('base = 1')],
  ['state_is_fold', 'waiting', ...append('succeeded', null)],
  ['state_is_fold', 'paused', ...append('resumed', null)],
  ['status_fields_match', 'running', setRun('session = null')],
  ['status_fields_match', 'running', setRun(`readiness = 'ready', due = 1`)],
  ['status_fields_match', 'running', setRun('token = 0')],
  ['status_fields_match', 'running', setRun('expires_at = 1')],
  ['status_fields_match', 'running', setRun(`wish = '{"kind":"cancel","reason":null,"at":1}'`)],
  ['status_fields_match', 'ready', setRun(`wish = '{"kind":"pause","reason":"operator","note":null,"at":1}'`)],
  ['status_fields_match', 'ready', setRun('deadline = 5')],
  ['status_fields_match', 'ready', setRun(`readiness = 'idle', due = null`)],
  ['status_fields_match', 'ready', setRun('due = null')],
  ['status_fields_match', 'ready', setRun('deleted_at = 1')],
  ['status_fields_match', 'ready', setRun(`delete_reason = 'x'`)],
  ['status_fields_match', 'timed', setRun(`ended_at = 5`)],
  ['status_fields_match', 'paused', setRun(`readiness = 'ready', due = 1`)],
  ['status_fields_match', 'succeeded', setRun('ended_at = null')],
  ['status_fields_match', 'succeeded', setRun(`session = 'alive', readiness = 'leased'`)],
  ['status_fields_match', 'cancelling', setRun('timeout_at = 5')],
  ['status_fields_match', 'cancelling', setRun(`undo = 'none'`)],
  ['status_fields_match', 'succeeded', setRun(`undo = 'due'`)],
  ['ready_is_due', 'ready', setRun('due = 9000000000000')],
  ['ids_nonempty_bounded', 'keyed', setRun(`idempotency_key = ''`)],
  ['ids_nonempty_bounded', 'keyed', setRun(`key = '${'k'.repeat(401)}'`)],
  ['ids_nonempty_bounded', 'succeeded', setEntry(`name = ''`, 'seq = 2')],
  ['ids_nonempty_bounded', 'running', `update messages set id = '' where run_id = ?`],
  ['one_outcome', 'waiting', ...append('step-failed', 'work', done, `'1'`)],
  ['amends_outcome', 'waiting', ...append('amended', null, `'{"seq":1,"dropped":true}'`)],
  ['cancel_wins_or_loses_once', 'failed', ...append('cancelled', null), setRun(`status = 'cancelled'`)],
  ['cancel_wins_or_loses_once', 'retried', setEntry(`kind = 'cancelled'`, `kind = 'failed'`)],
  ['undo_is_fold', 'waiting', setRun(`undo = 'possible'`)],
  ['undo_is_fold', 'waiting', setEntry(`meta = ${withUndo}`, `kind = 'step-succeeded'`)],
  ['undo_names_step', 'waiting', ...append('undone', 'work', done)],
  ['undo_names_step', 'undone', setEntry(`name = 'unknown'`, `kind = 'undone' and name = 'book'`)],
  ['undo_once', 'cancelling', ...append('undone', 'book', done), ...append('undo-failed', 'book', done)],
  ['undo_in_reverse', 'cancelling', ...append('undone', 'book', done), ...append('undone', 'charge', done)],
  ['mailbox_dense', 'running', setRun('inbox = 2')],
  ['mailbox_dense', 'running', 'update messages set position = 3 where run_id = ?'],
  ['mailbox_dense', 'running', 'delete from messages where run_id = ?'],
  ['signal_consumed_at_most_once', 'running', 'update messages set taken_by = 99 where run_id = ?'],
  [
    'signal_consumed_at_most_once',
    'running',
    'drop index messages_id',
    `insert into messages (shard, run_id, position, id, name, data, at, outcome)
     select 0, run_id, 2, id, name, data, at, outcome from messages where run_id = ?`,
    setRun('inbox = 2'),
  ],
  ['no_lost_wakeup', 'woken', setRun(`readiness = 'idle', due = null`)],
  ['no_lost_wakeup', 'woken', setRun(`readiness = 'timed', due = 9000000000000`)],
  ['waits_for_something', 'listening', ...append('woken', 'go', `'{"winner":"go","trueAt":1,"seenAt":1}'`)],
  ['timer_is_set', 'waiting', setRun(`readiness = 'idle', due = null`)],
  ['timer_is_set', 'waiting', setRun('due = due + 90000000')],
  ['timer_once', 'waiting', ...append('woken', 'sleep', `'{"winner":"time","trueAt":1,"seenAt":1}'`)],
  ['timer_never_early', 'waiting', setEntry(`at = at - 1`, `kind = 'woken'`)],
  ['timer_never_early', 'waiting', setEntry(`meta = replace(meta, '"trueAt":', '"trueAt":-')`, `kind = 'woken'`)],
  ['timer_never_early', 'waiting', setEntry(`meta = replace(meta, '"seenAt":', '"seenAt":-')`, `kind = 'woken'`)],
  ['timer_never_early', 'waiting', setEntry(`meta = replace(meta, '"winner":"', '"winner":"x')`, `kind = 'woken'`)],
  ['timer_never_early', 'waiting', setEntry(`name = 'other'`, `kind = 'waiting' and seq = 2`)],
  [
    'one_key_one_live_run',
    'ready',
    'drop index runs_unique',
    setRun(`key = 'order-1', unique_key = 'workflow idle order-1'`),
  ],
  ['idempotency_key', 'ready', 'drop index runs_idempotency', setRun(`idempotency_key = 'once', started_as = 'idle'`)],
  ['feed_dense', 'ready', 'delete from feed where position = (select min(position) from feed)'],
  ['feed_complete', 'ready', `update feed set entries = replace(entries, ?, 'somebody else')`],
  ['nothing_without_run', 'running', 'delete from runs where id = ?'],
  ['key_text_derived', 'keyed', setRun(`unique_key = 'workflow idle other'`)],
  ['tags_listed', 'ready', `delete from tags where tag = 'a' and run_id = ?`],
  ['tags_listed', 'ready', `insert into tags (shard, tag, run_id) values (0, 'c', ?)`],
]

interface Step {
  readonly id: number
  readonly parent: number
  readonly detail: string
}

/** Tables that are walked from end to end inside a loop: second in a join, or in a subquery that is asked for each row. */
function walkedAnew(plan: readonly Step[]): readonly string[] {
  const isCorrelated = ({ parent }: Step): boolean => {
    const above = plan.find(({ id }) => id === parent)
    if (above === undefined || above.detail.startsWith('MATERIALIZE')) return false
    return /CORRELATED/.test(above.detail) || isCorrelated(above)
  }
  // Every key begins with the shard, and there is one: a search by that alone walks the table.
  const isWalk = ({ detail }: Step): boolean =>
    /\(shard=\?\)/.test(detail) || (detail.startsWith('SCAN ') && !/ VIRTUAL TABLE|^SCAN (d|dropped)$/.test(detail))
  return plan.flatMap((step, index) => {
    const isJoined = ({ parent, detail }: Step): boolean => parent === step.parent && /^(SCAN|SEARCH)/.test(detail)
    const isInner = plan.slice(0, index).some(isJoined)
    return isWalk(step) && (isInner || isCorrelated(step)) ? [step.detail] : []
  })
}

type Offenders = Readonly<Record<string, readonly string[]>>

/** What is broken, and by whom, as the tables say and as the predicates say. */
async function bothWays(): Promise<{ readonly tables: Offenders; readonly predicates: Offenders }> {
  const now = corpus.clock.now()
  const tables: Record<string, readonly string[]> = {}
  for (const { name, offenders } of checkTables(connection, now)) if (offenders.length > 0) tables[name] = offenders
  const takenSql = 'select id, position, taken_by as takenBy from messages where run_id = ? and taken_by is not null'
  const taken = (id: string) =>
    database.prepare(takenSql).all([id]) as { id: string; position: number; takenBy: number }[]
  const states = (await statesOf(corpus.store)).map((state) => ({ ...state, taken: taken(state.run.id) }))
  const feed = await corpus.store.changes(0, 100_000)
  const predicates: Record<string, readonly string[]> = {}
  for (const { name, runId } of [...checkAll(states, now), ...checkFeed(feed, states)]) {
    predicates[name] = [...new Set([...(predicates[name] ?? []), runId ?? ''])].toSorted()
  }
  return { tables, predicates }
}

/** Breaks something, looks, and takes it back. */
async function planted([, special, ...statements]: Plant): ReturnType<typeof bothWays> {
  database.exec('begin')
  try {
    for (const sql of statements) {
      database.prepare(sql).run(sql.includes('?') ? [corpus.ids[special]] : [])
    }
    return await bothWays()
  } finally {
    database.exec('rollback')
  }
}

const ofTables = new Set<string>(tableInvariants.map(({ name }) => name))
const ofFeed = new Set(['feed_dense', 'feed_complete'])

describe('the SQL of an invariant', () => {
  it('is there for each, and for nothing else', () => {
    const names = [...stateInvariants, ...tableInvariants].map(({ name }) => name)
    expect(Object.keys(checks).toSorted()).toEqual(names.toSorted())
    expect([...new Set(plants.map(([name]) => name))].toSorted()).toEqual(names.toSorted())
  })

  it('finds nothing in a healthy file', async () => {
    expect(await bothWays()).toEqual({ tables: {}, predicates: {} })
  })

  it.each(plants.map((plant) => [plant[0], plant[1], plant] as const))(
    'finds that %s is broken by the run that is %s',
    async (name, special, plant) => {
      const { tables, predicates } = await planted(plant)
      expect(Object.keys(tables)).toContain(name)
      if (!ofFeed.has(name)) expect(tables[name]).toContain(corpus.ids[special])
      if (name === 'nothing_without_run') return
      const comparable = (found: Offenders): Offenders =>
        Object.fromEntries(Object.entries(found).filter(([one]) => !ofTables.has(one) && !ofFeed.has(one)))
      expect(comparable(tables)).toEqual(comparable(predicates))
      if (!ofTables.has(name)) expect(Object.keys(predicates)).toContain(name)
    },
  )

  it.each(Object.entries(checks))('%s walks no table anew for each row of another', (_, sql) => {
    const statement = `explain query plan ${checkQuery(sql.replaceAll(':now', '1'))}`
    const plan = database.prepare(statement).all([]) as unknown as Step[]
    expect(walkedAnew(plan)).toEqual([])
  })
})
