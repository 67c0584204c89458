// A look for unknown leases that was not made is no look that found none. The database is scripted.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../../src/core/errors/error.ts'
import type { Statement } from '../../../../../src/stores/postgres/dialect.ts'
import type { Execution, Transactions } from '../../../../../src/stores/postgres/execution.ts'
import { createSessionQueries } from '../../../../../src/stores/postgres/claim/sessions.ts'

/** A database in which a look for unknown leases takes so long each time; null if it is given up. */
function setUp(...looks: readonly (number | null)[]) {
  let now = 0
  const left = [...looks]
  const execute = ({ plan }: Statement): Promise<readonly object[]> => {
    if (!plan.includes('beat.unknown')) return Promise.resolve([{ alive: true, now, min_client: 0 }])
    const ms = left.shift()
    if (ms === null || ms === undefined) return Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'Given up.'))
    now += ms
    return Promise.resolve([{ what: 'unknown', id: 'a', token: 1 }])
  }
  const alone = (work: (x: Execution) => Promise<unknown>): Promise<unknown> =>
    work({ execute } as unknown as Execution)
  const dialect = {
    schema: 's',
    now: '0',
    feedNumber: '',
    shards: 1,
    skipLocked: 'skip locked',
    isSpread: false,
  } as const
  const store = createSessionQueries(dialect, () => now)
  return async (seeksUnknownLeases = true) => {
    const beaten = await store.beat({ alone } as unknown as Transactions, {
      session: 'me',
      leaseMs: 1_000,
      seeksUnknownLeases,
    })
    return [beaten.unknownLeases.length, beaten.unknownLeasesSkipped]
  }
}

describe('a beat that seeks unknown leases', () => {
  it('says so if it did not look, because such looks took long and rest now', async () => {
    const beat = setUp(2_000, 2_000)
    expect([await beat(), await beat(), await beat()]).toEqual([
      [1, undefined],
      [1, undefined],
      [0, true],
    ])
  })

  it('says so if the look was given up', async () => {
    const beat = setUp(null, 0)
    expect([await beat(), await beat()]).toEqual([
      [0, true],
      [1, undefined],
    ])
  })

  it('says nothing of that if it was not asked to look', async () => {
    expect(await setUp()(false)).toEqual([0, undefined])
  })
})
