// A read model that is a table with one row for each instance. The rows of a batch are read with one statement, folded in memory,
// and written with one statement, in the transaction of the position.

import { checkFunction, wrongOption } from '../core/text/check-option.ts'
import { checkOptions, isPlainObject, shown } from '../core/text/suggest.ts'
import type { Transaction } from '../core/definition/transactions.ts'
import {
  projectionOptionNames,
  worked,
  type AnyOptions,
  type BatchedWrites,
  type EventsOf,
  type EventSource,
  type EventTools,
  type OfType,
  type RebuildHooks,
  type TransactionTools,
  type WorkedOptions,
  type WorkedProjection,
} from './definition.ts'
import { sqlTypes, Table, type ColumnType, type ColumnTypes, type StoredRow } from './table-sql.ts'

/** The columns of an author, as handlers get and return them. */
export type TableRow<Columns> = { readonly [Name in keyof Columns]: CellOf<Columns[Name]> | null }

type CellOf<Type> = Type extends 'text' ? string : Type extends 'boolean' ? boolean : number

/** Gives the columns that change, null to delete the row, or nothing to leave it as it is. */
type RowHandler<Columns, Event> = (
  row: TableRow<Columns>,
  event: Event,
  tools: EventTools,
) => Partial<TableRow<Columns>> | null | void

export type TableProjectionOptions<From, Columns extends ColumnTypes> = WorkedOptions<From> & {
  readonly table: string
  /** The schema of the table. @default the one that the connection writes to */
  readonly schema?: string
  /** The columns besides `id`, `position` and `at`, with their types. */
  readonly columns: Columns
  /** How it is built anew. @default in a table `…_next`, which is given the name of the live one */
  readonly rebuild?: RebuildHooks
} & (
    | {
        readonly handlers: {
          readonly [Type in EventsOf<From>['type']]?: RowHandler<NoInfer<Columns>, OfType<EventsOf<From>, Type>>
        }
        readonly handle?: never
      }
    | { readonly handle: RowHandler<NoInfer<Columns>, EventsOf<From>>; readonly handlers?: never }
  )

export interface TableProjection extends WorkedProjection {
  /** The statement that creates the table, for SQLite and Postgres. Holdfast does not execute it by itself. */
  readonly createTable: string
}

/** Besides those of projection(). */
export const tableOptionNames = ['table', 'schema', 'columns']

/**
 * A table with one row for each instance, in the database of the runs: its id, columns of your own, and the position and time of the
 * last event that changed it. A handler gets the columns as they are, all of them null if there is no row, and returns those that
 * change.
 *
 * @example
 * const orders = tableProjection('orders', {
 *   from: order,
 *   table: 'orders',
 *   columns: { status: 'text', total: 'number' },
 *   handlers: {
 *     Placed: (_row, { total }) => ({ status: 'open', total }),
 *     Paid: () => ({ status: 'paid' }),
 *   },
 * })
 * console.log(orders.createTable)
 */
export function tableProjection<
  const From extends EventSource | readonly EventSource[],
  const Columns extends ColumnTypes,
>(name: string, options: TableProjectionOptions<From, Columns>): TableProjection {
  const where = `tableProjection ${shown(name)}`
  const { table: tableName, schema = null, columns, handlers, handle, ...rest } = options as unknown as TableOptions
  checkOptions(options, [...tableOptionNames, ...projectionOptionNames], where)
  checkName(tableName, `table of ${where}`, longestTable)
  if (schema !== null) checkName(schema, `schema of ${where}`, longestName)
  const known = checkColumns(columns, where)
  const table = new Table({ schema, name: tableName, columns: known })
  const rows = new BatchedRows(table, known)
  const folding = (handler: unknown): unknown =>
    typeof handler === 'function' ? rows.folding(handler as AnyRowHandler) : handler
  checkFunction(handle, `handle of ${where}`, '(row, event) => ({ … })')
  const wrapped = isPlainObject(handlers)
    ? { handlers: Object.fromEntries(Object.entries(handlers).map(([type, one]) => [type, folding(one)])) }
    : handlers === undefined
      ? {}
      : { handlers }
  const given: AnyOptions = {
    rebuild: {
      begin: (tx) => table.next.make(tx),
      swap: (tx) => table.next.replace(tx, table),
    },
    ...rest,
    ...wrapped,
    ...(handle === undefined ? {} : { handle: folding(handle) }),
  }
  const about = { table: tableName, schema, columns: known }
  const made = worked(name, given, { call: 'tableProjection', kind: 'transaction', about })
  if (made.from.size > 1)
    throw wrongOption(
      `from of ${where}`,
      'one decider, in any of its versions: ids of two may be the same',
      options.from,
    )
  return { ...made, batched: rows, createTable: table.create }
}

interface TableOptions extends AnyOptions {
  readonly table: string
  readonly schema?: string
  readonly columns: unknown
}

