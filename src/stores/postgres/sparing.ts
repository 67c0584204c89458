// A batch of which a policy of row-level security refuses one row. Postgres refuses the whole statement then and does not say
// which row it was, so the batch is halved until the row is alone: it harms nobody but itself.

import { HoldfastError, isOfOneRow } from '../../core/error.ts'
import type { Execution, Transactions } from './execution.ts'

/** So many refusals are looked into at once: who forbids all rows of a batch must not make a statement for each. */
const mostRefusals = 64

/** Performs work for all items but those that are refused. Each of those is told of with what the database said. */
export async function sparing<Item>(
  items: readonly Item[],
  work: (items: readonly Item[]) => Promise<unknown>,
  refused: (item: Item, error: unknown) => void,
): Promise<void> {
  const open = [items]
  for (let refusals = 0; refusals < mostRefusals;) {
    const some = open.pop()
    if (some === undefined) return
    if (some.length === 0) continue
    try {
      await work(some)
    } catch (error) {
      if (!isOfOneRow(error)) throw error
      refusals += 1
      const half = some.length >> 1
      if (half === 0) refused(some[0] as Item, error)
      else open.push(some.slice(half), some.slice(0, half))
    }
  }
}

/** Does something that is never committed, to see whether it would be refused. */
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
