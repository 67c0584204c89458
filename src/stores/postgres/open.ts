// Opens a Postgres store: finds a way to the database, looks how safe it is, and puts the parts together.

import { createHash, getRandomValues, randomUUID } from 'node:crypto'
import { someTime, toMs, type Duration } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { harmless, randomFraction, type Clock, type Logger, type Random } from '../../core/runtime/ports.ts'
import { checkBoolean, checkFunction, checkMethods, wrongOption } from '../../core/text/check-option.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import { checkAddress } from './connection/address.ts'
import { isSpread as isSpreadOn } from './schema/citus.ts'
import { connected } from './schema/schema-change.ts'
import { ConnectionBudget } from './connection/connection-budget.ts'
import { Database, patienceFor } from './connection/database.ts'
import { databaseClock, type Dialect } from './dialect.ts'
import { checkDurability, type UnsafeDurability } from './connection/durability.ts'
import { Hints } from './hints/hints.ts'
import type { Row } from './execution.ts'
import {
  expectErrors,
  inTime,
  withConnection,
  type PooledConnection,
  type PoolLike,
  type PoolSource,
} from './connection/connection.ts'
import { Rights } from './schema/missing-right.ts'
import { migrate, readSchema } from './schema/migrate.ts'
import { listenAt, listenOver } from './hints/listen-client.ts'
import type { ListenClient } from './hints/listener.ts'
import { refusedRescues, warnOfPolicies } from './schema/row-security.ts'
import { isolationOn } from './connection/isolation.ts'
import { localSettings, openPool, settingsFor, settingsSql } from './connection/pool.ts'
import { installRoles } from './schema/roles.ts'
import { checkSchema, quoteSchema, quoteText } from './schema/schema-name.ts'
import { assertSearchPath } from './connection/search-path.ts'
import { readSecret } from './schema/secrets.ts'
import { PostgresStore } from './store.ts'
import type { StatementName } from './statement-name.ts'

export interface PostgresStoreOptions {
  /** `postgres://user:password@host/database`. `?schema=` and `?shards=` are the same as the options of these names. */
  readonly url?: string
  /**
   * A `Pool` of `pg` that you opened, instead of an address. It stays yours: nothing is left behind on its connections, and
   * closing the store does not close it. Open it with `pipeline: true`: then nothing waits for a round trip without need.
   */
  readonly pool?: PoolLike
  /** Where the tables stand. @default 'holdfast' */
  readonly schema?: string
  /** Over how many shards runs are spread. Fixed when the schema is made. @default that of the schema, or 1 */
  readonly shards?: number
  /**
   * For databases that spread rows over many machines: goes without SKIP LOCKED and LISTEN. Tables that Citus has spread
   * (`holdfast migrate --citus`) are found by themselves, and keep both. @default false
   */
  readonly distributed?: boolean
  /**
   * How other processes are heard: over a connection to this address, which must not lead through a pooler; `false` to find
   * their work by polling only. @default over the database's own
   */
  readonly listen?: string | false
  /**
   * The most connections that it opens itself, or takes of your pool at once; one more listens. One is kept for heartbeats
   * and one for commits, and all but three are lent to `ctx.transaction`, each for as long as a transaction lasts: the rest
   * wait in order. With fewer than four, some of these share one; two are the least. @default 13, so that ten transactions
   * may be open; all that your pool has
   */
  readonly connections?: number
  /** How long a call waits for the database, and for other writers. Its expiry is STORE_UNAVAILABLE. @default 14 s */
  readonly storageTimeout?: Duration
  /**
   * The reaction to a database whose settings may lose acknowledged commits: `fsync`, `full_page_writes` or
   * `synchronous_commit` off. @default 'warn'
   */
  readonly unsafe?: UnsafeDurability
  /** The one expression for the time, in milliseconds as a bigint, with qualified names. @default the database's clock */
  readonly now?: string
  readonly logger?: Logger
  /** Called with every statement of the plan: for tests that compare. */
  readonly onStatement?: (name: StatementName) => void
}

const optionNames = [
  'url',
  'pool',
  'schema',
  'shards',
  'distributed',
  'listen',
  'connections',
  'storageTimeout',
  'unsafe',
  'now',
  'logger',
  'onStatement',
]

function checkKinds({ listen, distributed, logger, onStatement }: PostgresStoreOptions): void {
  if (listen !== undefined && listen !== false && typeof listen !== 'string') {
    throw wrongOption('openPostgresStore({ listen })', 'the address of a database, or false', listen)
  }
  checkBoolean(distributed, 'openPostgresStore({ distributed })')
  checkMethods(logger, 'openPostgresStore({ logger })', ['debug', 'info', 'warn', 'error'])
  checkFunction(onStatement, 'openPostgresStore({ onStatement })', '(name) => names.push(name)')
}

