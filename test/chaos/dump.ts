// What is needed to understand a chaos run that failed, written into a folder before everything is taken down: the runs that
// it is about, what the server was doing, what every process said last, and what was done to them when.

import { copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { openClient } from './client.ts'
import type { Violation } from './evidence.ts'
import type { Testbed } from './testbed.ts'
import type { HistoryEvent } from './history.ts'

export interface DumpOptions {
  readonly testbed: Testbed
  readonly violations: readonly Violation[]
  readonly history: { readonly path: string; readonly events: readonly HistoryEvent[] }
  /** What repeats the run. */
  readonly command: string
}

const mostRuns = 20
const serverLogLength = 200_000

/** Gives the path of the folder. What cannot be had is left out: a dump must not hide what went wrong. */
export async function dump({ testbed, violations, history, command }: DumpOptions): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-failed-'))
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
  const lines = (list: readonly unknown[]): string => list.map((one) => `${JSON.stringify(one)}\n`).join('')
  const runs = [...new Set(violations.flatMap(({ runs }) => runs))].slice(0, mostRuns)
  write('violations', violations.map(({ name, text }) => `${name}: ${text}\n`).join(''))
  write('command', `${command}\n`)
  copyFileSync(history.path, join(folder, 'history.ndjson'))
  write(
    'timeline',
    history.events
      .filter(({ proc }) => !isClient(proc))
      .map(eventLine)
      .join(''),
  )
  write('effects.ndjson', lines(testbed.effects().filter(({ run }) => runs.includes(run))))
  write('calls.ndjson', lines(testbed.calls()))
  write('gone-at.ndjson', lines([...testbed.goneAt]))
  write('server.log', testbed.serverLog().slice(-serverLogLength))
  mkdirSync(join(folder, 'workers'))
  for (const { id, tail } of testbed.workers) write(join('workers', id), `${tail.join('\n')}\n`)
  write('runs.ndjson', lines(await settled(runsOf(testbed.url, runs))))
  if (!testbed.url.startsWith('sqlite:')) {
    write('activity.ndjson', lines(await settled(rowsOf(testbed.url, 'select * from pg_stat_activity'))))
    write('locks.ndjson', lines(await settled(rowsOf(testbed.url, 'select * from pg_locks'))))
  }
  return folder
}

function isClient(proc: string): boolean {
  return proc.startsWith('client-') || proc === 'sweeper'
}

function eventLine({ at, proc, f, args }: HistoryEvent): string {
  return `${new Date(at).toISOString()} ${proc} ${f} ${JSON.stringify(args)}\n`
}

async function settled(asked: Promise<readonly unknown[]>): Promise<readonly unknown[]> {
  return asked.catch((error: unknown) => [{ failed: String(error) }])
}

async function runsOf(url: string, ids: readonly string[]): Promise<readonly unknown[]> {
  const holdfast = await openClient(url)
  try {
    return await Promise.all(
      ids.map(async (id) => {
        const run = await holdfast.get(id).catch((error: unknown) => String(error))
        return { id, run, journal: await holdfast.journal(id).catch(() => []) }
      }),
    )
  } finally {
    await holdfast.close()
  }
}

async function rowsOf(url: string, sql: string): Promise<readonly unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}
