// Opens a Postgres store: finds a way to the database, looks how safe it is, and puts the parts together.

import { createHash, getRandomValues, randomUUID } from 'node:crypto'
import { toMs, type Duration } from '../../core/duration.ts'
import { HoldfastError } from '../../core/error.ts'
import { harmless, randomFraction, type Clock, type Logger, type Random } from '../../core/ports.ts'
import { checkOptions, shown } from '../../core/suggest.ts'
import { Database, patienceFor, type PoolLike } from './database.ts'
import { databaseClock, type Dialect } from './dialect.ts'
import { checkDurability, type Unsafe } from './durability.ts'
import { Hints } from './hearing.ts'
import { onLine } from './line.ts'
import { migrate, readSchema } from './migrating.ts'
import { listenAt, listenOver } from './listen-client.ts'
import type { ListenClient } from './listening.ts'
import { lentSettings, openPool, settingsFor, settingsSql } from './pool.ts'
import { checkSchema, quoteSchema, quoteText } from './schema-name.ts'
import { PostgresStore } from './store.ts'
import type { StatementName } from '../statement-plan.ts'

export interface PostgresStoreOptions {
  /** `postgres://user:password@host/database`. `?schema=` and `?shards=` say what the options of these names say. */
  readonly url?: string
  /**
   * A `Pool` of `pg` that you opened, instead of an address. It stays yours: nothing is left behind on its connections, and
   * closing the store does not close it. Open it with `pipeline: true`: then nothing waits for a round trip without need.
   */
  readonly pool?: PoolLike
  /** Where the tables stand. @default 'holdfast' */
  readonly schema?: string
  /** Over how many shards runs are spread. Fixed when the schema is made. @default what it has, or 1 */
  readonly shards?: number
  /** For databases that spread rows over many machines: goes without SKIP LOCKED and LISTEN. @default false */
  readonly distributed?: boolean
  /**
   * How other processes are heard: over a connection to this address, which must not lead through a pooler; `false` to find
   * their work by polling only. @default over the database's own
   */
  readonly listen?: string | false
  /** The most connections that it opens itself. @default 10 */
  readonly connections?: number
  /** How long a call waits for the database, and for others who write. Its expiry is STORE_UNAVAILABLE. @default 14 s */
  readonly storageTimeout?: Duration
  /**
   * What to do about a database whose settings may lose what it has answered as committed: `fsync`, `full_page_writes` or
   * `synchronous_commit` off. @default 'warn'
   */
  readonly unsafe?: Unsafe
  /** The one expression for the time, in milliseconds as a bigint. @default the database's clock */
  readonly now?: string
  readonly logger?: Logger
  /** Told of every statement of the plan: for tests that compare. */
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

/**
 * Opens a store in a Postgres database, by its address or over a pool that you opened.
 *
 * @example
 * const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, pipeline: true })
 * const holdfast = await createHoldfast({ store: await openPostgresStore({ pool }), workflows: [checkout] })
 */
export async function openPostgresStore(given: PostgresStoreOptions): Promise<PostgresStore> {
  checkOptions(given, optionNames, 'openPostgresStore()')
  const options = withUrlOptions(given)
  const { url, pool: lent, distributed = false, connections = 10, now = databaseClock } = options
  if ((url === undefined) === (lent === undefined)) {
    throw new HoldfastError('INVALID_OPTION', 'openPostgresStore() takes either a url or a pool.')
  }
  const name = checkSchema(options.schema ?? 'holdfast')
  const storageMs = toMs(options.storageTimeout ?? '14s', 'storageTimeout')
  const logger = harmless(options.logger ?? silent)
  const settings = settingsFor(storageMs)
  const onError = (error: Error): void => logger.debug('An idle connection to the database broke.', { error })
  const own =
    lent === undefined
      ? await openPool({ url: url ?? '', max: connections, settings, connectMs: storageMs, onError })
      : null
  const { pool } = own ?? { pool: lent as PoolLike }
  try {
    await checkDurability(pool, { unsafe: options.unsafe, logger })
    const found = await readSchema(pool, { schema: name, shards: options.shards, now })
    const dialect: Dialect = {
      schema: quoteSchema(name),
      feedNumber: quoteText(`${quoteSchema(name)}.feed_number`),
      now,
      shards: found?.shards ?? options.shards ?? 1,
      skipLocked: distributed ? '' : 'skip locked',
    }
    const self = randomUUID()
    const channel = channelOf(name)
    const ports = { clock: machineClock, random: machineRandom, logger }
    const hints = new Hints({
      channel,
      self,
      ports,
      connect: distributed || options.listen === false ? null : listener(options, lent, storageMs),
      send: (notice) => notify(pool, patienceFor(storageMs), [channel, notice]),
    })
    const database = new Database({
      pool,
      settings: own?.isDirect === true ? null : settingsSql(settings),
      lentSettings,
      random: () => randomFraction(machineRandom),
      monotonic: () => machineClock.monotonic(),
      storageMs,
      onStatement: options.onStatement,
      onHints: hints.committed,
    })
    return new PostgresStore({
      database,
      dialect,
      monotonic: () => machineClock.monotonic(),
      migrate: async () => void (await migrate(pool, { schema: name, shards: dialect.shards, now })),
      hearing: hints,
      onClose: async () => {
        await hints.close()
        await own?.pool.end()
      },
    })
  } catch (error) {
    await own?.pool.end()
    throw error
  }
}

function listener(
  { url, listen }: PostgresStoreOptions,
  pool: PoolLike | undefined,
  connectMs: number,
): () => Promise<ListenClient> {
  const address = typeof listen === 'string' ? listen : url
  if (address !== undefined) return () => listenAt(address, connectMs)
  return () => listenOver(pool as PoolLike)
}

/** A name that fits, whatever the schema is called. */
function channelOf(schema: string): string {
  return `holdfast_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`
}

async function notify(pool: PoolLike, patienceMs: number, values: readonly [string, string]): Promise<void> {
  await onLine(pool, patienceMs, (line) => line.query({ text: 'select pg_notify($1, $2)', values }))
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

/** What waits here must not keep a process alive that has nothing else to do. */
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
