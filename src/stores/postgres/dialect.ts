// The differences between databases and installations: every statement is made from this.

import type { StatementName } from './statement-name.ts'

export interface Dialect {
  /** The name of the schema, quoted. */
  readonly schema: string
  /** The one expression from which every time in the store comes: milliseconds since 1970, as a bigint. */
  readonly now: string
  /** The sequence of the feed, as an expression that names it. */
  readonly feedNumber: string
  /** Over how many shards runs are spread; fixed when the schema is made. */
  readonly shards: number
  /** Added to a lock: skip rows that another transaction has locked. Empty where the database cannot do that well. */
  readonly skipLocked: 'skip locked' | ''
  /**
   * The rows are spread over machines by their shard: each statement is made so that the machine of its shard executes it, and
   * nothing else is needed for it.
   */
  readonly isSpread: boolean
}

/** The database's clock, and not the time at which the transaction began: leases are compared with it. */
export const databaseClock = '(extract(epoch from pg_catalog.clock_timestamp())::numeric * 1000::numeric)::bigint'

export interface Statement {
  /** The places in the statement plan that it takes. */
  readonly plan: readonly StatementName[]
  readonly text: string
  /** Under which it is prepared: the same text has the same name, in any process. */
  readonly name: string
  /** It changes rows, and does not only look at them or lock them. */
  readonly writes: boolean
}

/** A statement that takes the places of these in the plan. */
export function statement(plan: StatementName | readonly StatementName[], text: string): Statement {
  const writes = /\b(insert into|delete from|(?<!for no key )update)\b/.test(text)
  return { plan: typeof plan === 'string' ? [plan] : plan, text, name: `holdfast-${hashOf(text)}`, writes }
}

/** Two FNV-1a hashes of 32 bits, from both ends: as few collisions as 64 bits have. */
function hashOf(text: string): string {
  let forth = 0x811c9dc5
  let back = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    forth = Math.imul(forth ^ text.charCodeAt(index), 0x01000193)
    back = Math.imul(back ^ text.charCodeAt(text.length - 1 - index), 0x01000193)
  }
  return (forth >>> 0).toString(16).padStart(8, '0') + (back >>> 0).toString(16).padStart(8, '0')
}
