// The files of a running Postgres, copied as `pg_basebackup` does it; the embedded binaries do not have that program. The copy
// is of no moment: with the write-ahead log from its beginning to its end it becomes the server as it was at that end.

import { chownSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { accountOf } from './server-folder.ts'

/** Files of the process, and not of its data. */
const ofTheProcess: ReadonlySet<string> = new Set(['postmaster.pid', 'postmaster.opts', 'standby.signal'])
/** Their content is of no use to another server. The log is streamed, or restored from an archive. */
const emptied: ReadonlySet<string> = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
])

/** Copies the files of the server at `url` into an empty folder, for the account that runs servers. */
export async function copyRunning(url: string, to: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ readonly data_directory: string }>('show data_directory')
    // One connection for both: a backup ends with the connection that began it.
    await client.query(`select pg_backup_start('copy', true)`)
    await copyFolder(rows[0]?.data_directory ?? '', to, true)
    const stopped = await client.query<{ readonly labelfile: string }>('select labelfile from pg_backup_stop(false)')
    writeFileSync(join(to, 'backup_label'), stopped.rows[0]?.labelfile ?? '', { mode: 0o600 })
    mkdirSync(join(to, 'pg_wal', 'archive_status'), { mode: 0o700 })
  } finally {
    await client.end()
  }
  give(to)
}

/** Gives a file, or a folder with everything in it, to the account that runs servers. */
export function give(path: string): void {
  const account = accountOf()
  if (!('uid' in account)) return
  chownSync(path, account.uid, account.gid)
  if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) give(join(path, name))
}

/** File by file, without blocking: the process that copies may have to relay the traffic of the server meanwhile. */
async function copyFolder(from: string, to: string, isTop: boolean): Promise<void> {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const { name } = entry
    if (isTop && ofTheProcess.has(name)) continue
    const [source, target] = [join(from, name), join(to, name)]
    if (entry.isDirectory()) {
      mkdirSync(target, { mode: 0o700 })
      if (!isTop || !emptied.has(name)) await copyFolder(source, target, false)
    } else if (entry.isFile()) {
      await copyUnlessGone(source, target)
    }
  }
}

/** A running server removes files of tables that were dropped. */
async function copyUnlessGone(from: string, to: string): Promise<void> {
  try {
    await copyFile(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
