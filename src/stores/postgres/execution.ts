// Where statements are executed: on a connection of ours, or inside the transaction of a user. The methods of the store are
// written against this, and so are the same in both.

import type { BatchOptions, Hint } from '../../store.ts'
import type { ConnectionUse } from './connection/connection-budget.ts'
import type { Statement } from './dialect.ts'

/** All that is ever sent: lists and rows go as the text of a JSON value, which every library passes on untouched. */
export type Value = string | number | null

export type Row = Readonly<Record<string, unknown>>

export interface Execution {
  /** Sends a statement. Several may be under way at once: they are executed in this order. */
  execute(statement: Statement, values: readonly Value[]): Promise<readonly Row[]>
  /** The hints to send once it is committed. */
  readonly hints: DetailedHint[]
}

/** A hint; of a ready or timed run also its place, if that is known: then no claim need search for it everywhere. */
export type DetailedHint = Hint & {
  readonly version?: number
  readonly rank?: number
  readonly due?: number
  /** Whether it comes due later; undefined if that is not known. */
  readonly isTimed?: boolean
  /** A run has ended by a commit of its holder: only those who wait for that end need to know. */
  readonly isByHolder?: boolean
}

export interface AloneOptions extends BatchOptions {
  /** Tries again also when another transaction has locked a row. @default true */
  readonly patient?: boolean
}

/** The connections that a call may use: all that are left, or one that is reserved for it. */
export type Reserved = Extract<ConnectionUse, 'heartbeat' | 'commit'>

/** Makes calls take effect as a whole, or not at all. */
export interface Transactions {
  /** Executes one statement by itself. A statement that met a conflict is tried again; so is all of a transaction. */
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
