// Where statements are executed: on a connection of ours, or inside the transaction of a user. What a method of the store
// does is written against this, and so is the same in both.

import type { BatchOptions, Hint } from '../../store.ts'
import type { ConnectionUse } from './connection/connection-budget.ts'
import type { Statement } from './dialect.ts'

/** All that is ever sent: lists and rows go as the text of a JSON value, which every library passes on untouched. */
export type Value = string | number | null

export type Row = Readonly<Record<string, unknown>>

export interface Execution {
  /** Sends a statement. Several may be under way at once: they are executed in this order. */
  execute(statement: Statement, values: readonly Value[]): Promise<readonly Row[]>
  /** What to tell others once it is committed. */
  readonly hints: DetailedHint[]
}

/** A hint; of what is ready or timed, where it stands, if that is known: then no claim need look for it everywhere. */
export type DetailedHint = Hint & {
  readonly version?: number
  readonly rank?: number
  readonly due?: number
  /** Whether it comes due later; undefined if nobody says. */
  readonly isTimed?: boolean
}

export interface AloneOptions extends BatchOptions {
  /** Tries again also when somebody else has locked a row. @default true */
  readonly patient?: boolean
}

/** What of the database's connections something may use: all that is left, or one that is kept for it. */
export type Reserved = Extract<ConnectionUse, 'heartbeat' | 'commit'>

/** What something takes effect in as a whole, or not at all. */
export interface Transactions {
  /** Executes one statement by itself. What others were in the way of is tried again; so is all of a transaction. */
  alone<Answer>(
    work: (x: Execution) => Promise<Answer>,
    end?: Statement['plan'][number] | null,
    options?: AloneOptions,
  ): Promise<Answer>
  transaction<Answer>(
    end: Statement['plan'][number],
    work: (x: Execution) => Promise<Answer>,
    options?: AloneOptions,
  ): Promise<Answer>
}