/**
 * Opens a store in a Postgres database, by its address or over a pool that you opened.
 *
 * @example
 * const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, pipeline: true })
 * const holdfast = await createHoldfast({ store: await openPostgresStore({ pool }), workflows: [checkout] })
 */
export async function openPostgresStore(given: PostgresStoreOptions): Promise<PostgresStore> {
  checkOptions(given, optionNames, 'openPostgresStore()')
  checkKinds(given)
  const options = withUrlOptions(given)
  const { url, pool: lent, distributed = false, now = databaseClock } = options
  if ((url === undefined) === (lent === undefined)) {
    throw new HoldfastError('INVALID_OPTION', 'openPostgresStore() takes either a url or a pool.')
  }
  const name = checkSchema(options.schema ?? 'holdfast')
  const connections = connectionsOf(options)
  const storageMs = toMs(options.storageTimeout ?? '14s', 'storageTimeout', someTime)
  const logger = harmless(options.logger ?? silent)
  // Where no row can be skipped, a waiting statement stays in line.
  const wait = distributed ? 'long' : 'shortly'
  if (typeof options.listen === 'string') await checkAddress(options.listen, 'listen')
  const isolation = isolationOn(distributed)
  const onError = (error: Error): void => logger.debug('An idle connection to the database broke.', { error })
  const own =
    lent === undefined
      ? await openPool({
          url: url ?? '',
          max: connections,
          settings: (isSpread) => settingsFor(storageMs, wait, distributed || isSpread),
          schema: name,
          isolation,
          connectMs: storageMs,
          onError,
        })
      : null
  const pool = own?.pool ?? inTime(lent as PoolLike, storageMs)
  const source: PoolSource = { pool, beats: own?.beats ?? null, budget: new ConnectionBudget(connections) }
  lent?.on?.('connect', expectErrors)
  const leave = async (): Promise<void> => {
    lent?.off?.('connect', expectErrors)
    await Promise.all([own?.pool.end(), own?.beats?.end()])
  }
  try {
    if (lent !== undefined) await connected(pool, assertSearchPath)
    const isOnCitus = own?.isSpread ?? (await connected(pool, (client) => isSpreadOn(client, name)))
    const isSpread = distributed || isOnCitus
    await checkDurability(pool, { unsafe: options.unsafe, logger })
    const found = await readSchema(pool, { schema: name, shards: options.shards, now })
    warnOfPolicies(found.filtered, { schema: name, logger })
    const dialect: Dialect = {
      schema: quoteSchema(name),
      feedNumber: `${quoteText(`${quoteSchema(name)}.feed_number`)}::regclass`,
      now,
      shards: found.shards ?? options.shards ?? 1,
      skipLocked: distributed ? '' : 'skip locked',
      isSpread,
    }
    const self = randomUUID()
    const channel = channelOf(name)
    const ports = { clock: machineClock, random: machineRandom, logger }
    const hints = new Hints({
      channel,
      self,
      ports,
      connect: listens(options) ? listener(options, pool, storageMs) : null,
      send: (notice) => notify(source, storageMs, [channel, notice]),
      key: () => readSecret(source, storageMs, name, 'notice_key'),
    })
    const defaults = own?.defaults ?? null
    const database = new Database({
      ...source,
      settings: defaults === null ? settingsSql(settingsFor(storageMs, wait, isSpread)) : null,
      theirSettings: defaults === null ? null : localSettings(defaults),
      ourSettings: settingsSql(settingsFor(storageMs, 'long', isSpread)),
      isolation,
      wait,
      random: () => randomFraction(machineRandom),
      monotonic: () => machineClock.monotonic(),
      storageMs,
      onStatement: options.onStatement,
      rights: new Rights(dialect.schema, (text) => ask(source, longestAskMs, { text })),
      onHints: hints.committed,
    })
    return new PostgresStore({
      database,
      dialect,
      namespace: name,
      storageMs,
      monotonic: () => machineClock.monotonic(),
      random: () => randomFraction(machineRandom),
      migrate: async () => {
        const { from, to } = await migrate(pool, { schema: name, shards: dialect.shards, now })
        // New tables have no grants yet.
        if (from !== to) await installRoles(pool, { schema: name })
      },
      tokenKey: () => readSecret(source, storageMs, name, 'token_key'),
      hints: hints,
      // A library that was not given to us cannot take connections of ours.
      libraries: lent === undefined ? new ConnectionBudget(connections) : source.budget,
      onRefused: (run, error) =>
        logger.error(
          `A policy of row-level security refuses to change run ${run} in ${quoteSchema(name)}.runs: let the role of this worker ` +
            'write it. Until then it is left out, and tried again now and then.',
          { run, error },
        ),
      onRescueRefused: refusedRescues({
        schema: quoteSchema(name),
        logger,
        monotonic: () => machineClock.monotonic(),
      }),
      onClose: async () => {
        await database.returned()
        await hints.close()
        await leave()
      },
    })
  } catch (error) {
    await leave()
    throw error
  }
}

