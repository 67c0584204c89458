// Keeps the statements of a call inside the transaction of a user in which the call was made. That transaction may end while
// the call is under way, if the user did not await it: a statement that waits behind their ROLLBACK on the same connection
// would be executed outside of any transaction, or in the next one. So each statement that writes names the transaction, and
// writes nothing in another; it raises no error, which would break that other transaction. A call is answered only if its last
// statement was still in the transaction: all before it were, too, because the id of a transaction never comes back. The id
// is that of the whole transaction, and the same inside of its savepoints.

import { transactionOver, type SqlHandle } from '../sql-handle.ts'
import type { Statement } from './dialect.ts'
import type { DetailedHint, Execution, Row, Value } from './execution.ts'

const transactionId = 'pg_catalog.txid_current()::text'

/** The id of the transaction, as a column. Outside of a transaction, every statement has another one. */
export const transactionIdRead = `${transactionId} as transaction_id`

/** The id in a row with that column. */
export function transactionIdOf(row: Row | undefined): string {
  return String(row?.['transaction_id'])
}

/**
 * A statement that writes nothing unless it is executed in the transaction of its last value: elsewhere its lists are empty,
 * no row has its shard, and the rows of arrays are none.
 */
function guarded(text: string, place: number): string {
  const inside = `${transactionId} = $${place}::text`
  return text
    .replaceAll(
      /(\$\d+::text)::json/g,
      (_found, list: string) => `(case when ${inside} then ${list} else '[]' end)::json`,
    )
    .replaceAll('$1::smallint', (shard) => `(case when ${inside} then ${shard} end)`)
}

/** Statements in a transaction of ours, or in one of a user's, whose id is known then. */
export class HandleExecution implements Execution {
  readonly hints: DetailedHint[] = []
  /** The first failure. */
  failure: unknown
  private readonly handle: SqlHandle
  private readonly id: string | null
  private hasWritten = false

  constructor(handle: SqlHandle, id: string | null) {
    this.handle = handle
    this.id = id
  }

  execute({ text, writes }: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    const { id } = this
    const answer = writes && id !== null ? this.write(text, values, id) : this.handle.query(text, values)
    answer.catch((error: unknown) => (this.failure ??= error))
    return answer
  }

  /** Throws if something was written, and this id of the last statement, or of one more, is that of another transaction. */
  async assertInside(last?: string): Promise<void> {
    if (this.id === null || !this.hasWritten) return
    const id = last ?? transactionIdOf((await this.handle.query(`select ${transactionIdRead}`, []))[0])
    if (id !== this.id) throw transactionOver()
  }

  private async write(text: string, values: readonly Value[], id: string): Promise<readonly Row[]> {
    this.hasWritten = true
    const rows = await this.handle.query(guarded(text, values.length + 1), [...values, id])
    // Nothing is returned because of a conflict, or outside of the transaction: then there is no conflict to look for.
    if (rows.length === 0 && /\breturning\b/.test(text)) await this.assertInside()
    return rows
  }
}
