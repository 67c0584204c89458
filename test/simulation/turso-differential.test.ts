// The memory store is the oracle for Turso, too: the same operations in the same order have the same answers and leave the
// same state. 500 of them, or 3,000 in worlds of 500 in `npm run test:turso`.

import { expect, it } from 'vitest'
import { openTursoStore } from '../../src/stores/turso/index.ts'
import { missingUnlessFull } from '../contract/full.ts'
import { Operations } from '../support/operations.ts'
import { SideBySide } from '../support/side-by-side.ts'

const perWorld = 500
const compareEvery = 100

const worlds = missingUnlessFull === undefined ? [1, 2, 3, 4, 5, 6] : [1]

it.each(worlds)(
  'HE-X1 Turso answers what the memory store answers, and holds what it holds, in world %i',
  { timeout: 120_000 },
  async (world) => {
    const pair = await SideBySide.open((clock) => openTursoStore({ path: ':memory:', clock }))
    try {
      const operations = new Operations(world)
      for (let count = 1; count <= perWorld; count += 1) {
        await pair.apply(operations.next(pair.view))
        if (count % compareEvery === 0) await pair.compareAll()
      }
      await expect(pair.compareWholeFeeds()).resolves.toBeUndefined()
    } finally {
      await pair.close()
    }
  },
)
