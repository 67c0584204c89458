// What inputs of deciders cost with nothing of Holdfast around them: for each instance a row that is moved on, and for each input
// two entries, an `input` and an `event`. One transaction for as many inputs as go together.

import Database from 'libsql'
import { timed, withBareCommits } from './bare-commits.ts'
import { withClient } from './postgres.ts'
import { storeKindOf, withSqliteFile } from './stores.ts'

export interface BareInputs {
  /** Inputs of one instance, so many together. Answers how many ms all of them took. */
  hot(inputs: number, together: number): Promise<number>
  /** The same for inputs that begin an instance each. */
  begin(inputs: number, together: number): Promise<number>
  /** How long each of so many transactions of one row took, one after another, in µs. */
  commits(count: number): Promise<readonly number[]>
}

/** Null in memory, where no statement is needed. */
export async function withBareInputs<Result>(
  store: string,
  use: (bare: BareInputs | null) => Promise<Result>,
): Promise<Result> {
  const kind = storeKindOf(store)
  if (kind === 'memory') return use(null)
  if (kind === 'postgres') return onPostgres(store, use)
  return withSqliteFile('sqlite:', (path) => onSqlite(path, use))
}

const meta = '{"from":{"kind":"call"},"outcome":"accepted"}'

/** The entries of so many inputs. */
function entriesOf(
  inputs: number,
): readonly (readonly [kind: string, name: string, meta: string | null, data: string])[] {
  return Array.from({ length: inputs }, () => [
    ['input', 'Count', meta, '{"type":"Count","id":"hot"}'] as const,
    ['event', 'Counted', null, '{"type":"Counted"}'] as const,
  ]).flat()
}

async function inBatches(inputs: number, together: number, send: (from: number) => Promise<unknown>): Promise<number> {
  const began = performance.now()
  for (let from = 0; from < inputs; from += together) await send(from)
  return performance.now() - began
}

function onPostgres<Result>(url: string, use: (bare: BareInputs) => Promise<Result>): Promise<Result> {
  const [runs, journal] = [`bench_rows_${process.pid}`, `bench_entries_${process.pid}`]
  return withBareCommits(url, (commits) =>
    withClient(url, async (client) => {
      await client.query(`create table ${runs} (id integer primary key, seq integer, at timestamptz)`)
      await client.query(
        `create table ${journal} (id integer, seq integer, kind text, name text, meta text, data text, at timestamptz,
          primary key (id, seq))`,
      )
      await client.query(`insert into ${runs} values (-1, 0, now())`)
      const columns = (from: number, together: number): readonly unknown[] => {
        const entries = entriesOf(together)
        return [from, ...[0, 1, 2, 3].map((place) => entries.map((entry) => entry[place as 0 | 1 | 2 | 3]))]
      }
      const moving = {
        name: 'bench-move',
        text: `with moved as (
            update ${runs} set seq = seq + cardinality($2::text[]), at = now() where id = $1 returning id, seq)
          insert into ${journal}
          select id, seq - cardinality($2::text[]) + n, kind, name, meta, data, now()
          from moved, unnest($2::text[], $3::text[], $4::text[], $5::text[]) with ordinality as entry (kind, name, meta, data, n)`,
      }
      const beginning = {
        name: 'bench-begin',
        text: `with made as (
            insert into ${runs} select $1::integer + n, 2, now() from generate_series(1, cardinality($2::text[]) / 2) as n)
          insert into ${journal}
          select $1::integer + (n + 1) / 2, 1 + n % 2, kind, name, meta, data, now()
          from unnest($2::text[], $3::text[], $4::text[], $5::text[]) with ordinality as entry (kind, name, meta, data, n)`,
      }
      try {
        return await use({
          hot: (inputs, together) =>
            inBatches(inputs, together, () => client.query({ ...moving, values: [...columns(-1, together)] })),
          begin: (inputs, together) =>
            inBatches(inputs, together, (from) => client.query({ ...beginning, values: [...columns(from, together)] })),
          commits: (count) => commits(count),
        })
      } finally {
        await client.query(`drop table ${runs}, ${journal}`)
      }
    }),
  )
}

async function onSqlite<Result>(path: string, use: (bare: BareInputs) => Promise<Result>): Promise<Result> {
  const database = new Database(path)
  try {
    database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -32000')
    database.exec('create table runs (id integer primary key, seq integer, at integer)')
    database.exec(
      `create table journal (id integer, seq integer, kind text, name text, meta text, data text, at integer,
        primary key (id, seq))`,
    )
    database.exec('insert into runs values (-1, 0, 0)')
    const move = database.prepare('update runs set seq = ?, at = ? where id = -1 and seq = ?')
    const make = database.prepare('insert into runs values (?, 2, ?)')
    const append = database.prepare('insert into journal values (?, ?, ?, ?, ?, ?, ?)')
    const commit = (work: () => void): Promise<void> => {
      database.exec('begin immediate')
      work()
      database.exec('commit')
      return Promise.resolve()
    }
    let seq = 0
    return await use({
      hot: (inputs, together) =>
        inBatches(inputs, together, () =>
          commit(() => {
            const entries = entriesOf(together)
            move.run([seq + entries.length, Date.now(), seq])
            for (const entry of entries) append.run([-1, (seq += 1), ...entry, Date.now()])
          }),
        ),
      begin: (inputs, together) =>
        inBatches(inputs, together, (from) =>
          commit(() => {
            for (const [at, entry] of entriesOf(together).entries()) {
              const id = from + Math.floor(at / 2)
              if (at % 2 === 0) make.run([id, Date.now()])
              append.run([id, 1 + (at % 2), ...entry, Date.now()])
            }
          }),
        ),
      commits: (count) => timed(count, () => commit(() => append.run([-2, (seq += 1), 'row', null, null, null, 0]))),
    })
  } finally {
    database.close()
  }
}
