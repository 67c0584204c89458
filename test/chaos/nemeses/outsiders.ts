// What others do who use the same database: they hold on to rows, to the right to write, or to what once was.

import { spawn } from 'node:child_process'
import type { Client } from 'pg'
import { exitOf } from '../crew.ts'
import type { Last, Nemesis, StrikeField } from '../field.ts'

/** Somebody has locked runs, as one who corrects something by hand and is called away. */
export const rowLock: Nemesis = {
  name: 'row-lock',
  stores: ['postgres'],
  strike: ({ server, leaseMs }, draw, last) =>
    server.connected(async (client) => {
      await client.query('begin')
      const { rowCount } = await client.query(
        'select id from runs where ended_at is null order by random() limit $1 for update',
        [draw.int(1, 5)],
      )
      await last(draw.between(0.5, 3) * leaseMs)
      await letGo(client)
      return (rowCount ?? 0) > 0
    }),
}

/** Somebody reads in a transaction that he forgets: nothing that has died since can be cleaned away. */
export const idleTransaction: Nemesis = {
  name: 'idle-transaction',
  stores: ['postgres'],
  strike: ({ server, leaseMs }, draw, last) =>
    server.connected(async (client) => {
      await client.query('begin isolation level repeatable read')
      await client.query('select count(*) from runs')
      await last(draw.between(3, 10) * leaseMs)
      return letGo(client)
    }),
}

/** False if the server took it away before. */
async function letGo(client: Client): Promise<boolean> {
  return client.query('rollback').then(
    () => true,
    () => false,
  )
}

/** Somebody else has begun to write, and nobody can until he is done. */
export const writeLock: Nemesis = {
  name: 'write-lock',
  stores: ['sqlite'],
  strike: (field, draw, last) => used(field, 'writes', draw.between(0.2, 1.5) * field.leaseMs, last),
}

/** Somebody reads for long: what is written meanwhile cannot go from the log to the file. */
export const longReader: Nemesis = {
  name: 'long-reader',
  stores: ['sqlite'],
  strike: (field, draw, last) => used(field, 'reads', draw.between(2, 8) * field.leaseMs, last),
}

/** False if it did not come to that. */
async function used(
  { programs, file }: StrikeField,
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
