// However many rows of a batch a policy refuses, all others go through, and the work is bounded.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../../src/core/errors/error.ts'
import { withoutRefused } from '../../../../../src/stores/postgres/commit/refused-items.ts'

const count = 500
const items = Array.from({ length: count }, (_, index) => index)

/** What becomes of a batch of which these are refused. */
async function spared(isRefused: (item: number) => boolean) {
  const done: number[] = []
  const refused: number[] = []
  let statements = 0
  await withoutRefused(
    items,
    async (some) => {
      statements += 1
      if (some.some(isRefused)) throw new HoldfastError('STORE_REFUSED', 'No.', { details: { row: true } })
      done.push(...some)
    },
    (item) => refused.push(item),
  )
  return { done: done.toSorted((a, b) => a - b), refused: refused.toSorted((a, b) => a - b), statements }
}

describe('a batch of which a policy refuses some rows', () => {
  it.each([
    ['none', () => false, 1],
    ['one', (item: number) => item === 321, 20],
    ['ten', (item: number) => item % 50 === 7, 160],
    ['a half', (item: number) => item % 2 === 0, 2 * count],
    ['all', () => true, 2 * count],
  ])('%s of 500: all others go through', async (_share, isRefused, most) => {
    const { done, refused, statements } = await spared(isRefused)
    expect(refused).toEqual(items.filter(isRefused))
    expect(done).toEqual(items.filter((item) => !isRefused(item)))
    expect(statements).toBeLessThanOrEqual(most)
  })

  it('whatever else is said of it is passed on', async () => {
    const gone = new HoldfastError('STORE_UNAVAILABLE', 'Away.')
    await expect(
      withoutRefused(
        items,
        () => Promise.reject(gone),
        () => undefined,
      ),
    ).rejects.toBe(gone)
  })
})
