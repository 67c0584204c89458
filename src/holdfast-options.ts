// The options of `createHoldfast`, and their checks.

import type { VersionFor } from './client/client.ts'
import type { Codec } from './core/payload/codec.ts'
import type { Definition } from './core/definition/definition.ts'
import type { Duration } from './core/definition/duration.ts'
import { HoldfastError } from './core/errors/error.ts'
import type { Limits } from './core/definition/limits.ts'
import type { Offload } from './core/payload/payload.ts'
import type { Logger, Ports } from './core/runtime/ports.ts'
import { checkBoolean, checkFunction, checkMethods, wrongOption } from './core/text/check-option.ts'
import { checkOptions, shown } from './core/text/suggest.ts'
import { transactionsOf, type TransactionRunner } from './engine/store/transact.ts'
import type { Services } from './core/definition/services.ts'
import type { Store } from './store.ts'

export type HoldfastOptions = {
  /**
   * Where runs live: `'sqlite:app.db'`, `'turso:app.db'`, `'libsql://…'`, `'postgres://…'`, `'memory:'`, or a store that
   * you made.
   */
  readonly store: string | Store
  /** The workflows that this process knows: a list of definitions, or a module whose exports are searched for them. */
  readonly workflows?: readonly Definition[] | Readonly<Record<string, unknown>>
  /** Which version a run gets that is started by the name of its workflow. @default the newest */
  readonly versionFor?: VersionFor
  /**
   * Begins a transaction with your own library, for `ctx.transaction`: `(work) => db.transaction(work)`. It must call `work`
   * once, with the library's transaction object, and commit if and only if `work` is fulfilled. It must be a transaction of
   * the database that holds the runs. @default the store begins one: `tx` is a `pg` client, or the SQLite connection
   */
  readonly transaction?: TransactionRunner
  /**
   * How many transactions of your own library may be open at once. The others wait in order, and hold nothing meanwhile.
   * @default as many as the store lends by itself (on Postgres all connections but three), or 10
   */
  readonly transactions?: number
  /** How often `ctx.until` checks its condition, unless the call has its own interval. @default '1h' */
  readonly untilInterval?: Duration
  /**
   * How long this process waits at most before it looks by itself for work and for the ends of runs: stores send hints of
   * both, but hints may be lost. @default 3 s for work, 1 s for ends
   */
  readonly poll?: Duration
  /** How payloads become text. @default JSON with tags for dates, bigints, bytes, maps, sets and errors */
  readonly codec?: Codec
  /** Where large payloads go instead of the journal. */
  readonly offload?: Offload
  /**
   * How much one call may ask for, and how much may lie unread. @default 100,000 operations, unread messages, kept
   * broadcasts and subscribers, 50 tags, priorities within a million of 0
   */
  readonly limits?: Partial<Limits>
  /**
   * The key from which the secrets of completion tokens are derived, for applications that keep it outside of the database:
   * at least 32 characters that cannot be guessed, the same in every process that performs runs. With another key, a run
   * that is replayed returns tokens that complete nothing. @default a key that the store makes with its tables
   */
  readonly tokenKey?: string
  /**
   * Creates the tables, or brings them up to date, before anything else. Where that is the work of a deployment, say false
   * and run `holdfast migrate`. @default true, but for Postgres in production (`NODE_ENV`)
   */
  readonly migrate?: boolean
  /** Stops waiting for the store: calls that were already sent, such as a migration, may still take effect. @default none */
  readonly abortSignal?: AbortSignal
  /** @default the console, without debug lines */
  readonly logger?: Logger
  /** Time, chance and order, for tests that own them. @default the machine's */
  readonly ports?: Partial<Omit<Ports, 'logger'>>
} & ServicesOption

/** Declared services are required of a process that knows workflows: one that only sends and reads has no use for them. */
type ServicesOption = {} extends Services
  ? { readonly services?: Services }
  : { readonly workflows?: never; readonly services?: Services } | { readonly services: Services }

export const holdfastOptionNames = [
  'store',
  'workflows',
  'services',
  'versionFor',
  'transaction',
  'transactions',
  'untilInterval',
  'poll',
  'codec',
  'offload',
  'tokenKey',
  'limits',
  'migrate',
  'abortSignal',
  'logger',
  'ports',
]

/** The methods of each port that is always called. */
const portMethods: Readonly<Record<string, readonly string[]>> = {
  clock: ['now', 'monotonic', 'after'],
  turns: ['next'],
  random: ['uint32'],
  digest: ['sha256', 'hmac'],
  effects: ['perform'],
  scopes: ['follows', 'run', 'current', 'snapshot'],
  bodies: ['enter', 'leave'],
}

/** Refuses options that are of another kind than they must be, before anything is opened. */
export function checkKinds({ migrate, versionFor, codec, offload, logger, ports = {} }: HoldfastOptions): void {
  const named = (option: string): string => `createHoldfast({ ${option} })`
  checkBoolean(migrate, named('migrate'))
  checkFunction(versionFor, named('versionFor'), '({ type, versions }) => 2')
  checkMethods(codec, named('codec'), ['encode', 'decode'])
  checkMethods(offload, named('offload'), ['put', 'get'])
  if (offload !== undefined && !(typeof offload.thresholdBytes === 'number' && offload.thresholdBytes >= 0)) {
    throw wrongOption(named('offload: { thresholdBytes }'), 'a number of bytes from 0', offload.thresholdBytes)
  }
  checkMethods(logger, named('logger'), ['debug', 'info', 'warn', 'error'])
  checkOptions(ports, Object.keys(portMethods), named('ports'))
  for (const [name, methods] of Object.entries(portMethods)) {
    checkMethods(ports[name as keyof typeof ports], named(`ports: { ${name} }`), methods)
  }
}

export function checkTokenKey(key: unknown): string | undefined {
  if (key === undefined || (typeof key === 'string' && key.length >= 32)) return key
  // Not even a part of it is shown.
  throw new HoldfastError(
    'INVALID_OPTION',
    'createHoldfast({ tokenKey }) needs a random text of at least 32 characters: `openssl rand -hex 32`.',
  )
}

export function checkTransaction(transaction: unknown, store: Store): TransactionRunner | undefined {
  if (transaction === undefined) return undefined
  if (typeof transaction !== 'function') {
    throw new HoldfastError(
      'INVALID_OPTION',
      `createHoldfast({ transaction }) needs a function such as (work) => db.transaction(work). Got ${shown(transaction)}.`,
    )
  }
  if (transactionsOf(store) !== null) return transaction as TransactionRunner
  throw new HoldfastError(
    'INVALID_OPTION',
    'createHoldfast({ transaction }) needs a store that can take part in your transactions; this one cannot.',
  )
}

export function checkTransactions({ transaction, transactions }: HoldfastOptions): number | undefined {
  if (transactions === undefined) return undefined
  if (!(Number.isSafeInteger(transactions) && transactions >= 1)) {
    const message = `createHoldfast({ transactions }) is a whole number from 1. Got ${shown(transactions)}.`
    throw new HoldfastError('INVALID_OPTION', message)
  }
  if (transaction !== undefined) return transactions
  throw new HoldfastError(
    'INVALID_OPTION',
    'createHoldfast({ transactions }) says how many of your own library may be open, which `transaction` names. For those of ' +
      'the store there is openPostgresStore({ connections }).',
  )
}
