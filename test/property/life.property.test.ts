// Everything that can befall a run, in every order. Up to four are tried in all orders, on the memory store; all eight, and
// longer and stranger lives, by chance, on SQLite too.

import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import type { JournalEntry } from 'holdfast'
import { openSqliteStore } from 'holdfast/sqlite'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { faults, fates, Life, type Fate, type LifeOptions } from '../support/life.ts'

const memory: LifeOptions['makeStore'] = (clock) => new MemoryStore({ clock })
const sqlite: LifeOptions['makeStore'] = (clock) => openSqliteStore({ path: ':memory:', clock })

async function live(suffered: readonly Fate[], options: LifeOptions): Promise<void> {
  const life = await Life.begin(options)
  try {
    for (const fate of suffered) await life.suffer(fate)
    await life.heal()
    const journal = await life.journal()
    // What was under way when its process died is attempted once more.
    const isBefore = ({ kind, at }: JournalEntry): boolean => kind === 'begun' && at.getTime() <= life.lateFrom
    const begun = new Set(journal.filter(isBefore).map(({ name }) => name))
    const late = life.late.filter((step) => !begun.has(step))
    const wrong = [...faults(journal, await life.status(), suffered), ...late.map((step) => `${step} begun late`)]
    const story = journal.map(({ kind, name }) => (name === null ? kind : `${kind} ${name}`)).join(', ')
    expect(wrong, `After ${suffered.join(', ')}: ${story}`).toEqual([])
  } finally {
    await life.close()
  }
}

/** Every order of every choice of so many. */
function orders<Item>(items: readonly Item[], count: number): Item[][] {
  if (count === 0) return [[]]
  return items.flatMap((item) =>
    orders(
      items.filter((other) => other !== item),
      count - 1,
    ).map((rest) => [item, ...rest]),
  )
}

const chance = Number(process.env['LIFE_RUNS'] ?? 1)

describe('PEERS 22 SW-P2 PQ-P1 HE-P1 a run comes to exactly one end, and undoes what it did once or not at all', () => {
  it.each([1, 2, 3, 4])('whatever %i of eight fates befall it, in every order', { timeout: 400_000 }, async (count) => {
    for (const suffered of orders(fates, count)) {
      const heeds = suffered.length % 2 === 0
      await live(['complete', ...suffered], { makeStore: memory, heeds })
    }
  })

  it('whatever order all eight come in', { timeout: 400_000 }, async () => {
    const order = fc.shuffledSubarray([...fates], { minLength: fates.length })
    await fc.assert(
      fc.asyncProperty(order, fc.boolean(), fc.integer({ min: 0, max: 4 }), (suffered, heeds, stubborn) =>
        live(suffered, { makeStore: memory, heeds, stubborn }),
      ),
      { numRuns: 200 * chance },
    )
  })

  it.each([
    ['memory', memory, 200],
    ['sqlite', sqlite, 60],
  ] as const)('over long lives on the %s store', { timeout: 400_000 }, async (_name, makeStore, numRuns) => {
    const fate = fc.constantFrom<Fate>(...fates, 'complete', 'complete', 'wait', 'cancel now', 'retry')
    await fc.assert(
      fc.asyncProperty(
        fc.array(fate, { minLength: 4, maxLength: 16 }),
        fc.boolean(),
        fc.integer({ min: 0, max: 4 }),
        (suffered, heeds, stubborn) => live(suffered, { makeStore, heeds, stubborn }),
      ),
      { numRuns: numRuns * chance },
    )
  })
})
