// What an exchange relies on: a topic that it asked for and did not lock is not read. It went after the transaction had made
// sure that it is there, and what began anew under its name is locked by others.

import { describe, expect, it } from 'vitest'
import type { TopicRules } from '../../../../../src/core/model/topic.ts'
import type { Dialect, Statement } from '../../../../../src/stores/postgres/dialect.ts'
import type { Row } from '../../../../../src/stores/postgres/execution.ts'
import { createExchangeRunner } from '../../../../../src/stores/postgres/exchange/exchange.ts'
import { LockRequest } from '../../../../../src/stores/postgres/exchange/lock-request.ts'
import { PostgresUnitOfWork } from '../../../../../src/stores/postgres/exchange/unit-of-work.ts'

const dialect: Dialect = {
  schema: 'h',
  now: 'now',
  feedNumber: 'feed',
  shards: 1,
  skipLocked: 'skip locked',
  isSpread: false,
}

const queue: TopicRules = { name: 'jobs', delivery: 'one', retainMs: 0 }

/** An exchange of a run that comes to a queue whose row it gets only so many locks later; and how often it decided. */
function coming(gone: number, inUserTransaction: boolean) {
  let locks = 0
  let decided = 0
  const execute = async ({ plan, text }: Statement): Promise<readonly Row[]> => {
    const isLock = plan.includes('commit.lock-topics') && text.includes('for no key update')
    if (!isLock) return []
    locks += 1
    return locks > gone ? [{ name: queue.name, position: '4', retain_ms: null }] : []
  }
  const lockRequest = new LockRequest()
  lockRequest.watch('00000000-0000-0000-0000-000000000001', { kind: 'topic', ...queue })
  const perform = () =>
    createExchangeRunner(dialect, { among: () => new Set() }).perform(
      { execute, hints: [] },
      {
        end: 'commit',
        lockRequest,
        inUserTransaction,
        look: async () => ({ now: 1 }),
        lend: (lockedRows, { now }, crowds) => new PostgresUnitOfWork(lockedRows, now, crowds),
        decide: () => (decided += 1),
      },
    )
  return { perform, locks: () => locks, decided: () => decided }
}

describe('an exchange that has not locked a topic', () => {
  it('decides nothing, and begins again in another transaction', async () => {
    const { perform, decided } = coming(1, false)
    await expect(perform()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { code: '40001' } })
    expect(decided()).toBe(0)
    expect(await perform()).toBe(1)
  })

  it('in the transaction of a user locks the topic that has begun anew, before it decides', async () => {
    const { perform, locks, decided } = coming(2, true)
    expect(await perform()).toBe(1)
    expect([locks(), decided()]).toEqual([3, 1])
  })
})
