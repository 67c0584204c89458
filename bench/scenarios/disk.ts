// What this machine's disk costs, so that numbers of different machines can be compared: a transaction of one row, again
// and again, once waiting for the disk at every commit and once not. No part of Holdfast is in it.

import Database from 'libsql'
import { quantile } from '../numbers.ts'
import type { Reading, Scenario } from '../scenario.ts'
import { withSqliteFile } from '../stores.ts'

const commits = 1_000

export const disk: Scenario = {
  name: 'disk',
  about: 'a bare transaction of one row, with the wait for the disk and without',
  onlyOn: 'sqlite',
  cases: ({ store }) => [{ name: '', sample: () => withSqliteFile(store, measure) }],
}

async function measure(path: string): Promise<readonly Reading[]> {
  const database = new Database(path)
  try {
    database.exec('pragma journal_mode = wal')
    database.exec('create table if not exists bench_disk (id integer primary key, text text)')
    const synced = times(database, 'full')
    const unsynced = times(database, 'off')
    return [
      { metric: 'commit, synchronous=FULL, p50', unit: 'µs', value: quantile(synced, 0.5) },
      { metric: 'commit, synchronous=FULL, p99', unit: 'µs', value: quantile(synced, 0.99) },
      { metric: 'commit, synchronous=OFF, p50', unit: 'µs', value: quantile(unsynced, 0.5) },
    ]
  } finally {
    database.exec('drop table bench_disk')
    database.close()
  }
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
