// Warnings about row-level security on our tables. Every search for work relies on seeing all rows: a run that a policy hides
// is neither woken nor taken over, and no error says so. So opening a store logs that once; and where a policy refuses a row
// instead, the refusal is logged with the table and the right, but not with every look.

import { isHoldfastError } from '../../../core/errors/error.ts'
import type { Logger } from '../../../core/runtime/ports.ts'
import { tableNames } from '../table-names.ts'

/** How often the log repeats that rescues are refused. */
const sayAgainMs = 300_000

/** Warns of tables whose policies apply to this user of the database. */
export function warnOfPolicies(
  filtered: readonly string[],
  { schema, logger }: { readonly schema: string; readonly logger: Pick<Logger, 'warn'> },
): void {
  if (filtered.length === 0) return
  const tables = filtered.map((table) => `${schema}.${table}`)
  logger.warn(
    `Row-level security applies to the user of this store on ${tables.join(', ')}. A policy that hides rows loses wake-ups ` +
      'without an error, and one that refuses rows keeps their runs from going on. Give the user BYPASSRLS, or disable ' +
      'row-level security on these tables. To keep tenants apart, give each a schema of its own.',
    { tables },
  )
}

/** Runs that a rescue could not change, because a policy refuses that. */
export interface RefusedRescue {
  readonly runs: readonly string[]
  /** There were too many to find all of them. */
  readonly hasMore: boolean
  /** The error of one of them. */
  readonly error: unknown
}

export interface RefusedRescuesOptions {
  /** Its name, quoted. */
  readonly schema: string
  readonly logger: Pick<Logger, 'error'>
  readonly monotonic: () => number
}

/** Says that rescues are refused: at once, and then now and then while they are. */
export function refusedRescues({ schema, logger, monotonic }: RefusedRescuesOptions): (refused: RefusedRescue) => void {
  let saidAt = Number.NEGATIVE_INFINITY
  return ({ runs, hasMore, error }) => {
    const now = monotonic()
    if (now - saidAt < sayAgainMs) return
    saidAt = now
    const count = `${runs.length === 1 ? '1 run' : `${runs.length} runs`}${hasMore ? ' or more' : ''}`
    const table = tableOf(error)
    // A rescue changes runs, and adds to everything else.
    const right = table === 'runs' ? 'UPDATE' : 'INSERT'
    logger.error(
      `A policy of row-level security refuses ${right} on ${schema}.${table} for ${count} whose worker died or whose time is ` +
        'over: let the user of this store write them. Until then no worker goes on with them.',
      { table, right, runs, error },
    )
  }
}

/** The server names the table in a sentence of its own language, in quotes. */
function tableOf(error: unknown): string {
  const { cause } = isHoldfastError(error) ? error : {}
  const said = cause instanceof Error ? cause.message : ''
  const named = Array.from(said.matchAll(/"([^"]*)"/g), ([, name]) => name ?? '')
  return named.findLast((name) => tableNames.includes(name)) ?? 'runs'
}
