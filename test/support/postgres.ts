// Starts a real Postgres for tests, in 0.7 s: a cluster of its own in a temporary folder, on 127.0.0.1 and a free port,
// behind a password that nobody else knows, as `nobody` if we are root. It can be stopped, killed and started again; then
// it has the same address and the same data. It is removed by `remove`, when the process ends, or, if the process was
// killed, when the next one starts a cluster. If DATABASE_URL is set, that server is used, and left standing.

import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, chownSync, existsSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client, escapeIdentifier } from 'pg'
import { freePort } from './free-port.ts'
import { prepareBinaries, type PostgresVersion } from './postgres-binaries.ts'
import {
  accountOf,
  makeServerFolder,
  pidFile,
  readOrNothing,
  removeServerFolder,
  type Account,
} from './server-folder.ts'

export interface PostgresOptions {
  /** @default 'embedded', or whatever runs at DATABASE_URL */
  readonly version?: PostgresVersion
  /** Written on the server's command line. A server at DATABASE_URL has its own. */
  readonly settings?: Readonly<Record<string, string>>
  /**
   * Where the data is kept, for measurements that want a real disk under it. It stays there, and a cluster that is there
   * already is used, with the `password` that it was made with.
   *
   * @default in the temporary folder, and removed
   */
  readonly dataDir?: string
  /** @default one that nobody can guess */
  readonly password?: string
  /** A Ctrl-C in the terminal does not reach it, so that others can close in good order. @default false */
  readonly detached?: boolean
}

/** `fast` breaks connections off and writes everything down; `immediate` does not, and leaves it to the recovery. */
export type StopMode = 'fast' | 'immediate'

export interface Cluster {
  /** Of the database `postgres`, or what DATABASE_URL says. */
  readonly url: string
  readonly port: number
  /** Why the server can be neither stopped nor restarted nor killed, in words for a test that is skipped; null if it can. */
  readonly untouchable: string | null
  /** Everything that the server has logged. */
  readonly log: () => string
  start(): Promise<void>
  stop(mode?: StopMode): Promise<void>
  restart(mode?: StopMode): Promise<void>
  /** SIGKILL, as from a machine that is out of memory. */
  kill(): Promise<void>
  /** Stops it and removes its files. Nothing else but the end of the process does. */
  remove(): Promise<void>
  databaseUrl(name: string): string
  /** Gives its address. */
  createDatabase(name: string): Promise<string>
}

const user = 'holdfast'
const execute = promisify(execFile)

export async function startPostgres(options: PostgresOptions = {}): Promise<Cluster> {
  const given = process.env['DATABASE_URL']
  if (given !== undefined && given !== '' && options.version === undefined) return guest(given)
  const account = accountOf()
  const folder = makeServerFolder('postgres', account)
  const leave = (): void => removeServerFolder(folder)
  process.once('exit', leave)
  try {
    const password = options.password ?? randomBytes(12).toString('hex')
    const version = options.version ?? 'embedded'
    const bin = prepareBinaries(version, account, folder)
    const data = options.dataDir ?? join(folder, 'data')
    mkdirSync(data, { recursive: true, mode: 0o700 })
    if ('uid' in account) chownSync(data, account.uid, account.gid)
    if (!existsSync(join(data, 'PG_VERSION'))) await initialise({ bin, data, folder, account, password, version })
    const { settings = {}, detached = false } = options
    const server = new Server({ bin, data, folder, account, settings, detached })
    await server.startSomewhere()
    return host(server, password, () => {
      leave()
      process.off('exit', leave)
    })
  } catch (error) {
    leave()
    process.off('exit', leave)
    throw error
  }
}

function guest(url: string): Cluster {
  const untouchable = 'the server at DATABASE_URL is not ours to stop; unset it, and one is started for this test'
  const refuse = (): Promise<never> => Promise.reject(new Error(`Not possible: ${untouchable}.`))
  return {
    url,
    port: Number(new URL(url).port || 5432),
    untouchable,
    log: () => '',
    start: refuse,
    stop: refuse,
    restart: refuse,
    kill: refuse,
    remove: () => Promise.resolve(),
    ...databasesAt(url),
  }
}

function host(server: Server, password: string, leave: () => void): Cluster {
  const url = `postgres://${user}:${password}@127.0.0.1:${server.port}/postgres`
  const restart = async (mode?: StopMode): Promise<void> => {
    await server.stop(mode)
    await server.start()
  }
  return {
    url,
    port: server.port,
    untouchable: null,
    log: () => server.log,
    start: () => server.start(),
    stop: (mode) => server.stop(mode),
    restart,
    kill: () => server.signal('SIGKILL'),
    remove: async () => {
      await server.stop('immediate')
      leave()
    },
    ...databasesAt(url),
  }
}

