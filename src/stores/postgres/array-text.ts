// Batches as columns: one array for each, sent as text like everything else. With lists of JSON objects, in which every
// row repeats the names of its fields, a run of three steps took the server a quarter more time.

import type { Value } from './execution.ts'

/** An array of nothing but nulls: beside longer ones `unnest` gives nulls for it. */
export const noValues = '{}'

/** The elements of an array of Postgres, gathered one by one. */
export class ArrayText {
  private text = ''
  private hasValue = false
  /** The last element. */
  last: Value = null

  add(value: Value | undefined): void {
    this.last = value ?? null
    if (value === null || value === undefined) {
      this.text += ',null'
      return
    }
    this.hasValue = true
    this.text += typeof value === 'string' ? `,${quoted(value)}` : `,${value}`
  }

  toString(): string {
    return this.hasValue ? `{${this.text.slice(1)}}` : noValues
  }
}

/** Of no shard there are no rows: that keeps a statement out of a transaction that is not its own (`transaction-guard.ts`). */
const ofAnyShard = '$1::smallint is not null'

/** The same for a batch of one, whose values need no array. A statement for it costs the server less to begin. */
export function rowFrom(columns: Readonly<Record<string, string>>, first: number): string {
  const list = Object.entries(columns).map(([name, type], index) => `$${first + index}::text::${type} as ${name}`)
  return `(select ${list.join(', ')} where ${ofAnyShard})`
}

/** The columns of a batch, as a query that has a row for each of its items. */
export function rowsFrom(columns: Readonly<Record<string, string>>, first: number): string {
  const list = Object.entries(columns).map(
    ([name, type], index) => `pg_catalog.unnest($${first + index}::text::${type}[]) as ${name}`,
  )
  return `(select ${list.join(', ')} where ${ofAnyShard})`
}

const special = /["\\]/
const everySpecial = /["\\]/g
/** What JSON would write otherwise than an array does: control characters and halves of pairs. */
const foreign = /[^ -\ud7ff\ue000-\uffff]/

/** JSON escapes the same two characters in the same way, in a third of the time. */
function quoted(text: string): string {
  if (!special.test(text)) return `"${text}"`
  return foreign.test(text) ? `"${text.replaceAll(everySpecial, '\\$&')}"` : JSON.stringify(text)
}
