// A batch of which a policy of row-level security refuses some rows. Postgres refuses the whole statement then and does not
// say which row it was, so the batch is halved until each such row is alone: it affects no other. That is one statement for
// each that goes through by itself, about ten for each of a few refused ones among 500, and never two for each item.

import { HoldfastError, isOfOneRow } from '../../../core/errors/error.ts'
import type { Execution, Transactions } from '../execution.ts'

/**
 * Performs work for all items except the refused ones, however many. Each of those is reported with the error of the
 * database.
 */
export async function withoutRefused<Item>(
  items: readonly Item[],
  work: (items: readonly Item[]) => Promise<unknown>,
  refused: (item: Item, error: unknown) => void,
): Promise<void> {
  const open = [items]
  for (let some = open.pop(); some !== undefined; some = open.pop()) {
    if (some.length === 0) continue
    try {
      await work(some)
    } catch (error) {
      if (!isOfOneRow(error)) throw error
      const half = some.length >> 1
      if (half === 0) refused(some[0] as Item, error)
      else open.push(some.slice(half), some.slice(0, half))
    }
  }
}

/** Performs work that is never committed, to see whether it would be refused. */
export async function rolledBack(transactions: Transactions, work: (x: Execution) => Promise<unknown>): Promise<void> {
  const done = new HoldfastError('STORE_UNAVAILABLE', 'This is never committed.')
  const attempt = async (x: Execution): Promise<never> => {
    await work(x)
    throw done
  }
  await transactions.transaction('claim.commit', attempt, { patient: false }).catch((error: unknown) => {
    if (error !== done) throw error
  })
}
