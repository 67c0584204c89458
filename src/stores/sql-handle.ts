// A transaction that a user began with a library of their own, as a store sees it: a place to send statements to. The
// libraries are recognised by their shape, so none of them is a dependency; any other object that can send a statement may be
// passed as a `SqlHandle` itself.
//
// Statements have `$1` as placeholders, outside of texts only, and name the type of each: `$1::smallint`, and
// `$2::text::json` for a value that goes as text, because some libraries would encode a text for a JSON column once more.
// Values are texts, numbers and nulls, which no library changes. Columns come back under names in snake case even where a
// library is configured to write them otherwise; a whole number may come back as a text.

import { HoldfastError } from '../core/errors/error.ts'
import { shown } from '../core/text/suggest.ts'

export type SqlValue = string | number | null
export type SqlRow = Readonly<Record<string, unknown>>

/** Where statements are sent to. It answers with the rows that a statement returns. */
export interface SqlHandle {
  query(sql: string, values: readonly SqlValue[]): Promise<readonly SqlRow[]>
}

/** The statements of a user's transaction. Throws INVALID_OPTION if it is none, or none that we know. */
export function sqlHandleOf(tx: unknown): SqlHandle {
  const send = isObject(tx) ? sendOf(tx) : null
  if (send === null) throw unknownHandle(tx)
  let last: Promise<unknown> | null = null
  return {
    // One after the other: not every library takes a statement before it has answered the one before. The first is sent at
    // once: a statement that the user sends next comes behind it.
    query(sql, values) {
      const one = async (): Promise<readonly SqlRow[]> => {
        try {
          return rowsOf(await send(sql, values))
        } catch (error) {
          throw underneath(error)
        }
      }
      const sent = last === null ? one() : last.then(one)
      const settled: Promise<unknown> = sent
        .catch(() => undefined)
        .then(() => {
          if (last === settled) last = null
        })
      last = settled
      return sent
    },
  }
}

/**
 * The error of the database in the error of a library, which may have wrapped it; or that the transaction is over, if the
 * library says so itself.
 */
function underneath(error: unknown): unknown {
  let one: unknown = error
  for (let depth = 0; depth < 5 && isObject(one); depth += 1) {
    const { code, cause, driverError, meta }: Shape = one
    if (isSqlState(code)) return one
    // Prisma has the code and the text of the database beside its own.
    if (isObject(meta) && isSqlState(meta['code'])) {
      return Object.assign(new Error(String(meta['message']), { cause: error }), { code: meta['code'] })
    }
    one = cause ?? driverError
  }
  const { code, message }: Shape = isObject(error) ? error : {}
  return code === 'P2028' || overWords.test(String(message)) ? transactionOver(error) : error
}

/** As Knex, Kysely, Prisma and TypeORM report that a transaction or its connection is not theirs any more. */
const overWords = /transaction\b.*\b(?:closed|complete|committed|rolled back|ended|expired)\b|runner already released/i

/** The codes of Node and of Prisma may have five characters, too. */
function isSqlState(code: unknown): boolean {
  return typeof code === 'string' && /^(?!E[A-Z]+$|P[1-9])[0-9A-Z]{5}$/.test(code)
}

/** A transaction of the user's is over, and a call of `holdfast.using(tx)` is not. */
export function transactionOver(cause?: unknown): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    'The transaction of holdfast.using(tx) was over before this call was answered. Nothing is written outside of it, but if you ' +
      'have committed it, a part of the call may be in it: look before you repeat the call. Await each call before you ' +
      'commit or roll back, and call holdfast.using(tx) again in the next transaction.',
    cause === undefined ? {} : { cause },
  )
}

type Send = (sql: string, values: readonly SqlValue[]) => unknown

/** The properties of a library's object that are examined. */
interface Shape {
  readonly [property: string]: unknown
}

function sendOf(tx: Shape): Send | null {
  for (const { method, send, isTransaction, how } of libraries) {
    if (typeof tx[method] !== 'function' || (how.when !== undefined && !how.when(tx))) continue
    if (isTransaction(tx)) {
      return (sql, values) => {
        if (!isTransaction(tx)) throw transactionOver()
        return send(tx as never, sql, values)
      }
    }
    throw new HoldfastError(
      'INVALID_OPTION',
      `holdfast.using(tx) was given ${how.what}, which is in no transaction. Give it ${how.instead}.`,
    )
  }
  return null
}

interface Library {
  /** The method that it is known by. */
  readonly method: string
  readonly send: (tx: never, sql: string, values: readonly SqlValue[]) => unknown
  readonly isTransaction: (tx: Shape) => boolean
  readonly how: {
    readonly what: string
    readonly instead: string
    readonly when?: (tx: Shape) => boolean
  }
}

