// Starts PgBouncer in front of a Postgres, in transaction mode: between two transactions a client may be given another
// server connection, so whatever it set, prepared or listened to in the session is gone or another client's. Where
// PgBouncer is not installed, `missingPgbouncer` says so, for the tests that are skipped.

import { spawn } from 'node:child_process'
import { accessSync, chownSync, closeSync, constants, openSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from './free-port.ts'
import { accountOf, makeServerFolder, pidFile, readOrNothing, removeServerFolder } from './server-folder.ts'

export interface Pooler {
  /** As the server's, but through the pool. */
  readonly url: string
  /** Everything that it has logged. */
  readonly log: () => string
  /** Ends it at once, and removes its files. */
  stop(): Promise<void>
}

/** Why there is no PgBouncer, in words for a test that is skipped; undefined if there is. */
export function missingPgbouncer(): string | undefined {
  return findPgbouncer() === null
    ? 'this machine has no PgBouncer; on Debian `apt-get install pgbouncer` brings it'
    : undefined
}

/** `settings` are PgBouncer's own, and win over those here. */
export async function startPgbouncer(
  url: string,
  settings: Readonly<Record<string, string | number>> = {},
): Promise<Pooler> {
  const program = findPgbouncer()
  if (program === null) throw new Error(`Cannot start PgBouncer: ${missingPgbouncer()}.`)
  const server = new URL(url)
  const port = await freePort()
  const account = accountOf()
  const folder = makeServerFolder('pgbouncer', account)
  const leave = (): void => removeServerFolder(folder)
  process.once('exit', leave)

  const write = (name: string, text: string): string => {
    const file = join(folder, name)
    writeFileSync(file, text, { mode: 0o600 })
    if ('uid' in account) chownSync(file, account.uid, account.gid)
    return file
  }
  const quoted = (text: string): string => `"${decodeURIComponent(text).replaceAll('"', '""')}"`
  const users = write('users', `${quoted(server.username)} ${quoted(server.password)}\n`)
  const own = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    pidfile: join(folder, pidFile),
    auth_type: 'scram-sha-256',
    auth_file: users,
    pool_mode: 'transaction',
    default_pool_size: 20,
    max_client_conn: 500,
  }
  const lines = Object.entries({ ...own, ...settings }).map(([name, value]) => `${name} = ${value}`)
  const target = `* = host=${server.hostname} port=${server.port || 5432}`
  const config = write('config.ini', ['[databases]', target, '[pgbouncer]', ...lines, ''].join('\n'))

  const logFile = join(folder, 'log')
  const log = openSync(logFile, 'a')
  const child = spawn(program, [config], { ...account, cwd: folder, stdio: ['ignore', log, log] })
  closeSync(log)
  child.unref()
  let isOver = false
  const exited = new Promise((resolve) => {
    child.once('error', resolve)
    child.once('exit', resolve)
  }).then(() => (isOver = true))
  const stop = async (): Promise<void> => {
    child.ref()
    child.kill('SIGKILL')
    await exited
    leave()
    process.off('exit', leave)
  }

  const pooled = new URL(url)
  pooled.host = `127.0.0.1:${port}`
  try {
    while (!(await answers(pooled.href))) {
      if (isOver) throw new Error('PgBouncer ended before it was ready.')
      await setTimeout(10)
    }
  } catch (cause) {
    const said = readOrNothing(logFile)
    await stop()
    throw new Error(`PgBouncer does not answer. It said:\n${said}`, { cause })
  }
  return { url: pooled.href, log: () => readOrNothing(logFile), stop }
}

function findPgbouncer(): string | null {
  // Debian puts it where an ordinary user's path does not lead.
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, 'pgbouncer')).find(isExecutable) ?? null
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** False while nobody listens; any other trouble is the caller's to know. */
async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url })
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return false
    throw error
  } finally {
    await client.end().catch(() => undefined)
  }
}
