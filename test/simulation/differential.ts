// The memory store is the oracle: whatever is done to it and to another store in the same order has the same answers and
// leaves the same state. Operations are drawn at random from what the oracle holds and then bent, in worlds of 500 each.

import type { Store, StoreAdmin } from '../../src/store.ts'
import type { Operation } from '../support/operation.ts'
import { Operations } from '../support/operations.ts'
import { Coverage, outcomesOf } from '../support/outcomes.ts'
import { SideBySide, type FeedOrder, type TestClock } from '../support/side-by-side.ts'

export interface Differential {
  /** Opens an empty store that lives by this clock. */
  readonly open: (clock: TestClock) => Promise<Store & StoreAdmin>
  /** How many operations there are. */
  readonly wanted: number
  /** So many at most, until every documented answer has come; as many as are wanted if it need not. */
  readonly most?: number
  readonly shards?: number
  readonly feedOrder?: FeedOrder
  /** The file that does it, for those who want to do it again. */
  readonly file: string
}

const perWorld = 500
const compareEvery = 100
/** So many more are made of stores that are closed; they do not count. */
const whenClosed = 100

/** Compares a store with the oracle. With WORLD in the environment, in that one world only. */
export async function compareWithOracle(differential: Differential): Promise<void> {
  const { wanted, most = wanted } = differential
  const coverage = new Coverage()
  const chosen = process.env['WORLD']
  if (chosen !== undefined) return live(Number(chosen), differential, coverage)
  const begun = performance.now()
  let done = 0
  for (let world = 1; done < wanted || (done < most && coverage.missing.length > 0); world += 1) {
    await live(world, differential, coverage)
    done += perWorld
  }
  if (process.env['TABLE'] !== undefined) console.log(coverage.table, done, performance.now() - begun)
  if (most === wanted || coverage.missing.length === 0) return
  const missing = coverage.missing.join('\n')
  throw new Error(`Answers that never came in ${done} operations:\n${missing}\n\nAll that came:\n${coverage.table}`)
}

/** Plays a world. */
async function live(world: number, { open, shards, feedOrder, file }: Differential, coverage: Coverage): Promise<void> {
  const pair = await SideBySide.open(open, feedOrder)
  const operations = new Operations(world, { shards: shards ?? 1, isOrdered: feedOrder !== 'by run' })
  let latest: Operation | null = null
  let count = 0
  const apply = async (operation: Operation): Promise<void> => {
    latest = operation
    const { answer, rows } = await pair.apply(operation)
    coverage.note(operation.method, outcomesOf(operation, answer, rows))
  }
  try {
    for (; count < perWorld; count += 1) {
      await apply(operations.next(pair.view))
      if ((count + 1) % compareEvery === 0) await pair.compareAll()
    }
    await pair.compareWholeFeeds()
    const { view } = pair
    await pair.close()
    for (; count < perWorld + whenClosed; count += 1) await apply(operations.next(view))
  } catch (error) {
    const operations = `World ${world}, operation ${count}: ${JSON.stringify(latest)}\nDo it again: WORLD=${world} npx vitest run ${file}`
    throw new Error(`${(error as Error).message}\n\n${operations}`, { cause: error })
  } finally {
    await pair.close()
  }
}