type AnyRowHandler = (row: StoredRow['cells'], event: unknown, tools: EventTools) => unknown

/** A row as the events of a batch leave it. */
interface Folded {
  readonly cells: StoredRow['cells'] | null
  /** The last event that changed it; null if none of this batch did. */
  readonly by: EventTools | null
}

class BatchedRows implements BatchedWrites {
  private readonly live: Table
  private readonly columns: ColumnTypes
  /** One for each transaction that is under way: the live part and a rebuild have theirs. */
  private readonly batches = new WeakMap<object, Map<string, Folded>>()

  constructor(live: Table, columns: ColumnTypes) {
    this.live = live
    this.columns = columns
  }

  async begin(tx: Transaction, instances: readonly string[], isRebuild: boolean): Promise<void> {
    const known = await this.table(isRebuild).rows(tx, [...new Set(instances)])
    this.batches.set(tx as object, new Map([...known].map(([id, cells]) => [id, { cells, by: null }])))
  }

  async end(tx: Transaction, isRebuild: boolean): Promise<void> {
    const changed = [...this.batchOf(tx)].filter(([, { by }]) => by !== null)
    const gone = changed.flatMap(([id, { cells }]) => (cells === null ? [id] : []))
    const kept = changed.flatMap(([id, { cells, by }]): readonly StoredRow[] =>
      cells === null || by === null ? [] : [{ id, cells, position: by.position, at: by.at }],
    )
    const table = this.table(isRebuild)
    await table.delete(tx, gone)
    await table.write(tx, kept)
    this.batches.delete(tx as object)
  }

  /** A handler of events that folds the row in the batch of its transaction. */
  folding(handler: AnyRowHandler) {
    return async (event: unknown, tools: TransactionTools): Promise<void> => {
      const batch = this.batchOf(tools.tx)
      const cells = batch.get(tools.instance)?.cells ?? this.empty()
      const changes = await handler(cells, event, tools)
      if (changes === undefined) return
      const next = changes === null ? null : Object.freeze({ ...cells, ...this.checked(changes) })
      batch.set(tools.instance, { cells: next, by: tools })
    }
  }

  private table(isRebuild: boolean): Table {
    return isRebuild ? this.live.next : this.live
  }

  private batchOf(tx: Transaction): Map<string, Folded> {
    const batch = this.batches.get(tx as object) ?? new Map<string, Folded>()
    this.batches.set(tx as object, batch)
    return batch
  }

  private empty(): StoredRow['cells'] {
    return Object.freeze(Object.fromEntries(Object.keys(this.columns).map((name) => [name, null])))
  }

  private checked(changes: unknown): StoredRow['cells'] {
    if (!isPlainObject(changes))
      throw new Error(`A handler must return columns, null or nothing, not ${shown(changes)}`)
    const set = Object.entries(changes).filter(([, value]) => value !== undefined)
    for (const [name, value] of set) {
      const type = Object.hasOwn(this.columns, name) ? this.columns[name] : undefined
      if (type === undefined) throw new Error(`The table has no column ${shown(name)}: say it in columns`)
      if (!fits(value, type))
        throw new Error(`Column ${shown(name)} is of type ${type}, and cannot hold ${shown(value)}`)
    }
    return Object.fromEntries(set)
  }
}

function fits(value: unknown, type: ColumnType): boolean {
  if (value === null) return true
  if (type === 'integer') return Number.isSafeInteger(value)
  if (type === 'number') return Number.isFinite(value)
  return typeof value === (type === 'text' ? 'string' : 'boolean')
}

/** In bytes: Postgres cuts off what is longer, so that two names would be one. */
const longestName = 63
const longestTable = longestName - '_next'.length

const ownColumns = new Set(['id', 'position', 'at'])

function checkName(name: unknown, option: string, longest: number): void {
  const must = `a name of 1 to ${longest} bytes without NUL`
  if (typeof name !== 'string' || name === '' || name.includes('\0')) throw wrongOption(option, must, name)
  if (new TextEncoder().encode(name).length > longest) throw wrongOption(option, must, name)
}

function checkColumns(columns: unknown, where: string): ColumnTypes {
  const option = `columns of ${where}`
  if (!isPlainObject(columns)) throw wrongOption(option, "an object such as { status: 'text' }", columns)
  const lower = new Set(ownColumns)
  for (const [name, type] of Object.entries(columns)) {
    checkName(name, `a name in ${option}`, longestName)
    if (!Object.hasOwn(sqlTypes, type as string))
      throw wrongOption(`${shown(name)} in ${option}`, "'text', 'integer', 'number' or 'boolean'", type)
    // SQLite does not tell them apart.
    const plain = name.toLowerCase()
    if (lower.has(plain))
      throw wrongOption(
        `a name in ${option}`,
        "other than that of another one, and than 'id', 'position' and 'at'",
        name,
      )
    lower.add(plain)
  }
  return { ...(columns as ColumnTypes) }
}