const libraries: readonly Library[] = [
  {
    method: '$queryRawUnsafe',
    send: (tx: { $queryRawUnsafe(...given: unknown[]): unknown }, sql, values) => tx.$queryRawUnsafe(sql, ...values),
    isTransaction: (tx) => typeof tx['$transaction'] !== 'function',
    how: { what: 'a Prisma client', instead: 'the tx of prisma.$transaction(async (tx) => …)' },
  },
  {
    method: 'unsafe',
    send: (tx: { unsafe(sql: string, values: readonly unknown[]): unknown }, sql, values) => tx.unsafe(sql, values),
    // One connection out of its pool has no `begin`, and may be inside a transaction.
    isTransaction: (tx) => typeof tx['begin'] !== 'function',
    how: { what: 'the sql of postgres.js', instead: 'the sql of sql.begin(async (sql) => …)' },
  },
  {
    method: 'executeQuery',
    send: (tx: KyselyLike, sql, values) => {
      // Plugins may rename columns of the result.
      const plain = tx.withoutPlugins?.() ?? tx
      const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] }
      return plain.executeQuery({ sql, parameters: values, query, queryId: { queryId: 'holdfast' } })
    },
    // A controlled transaction says how it ended.
    isTransaction: (tx) => tx['isTransaction'] === true && tx['isCommitted'] !== true && tx['isRolledBack'] !== true,
    how: { what: 'a Kysely instance', instead: 'the tx of db.transaction().execute(async (tx) => …)' },
  },
  {
    method: 'raw',
    send: (tx: { raw(sql: string, bindings: readonly unknown[]): unknown }, sql, values) => {
      const { text, bindings } = questionMarks(sql, values)
      return tx.raw(text, bindings)
    },
    isTransaction: (tx) => tx['isTransaction'] === true && !isCompleted(tx),
    how: { what: 'a Knex instance', instead: 'the trx of knex.transaction(async (trx) => …)' },
  },
  {
    method: 'execute',
    send: (tx: { execute(query: unknown): unknown }, sql, values) => {
      // The shape of Drizzle's own `sql` objects, as far as its dialect reads it.
      const built = { toQuery: () => ({ sql, params: [...values] }) }
      return tx.execute({ getSQL: () => built })
    },
    isTransaction: (tx) => typeof tx['rollback'] === 'function',
    how: {
      what: 'a Drizzle database',
      instead: 'the tx of db.transaction(async (tx) => …)',
      when: (tx) => 'dialect' in tx && 'session' in tx,
    },
  },
  {
    method: 'query',
    send: (tx: { query(config: unknown): unknown }, sql, values) =>
      tx.query({ text: sql, values: [...values], types: plainTypes }),
    isTransaction: (tx) => typeof tx['getTransactionStatus'] !== 'function' || /^[TE]$/.test(String(txStatus(tx))),
    how: {
      what: 'a pg client',
      instead: "the client after client.query('begin')",
      when: (tx) => typeof tx['escapeIdentifier'] === 'function',
    },
  },
  {
    method: 'query',
    send: (tx: { query(sql: string, values: readonly unknown[]): unknown }, sql, values) => tx.query(sql, [...values]),
    isTransaction: isOneConnection,
    how: {
      what: 'a pool, or a manager without a transaction',
      instead:
        'one client of the pool after its begin, or what dataSource.transaction(async (manager) => …) hands to its function',
    },
  },
]

interface KyselyLike {
  withoutPlugins?(): KyselyLike
  executeQuery(query: unknown): unknown
}

/**
 * The last transaction status that a client of `pg` got from the server: `I` is idle, `T` in a transaction, `E` in one that
 * failed; null if it never connected.
 */
function txStatus(tx: Shape): unknown {
  return (tx as { getTransactionStatus(): unknown }).getTransactionStatus()
}

/** Whether a transaction of Knex reports its end. */
function isCompleted(tx: Shape): boolean {
  return typeof tx['isCompleted'] === 'function' && (tx as { isCompleted(): unknown }).isCompleted() === true
}

/** Pools and data sources spread their queries over many connections; so does a manager of TypeORM without a runner. */
function isOneConnection(tx: Shape): boolean {
  if ('totalCount' in tx || 'createQueryRunner' in tx) return false
  if (typeof tx['getRepository'] === 'function') return isObject(tx['queryRunner']) && isActive(tx['queryRunner'])
  return !('isTransactionActive' in tx) || isActive(tx)
}

/** Whether a query runner of TypeORM reports an open transaction. */
function isActive(runner: Shape): boolean {
  return runner['isTransactionActive'] === true
}

/** However the user's application reads the types of Postgres, here they are numbers, booleans and texts. */
const plainTypes = {
  getTypeParser: (oid: number) => (oid === 20 || oid === 21 || oid === 23 ? Number : oid === 16 ? isTrue : asText),
}

function isTrue(text: string): boolean {
  return text === 't'
}

function asText(text: string): string {
  return text
}

/** The same statement for a library whose placeholders are question marks: each takes the next value. */
function questionMarks(sql: string, values: readonly SqlValue[]): { text: string; bindings: readonly SqlValue[] } {
  const bindings: SqlValue[] = []
  const text = sql.replaceAll(/\?|\$(\d+)/g, (found, place: string | undefined) => {
    if (place === undefined) return `\\${found}`
    bindings.push(values[Number(place) - 1] ?? null)
    return '?'
  })
  return { text, bindings }
}

/** The rows in the answer of a library: a list, a result with `rows`, or TypeORM's pair of rows and a count. */
function rowsOf(answer: unknown): readonly SqlRow[] {
  const listed = isObject(answer) && 'rows' in answer ? answer['rows'] : answer
  if (!Array.isArray(listed)) return []
  const rows: unknown = listed.length === 2 && Array.isArray(listed[0]) ? listed[0] : listed
  return (rows as SqlRow[]).map(inSnakeCase)
}

function inSnakeCase(row: SqlRow): SqlRow {
  const names = Object.keys(row)
  if (!names.some((name) => /[A-Z-]/.test(name))) return row
  return Object.fromEntries(
    names.map((name) => [
      name
        .replaceAll('-', '_')
        .replaceAll(/(?!^)[A-Z]/g, '_$&')
        .toLowerCase(),
      row[name],
    ]),
  )
}

function isObject(value: unknown): value is Shape {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function unknownHandle(tx: unknown): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    'This store keeps its runs in Postgres: holdfast.using(tx) needs the transaction of your library, that is a pg client, the ' +
      'sql of postgres.js, or what Drizzle, Kysely, Knex, Prisma or TypeORM hand to the function of a transaction; or any ' +
      `object with query(sql, values) that answers with rows. Got ${shown(tx)}.`,
  )
}