function listener(
  { url, listen }: PostgresStoreOptions,
  pool: PoolLike,
  connectMs: number,
): () => Promise<ListenClient> {
  const address = typeof listen === 'string' ? listen : url
  if (address !== undefined) return () => listenAt(address, connectMs)
  return () => listenOver(pool)
}

/** A name that fits, for any name of a schema. */
export function channelOf(schema: string): string {
  return `holdfast_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`
}

/** Queries a connection as it comes from the pool. */
function ask(
  source: PoolSource,
  storageMs: number,
  query: Parameters<PooledConnection['query']>[0],
): Promise<readonly Row[]> {
  const ms = { ms: storageMs }
  const options = { use: 'general', patienceMs: patienceFor(storageMs), turn: ms, connect: ms } as const
  return withConnection(source, options, async (pooled) => (await pooled.query(query)).rows)
}

async function notify(source: PoolSource, storageMs: number, values: readonly [string, string]): Promise<void> {
  await ask(source, storageMs, { text: 'select pg_catalog.pg_notify($1::text, $2::text)', values })
}

/** A caller that is refused gets its error soon, with or without the missing right. */
const longestAskMs = 1_000

/** Enough that ten transactions of users may be open at once, besides those that are kept. */
const usualConnections = 13

/** How many connections may be in use at once, besides the one that listens. */
/** A lent transaction has one, and calls inside of it, or the heartbeats of its run, need another. */
const leastConnections = 2

function connectionsOf(options: PostgresStoreOptions): number {
  const { connections, pool } = options
  if (connections !== undefined && !(Number.isSafeInteger(connections) && connections >= leastConnections)) {
    throw tooFew('openPostgresStore({ connections })', connections)
  }
  const size = pool?.options?.max
  if (pool === undefined || typeof size !== 'number') return connections ?? usualConnections
  if (size < leastConnections) throw tooFew('`max` of openPostgresStore({ pool })', size)
  // The one that listens is one of theirs, and stays with us.
  const left = options.listen === undefined && listens(options) ? size - 1 : size
  return Math.min(connections ?? left, left)
}

function tooFew(option: string, given: unknown): HoldfastError {
  const message =
    `${option} is a whole number from ${leastConnections}: a transaction has a connection for as long as it is open, and ` +
    `heartbeats and calls inside of it need another. Got ${shown(given)}.`
  return new HoldfastError('INVALID_OPTION', message)
}

/** Whether other processes can be heard. A pool of so few connections has none left for that. */
function listens({ pool, listen, distributed = false }: PostgresStoreOptions): boolean {
  const size = pool?.options?.max ?? Number.POSITIVE_INFINITY
  return !distributed && listen !== false && (listen !== undefined || size > leastConnections)
}

/** Options that stand in the address, taken out of it: the driver would not know them. */
export function withUrlOptions(options: PostgresStoreOptions): PostgresStoreOptions {
  const { url } = options
  if (url === undefined || !url.includes('?')) return options
  const at = url.indexOf('?')
  const parameters = new URLSearchParams(url.slice(at + 1))
  const schema = parameters.get('schema')
  const shards = parameters.get('shards')
  if (schema === null && shards === null) return options
  if (shards !== null && !/^[0-9]{1,4}$/.test(shards)) {
    throw new HoldfastError('INVALID_OPTION', `?shards= in the address of the store is a number. Got ${shown(shards)}.`)
  }
  parameters.delete('schema')
  parameters.delete('shards')
  const rest = parameters.toString()
  return {
    ...(schema === null ? {} : { schema }),
    ...(shards === null ? {} : { shards: Number(shards) }),
    ...options,
    url: url.slice(0, at) + (rest === '' ? '' : `?${rest}`),
  }
}

/** A wait here must not keep a process alive that has nothing else to do. */
const machineClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, wake) {
    const timer = setTimeout(wake, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

const machineRandom: Random = { uint32: () => getRandomValues(new Uint32Array(1))[0] as number }

const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}
