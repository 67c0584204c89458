// The memory store is the oracle: whatever is done to it and to SQLite in the same order has the same answers and leaves the
// same state. 20,000 operations, drawn at random from what the oracle holds and then bent, in worlds of 500 each; more, if
// some documented answer has not come by then.
//
// A failure names its world. `WORLD=<number> npx vitest run test/simulation/differential.test.ts` does that one again.

import { expect, it } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { Operations, type Operation } from '../support/operations.ts'
import { Coverage, outcomesOf } from '../support/outcomes.ts'
import { SideBySide, type TestClock } from '../support/side-by-side.ts'

const perWorld = 500
const wanted = 20_000
/** A table that is not complete by then has a cell that no operation leads to. */
const most = 2 * wanted
const compareEvery = 100
/** So many more are made of stores that are closed; they do not count. */
const whenClosed = 100

const sqlite = (clock: TestClock) => openSqliteStore({ path: ':memory:', driver: 'libsql', clock })

/** Plays a world, and answers how many calls each store got. */
async function live(world: number, coverage: Coverage): Promise<number> {
  const pair = await SideBySide.open(sqlite)
  const operations = new Operations(world)
  let latest: Operation | null = null
  let [count, calls] = [0, 0]
  const apply = async (operation: Operation): Promise<void> => {
    latest = operation
    const { answer, rows } = await pair.apply(operation)
    if (operation.method !== 'advance') calls += 1
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
    return calls - whenClosed
  } catch (error) {
    const replay = `WORLD=${world} npx vitest run test/simulation/differential.test.ts`
    const told = `World ${world}, operation ${count}: ${JSON.stringify(latest)}\nDo it again: ${replay}`
    throw new Error(`${(error as Error).message}\n\n${told}`, { cause: error })
  } finally {
    await pair.close()
  }
}

const chosen = process.env['WORLD']

it(
  'SW-S6 PQ-S3 HE-X1 SQLite answers what the memory store answers, and holds what it holds',
  { timeout: 300_000 },
  async () => {
    const coverage = new Coverage()
    if (chosen !== undefined) return void (await live(Number(chosen), coverage))
    const begun = performance.now()
    let done = 0
    for (let world = 1; done < wanted || (done < most && coverage.missing.length > 0); world += 1) {
      await live(world, coverage)
      done += perWorld
    }
    expect(
      coverage.missing,
      `Answers that never came in ${done} operations. All that came:\n${coverage.table}`,
    ).toEqual([])
    if (process.env['TABLE'] !== undefined) console.log(coverage.table, done, performance.now() - begun)
  },
)
