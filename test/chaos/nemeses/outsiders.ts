// What others do who use the same database: they hold on to rows, to the right to write, or to what once was.

import { spawn } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import type { Client } from 'pg'
import { exitOf } from '../worker-processes.ts'
import type { Last, Nemesis, OpenTestbed } from '../testbed.ts'

/** An open transaction has locked runs, like an operator who corrects something by hand and is called away. */
export const rowLock: Nemesis = {
  name: 'row-lock',
  stores: ['postgres'],
  strike: (testbed, draw, last) =>
    testbed.server.connected((client) => {
      const some = 'select id from runs where ended_at is null order by random() limit $1 for update'
      return held(testbed, client, {
        sql: some,
        count: draw.int(1, 5),
        ms: draw.between(0.5, 3) * testbed.leaseMs,
        last,
      })
    }),
}

/**
 * A transaction has locked those runs that would be claimed next. They are soon gone, so it looks until it finds some: then a worker that
 * claims finds them at the head of the queue for as long as he holds them.
 */
export const headLock: Nemesis = {
  name: 'head-lock',
  stores: ['postgres'],
  strike: (testbed, draw, last) =>
    testbed.server.connected((client) => {
      const first = `select id from runs where readiness = 'ready' order by rank, due, id limit $1
        for update skip locked`
      return held(testbed, client, {
        sql: first,
        count: draw.int(1, 3),
        ms: draw.between(1, 3) * testbed.leaseMs,
        last,
      })
    }),
}

interface Holding {
  readonly sql: string
  readonly count: number
  readonly ms: number
  readonly last: Last
}

/** Holds the rows that a statement finds, and says which. False if it found none for a whole lease. */
async function held(
  { report, leaseMs }: OpenTestbed,
  client: Client,
  { sql, count, ms, last }: Holding,
): Promise<boolean> {
  const until = Date.now() + leaseMs
  const thrownOut = endOf(client)
  for (;;) {
    await client.query('begin')
    const { rows } = await client.query<{ readonly id: string }>(sql, [count])
    const runs = rows.map(({ id }) => id)
    if (runs.length > 0) {
      report({ kind: 'nemesis', text: `${runs.length} rows are locked`, details: { holds: runs } })
      await Promise.race([last(ms), thrownOut])
      const isFreed = await letGo(client)
      report({ kind: 'nemesis', text: `${runs.length} rows are let go`, details: { frees: runs } })
      // If the server has taken them from him, they were free before.
      return isFreed
    }
    await client.query('rollback')
    if (Date.now() > until) return false
    await setTimeout(1)
  }
}

/** A client reads in a transaction that it forgets: nothing that has died since can be cleaned away. */
export const idleTransaction: Nemesis = {
  name: 'idle-transaction',
  stores: ['postgres'],
  strike: ({ server, leaseMs }, draw, last) =>
    server.connected(async (client) => {
      await look(client)
      await last(draw.between(3, 10) * leaseMs)
      return letGo(client)
    }),
}

/** The same, but he stays as long as the storm does; if the server throws him out, he comes back and looks again. */
export const snapshotHeld: Nemesis = {
  name: 'snapshot-held',
  stores: ['postgres'],
  isLasting: true,
  strike: ({ server }, _draw, last) =>
    server.connected(async (client) => {
      const thrownOut = endOf(client)
      await look(client)
      await Promise.race([last(longestMs), thrownOut])
      await letGo(client)
      return true
    }),
}

/** The longest that a timer can take: 24 days. */
const longestMs = 2 ** 31 - 1

/** Settles when the server has thrown him out, or is gone. */
function endOf(client: Client): Promise<void> {
  return new Promise((resolve) => client.once('end', () => resolve()))
}

async function look(client: Client): Promise<void> {
  await client.query('begin isolation level repeatable read')
  await client.query('select count(*) from runs')
}

/** False if the server took it away before. */
async function letGo(client: Client): Promise<boolean> {
  return client.query('rollback').then(
    () => true,
    () => false,
  )
}

/** Another program has begun to write, and nobody can until it is done. */
export const writeLock: Nemesis = {
  name: 'write-lock',
  stores: ['sqlite'],
  strike: (testbed, draw, last) => used(testbed, 'writes', draw.between(0.2, 1.5) * testbed.leaseMs, last),
}

/** A client reads for long: what is written meanwhile cannot go from the log to the file. */
export const longReader: Nemesis = {
  name: 'long-reader',
  stores: ['sqlite'],
  strike: (testbed, draw, last) => used(testbed, 'reads', draw.between(2, 8) * testbed.leaseMs, last),
}

/** False if it did not come to that. */
async function used(
  { programs, file }: OpenTestbed,
  what: 'writes' | 'reads',
  ms: number,
  last: Last,
): Promise<boolean> {
  const outsider = spawn(process.execPath, [programs('outsider-child'), file, what, String(ms)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = exitOf(outsider)
  const begun = new Promise<boolean>((resolve) => outsider.once('message', () => resolve(true)))
  const hasBegun = await Promise.race([begun, exited.then(() => false)])
  if (hasBegun) await Promise.race([last(ms), exited])
  outsider.kill('SIGKILL')
  await exited
  return hasBegun
}