function databasesAt(url: string): Pick<Cluster, 'databaseUrl' | 'createDatabase'> {
  const databaseUrl = (name: string): string => {
    const other = new URL(url)
    other.pathname = `/${encodeURIComponent(name)}`
    return other.href
  }
  const createDatabase = async (name: string): Promise<string> => {
    const client = new Client({ connectionString: url })
    await client.connect()
    try {
      await client.query(`create database ${escapeIdentifier(name)} template template0`)
    } finally {
      await client.end()
    }
    return databaseUrl(name)
  }
  return { databaseUrl, createDatabase }
}

interface Place {
  readonly bin: string
  readonly data: string
  /** The server's own, for what is not data. */
  readonly folder: string
  readonly account: Account
}

const env = { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' }

interface NewCluster extends Place {
  readonly password: string
  readonly version: PostgresVersion
}

async function initialise({ bin, data, folder, account, password, version }: NewCluster): Promise<void> {
  const pwfile = join(folder, 'password')
  writeFileSync(pwfile, password, { mode: 0o600 })
  if ('uid' in account) chownSync(pwfile, account.uid, account.gid)
  const encoding = ['--encoding=UTF8', '--no-locale']
  const access = [`--username=${user}`, `--pwfile=${pwfile}`, '--auth=scram-sha-256']
  // Many rounds protect a password that can be guessed, and take every new connection 2 ms of processor time. Version 15
  // has no such setting.
  const rounds = version === '15' ? [] : ['--set=scram_iterations=1']
  const options = { ...account, env, cwd: folder }
  await execute(join(bin, 'initdb'), [`--pgdata=${data}`, '--no-sync', ...encoding, ...access, ...rounds], options)
  rmSync(pwfile)
}

/** The server process, which ends and is started again on the same data and port. */
class Server {
  port = 0
  private readonly place: Place & Required<Pick<PostgresOptions, 'settings' | 'detached'>>
  private readonly logFile: string
  private child: ChildProcess | null = null
  private exited: Promise<void> = Promise.resolve()

  constructor(place: Server['place']) {
    this.place = place
    this.logFile = join(place.folder, 'log')
  }

  get log(): string {
    return readOrNothing(this.logFile)
  }

  /** Between our look at a port and the server's, another process may have taken it. */
  async startSomewhere(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      this.port = await freePort()
      try {
        return await this.start()
      } catch (error) {
        if (tries === 3 || !this.log.includes('could not create any TCP/IP sockets')) throw error
      }
    }
  }

  async start(): Promise<void> {
    for (let tries = 1; !(await this.attempt()); tries += 1) {
      const said = this.log.slice(this.logged)
      // One that was killed as it began leaves a lock file that names nobody. We know that it is gone; the next one cannot.
      const isNobodys = said.includes('lock file "postmaster.pid" is empty')
      if (isNobodys) rmSync(join(this.place.data, 'postmaster.pid'), { force: true })
      // A process that is left of a server that was killed holds on to its memory until it notices.
      if (tries === 100 || !(isNobodys || said.includes('still in use'))) {
        throw new Error(`Postgres ended before it was ready. It said:\n${this.log.slice(-4000)}`)
      }
      await setTimeout(50)
    }
  }

  async stop(mode: StopMode = 'fast'): Promise<void> {
    await this.signal(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
  }

  /** Waits until the server has ended. */
  async signal(signal: NodeJS.Signals): Promise<void> {
    this.child?.kill(signal)
    // Only now is its end waited for.
    this.child?.ref()
    await this.exited
  }

  /** How long the log was when this attempt began. */
  private logged = 0

  /** False if the server ends instead of becoming ready. */
  private async attempt(): Promise<boolean> {
    if (this.child !== null) throw new Error('Postgres runs already.')
    const { bin, data, folder, account, settings, detached } = this.place
    this.logged = this.log.length
    const network = { listen_addresses: '127.0.0.1', port: `${this.port}`, unix_socket_directories: '' }
    const words = Object.entries({ ...settings, ...network }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    // The folder on the command line is how leftovers are distinguished from strangers, also where the data is elsewhere.
    const args = ['-D', data, '-c', `external_pid_file=${join(folder, pidFile)}`, ...words]
    const log = openSync(this.logFile, 'a')
    const child = spawn(join(bin, 'postgres'), args, {
      ...account,
      env,
      cwd: folder,
      detached,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    this.child = child
    this.exited = new Promise((resolve) => {
      child.once('error', resolve)
      child.once('exit', resolve)
    }).then(() => void (this.child = null))
    // A test that forgets it is not kept from ending.
    child.unref()
    while (this.child !== null) {
      const [pid, , , , , , , status = ''] = readOrNothing(join(data, 'postmaster.pid')).split('\n')
      const isUp = ['ready', 'standby'].includes(status.trim())
      if (Number(pid) === child.pid && isUp) return true
      await setTimeout(5)
    }
    return false
  }
}
