// A transaction that a user began with a library of their own, as a store sees it: a place to send statements to. The
// libraries are recognised by their shape, so none of them is a dependency; any other object that can send a statement may be
// passed as a `SqlHandle` itself.
//
// Statements have `$1` as placeholders, outside of texts only, and name the type of each: `$1::smallint`, and
// `$2::text::json` for a value that goes as text, because some libraries would encode a text for a JSON column once more.
// Values are texts, numbers and nulls, which no library changes. Columns come back under names in snake case even where a
// library was told to write them otherwise; a whole number may come back as a text.

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
  let last: Promise<unknown> = Promise.resolve()
  return {
    // One after the other: not every library takes a statement before it has answered the one before.
    query(sql, values) {
      const sent = last.then(async () => rowsOf(await send(sql, values)))
      last = sent.catch(() => undefined)
      return sent
    },
  }
}

type Send = (sql: string, values: readonly SqlValue[]) => unknown

/** The properties of a library's object that are examined. */
interface Shape {
  readonly [property: string]: unknown
}

function sendOf(tx: Shape): Send | null {
  for (const { method, send, isTransaction, how } of libraries) {
    if (typeof tx[method] !== 'function' || (how.when !== undefined && !how.when(tx))) continue
    if (isTransaction(tx)) return (sql, values) => send(tx as never, sql, values)
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
    isTransaction: (tx) => tx['isTransaction'] === true,
    how: { what: 'a Kysely instance', instead: 'the tx of db.transaction().execute(async (tx) => …)' },
  },
  {
    method: 'raw',
    send: (tx: { raw(sql: string, bindings: readonly unknown[]): unknown }, sql, values) => {
      const { text, bindings } = questionMarks(sql, values)
      return tx.raw(text, bindings)
    },
    isTransaction: (tx) => tx['isTransaction'] === true,
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
    isTransaction: (tx) => typeof tx['getTransactionStatus'] !== 'function' || txStatus(tx) !== 'I',
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
 * failed.
 */
function txStatus(tx: Shape): unknown {
  return (tx as { getTransactionStatus(): unknown }).getTransactionStatus()
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
