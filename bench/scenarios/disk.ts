// What this machine's disk costs, so that numbers of different machines can be compared: a transaction of one row, again
// and again, once waiting for the disk at every commit and once not. No part of Holdfast is in it.

import Database from 'libsql'
import { timed, withBareCommits } from '../bare-commits.ts'
import { quantile } from '../numbers.ts'
import type { Reading, Scenario } from '../scenario.ts'
import { storeKindOf, withSqliteFile } from '../stores.ts'

const commits = 1_000

export const disk: Scenario = {
  name: 'disk',
  about: 'a bare transaction of one row, with the wait for the disk and without',
  onlyOn: ['sqlite', 'postgres'],
  cases: ({ store }) => [
    {
      name: '',
      sample: () => (storeKindOf(store) === 'postgres' ? measurePostgres(store) : withSqliteFile(store, measureSqlite)),
    },
  ],
}

async function measureSqlite(path: string): Promise<readonly Reading[]> {
  const database = new Database(path)
  try {
    database.exec('pragma journal_mode = wal')
    database.exec('create table if not exists bench_disk (id integer primary key, text text)')
    const synced = times(database, 'full')
    const unsynced = times(database, 'off')
    return readings(['synchronous=FULL', 'synchronous=OFF'], synced, unsynced)
  } finally {
    database.exec('drop table bench_disk')
    database.close()
  }
}

function measurePostgres(url: string): Promise<readonly Reading[]> {
  return withBareCommits(url, async (commit, client) => {
    const synced = await commit(commits)
    const unsynced = await commit(commits, { synchronous: false })
    const trips = await timed(commits, () => client.query({ name: 'bench-trip', text: 'select 1' }))
    return [
      ...readings(['synchronous_commit=on', 'synchronous_commit=off'], synced, unsynced),
      { metric: 'round trip, p50', unit: 'µs', value: quantile(trips, 0.5) },
    ]
  })
}

function readings(
  [on, off]: readonly [string, string],
  synced: readonly number[],
  unsynced: readonly number[],
): readonly Reading[] {
  return [
    { metric: `commit, ${on}, p50`, unit: 'µs', value: quantile(synced, 0.5) },
    { metric: `commit, ${on}, p99`, unit: 'µs', value: quantile(synced, 0.99) },
    { metric: `commit, ${off}, p50`, unit: 'µs', value: quantile(unsynced, 0.5) },
  ]
}

/** How long each of many commits took, in µs. */
function times(database: Database.Database, synchronous: 'full' | 'off'): readonly number[] {
  database.exec(`pragma synchronous = ${synchronous}`)
  const insert = database.prepare('insert into bench_disk (text) values (?)')
  return Array.from({ length: commits }, (_, count) => {
    const began = performance.now()
    insert.run([`row ${count}`])
    return (performance.now() - began) * 1_000
  })
}
