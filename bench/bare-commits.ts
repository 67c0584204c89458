// Transactions of one row on a bare connection to Postgres, one after another: what every commit costs at the least, here.

import type { Client } from 'pg'
import { withClient } from './postgres.ts'

/** Makes so many commits, and answers how long each took, in µs. */
export type BareCommits = (count: number, options?: CommitOptions) => Promise<readonly number[]>

export interface CommitOptions {
  /** Waits for the disk. @default true */
  readonly synchronous?: boolean
}

export async function withBareCommits<Result>(
  url: string,
  use: (commits: BareCommits, client: Client) => Promise<Result>,
): Promise<Result> {
  return withClient(url, async (client) => {
    const table = `bench_commits_${process.pid}`
    await client.query(`create table ${table} (id integer generated always as identity primary key, text text)`)
    try {
      return await use(async (count, { synchronous = true } = {}) => {
        await client.query(`set synchronous_commit = ${synchronous ? 'on' : 'off'}`)
        const insert = { name: 'bench-commit', text: `insert into ${table} (text) values ($1)` }
        return timed(count, (index) => client.query({ ...insert, values: [`row ${index}`] }))
      }, client)
    } finally {
      await client.query(`drop table ${table}`)
    }
  })
}

/** How long each of so many calls took, one after another, in µs. */
export async function timed(count: number, call: (index: number) => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = []
  for (let index = 0; index < count; index += 1) {
    const began = performance.now()
    await call(index)
    times.push((performance.now() - began) * 1_000)
  }
  return times
}
