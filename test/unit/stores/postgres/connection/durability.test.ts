// Whether the database keeps what it has answered as committed, and what is said if it does not.

import { describe, expect, it } from 'vitest'
import { createRecordingLogger } from '../../../../../src/testing/logger.ts'
import type { PoolLike } from '../../../../../src/stores/postgres/connection/database.ts'
import { checkDurability } from '../../../../../src/stores/postgres/connection/durability.ts'
import { sharedPostgres } from '../../../../support/postgres-shared.ts'
import { openPool } from '../database.ts'

/** A server that answers so when it is asked for its settings. */
function server(
  answer: Readonly<Record<string, string | boolean | null>> | Error,
): PoolLike & { readonly asked: () => number } {
  let asked = 0
  return {
    asked: () => asked,
    connect: () =>
      Promise.resolve({
        query: () => {
          asked += 1
          return answer instanceof Error
            ? Promise.reject(answer)
            : Promise.resolve({ rows: [answer], command: 'SELECT' })
        },
        release: () => undefined,
      }),
    end: () => Promise.resolve(),
  }
}

const safe = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' }

describe('a database that keeps what it has answered', () => {
  it.each(['on', 'local', 'remote_write', 'remote_apply'])(
    'is taken without a word: synchronous_commit = %s',
    async (level) => {
      const logger = createRecordingLogger()
      await checkDurability(server({ ...safe, synchronous_commit: level }), { unsafe: 'refuse', logger })
      expect(logger.lines).toEqual([])
    },
  )

  it('may hide its settings, or not know them', async () => {
    const logger = createRecordingLogger()
    const hidden = Object.assign(new Error('permission denied to examine "fsync"'), { code: '42501' })
    await checkDurability(server({ fsync: null, full_page_writes: null, synchronous_commit: null }), { logger })
    await checkDurability(server(hidden), { unsafe: 'refuse', logger })
    expect(logger.lines).toEqual([])
  })
})

describe('a database that writes no files of its own', () => {
  it.each([
    { neon: '6f1f8ef1', aurora: false },
    { neon: null, aurora: true },
  ])('is asked only how it commits: %j', async (kind) => {
    const logger = createRecordingLogger()
    const managed = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'on', ...kind }
    await checkDurability(server(managed), { unsafe: 'refuse', logger })
    const hasty = checkDurability(server({ ...managed, synchronous_commit: 'off' }), { unsafe: 'refuse', logger })
    await expect(hasty).rejects.toMatchObject({ details: { settings: { synchronous_commit: 'off' } } })
  })
})

describe('a database that loses what it has answered', () => {
  it.each(['fsync', 'full_page_writes', 'synchronous_commit'])('is warned of: %s = off', async (setting) => {
    const logger = createRecordingLogger()
    await checkDurability(server({ ...safe, [setting]: 'off' }), { logger })
    expect(logger.lines).toEqual([
      {
        level: 'warn',
        message: expect.stringContaining(`With ${setting} = off, a`) as string,
        details: { settings: { [setting]: 'off' } },
      },
    ])
    expect(logger.lines[0]?.message).toMatch(/Set \w+ = on/)
  })

  it('is refused if that is wanted, with all that is wrong', async () => {
    const logger = createRecordingLogger()
    const refused = checkDurability(server({ ...safe, fsync: 'off', synchronous_commit: 'off' }), {
      unsafe: 'refuse',
      logger,
    })
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      details: { settings: { fsync: 'off', synchronous_commit: 'off' } },
    })
    expect(logger.lines).toEqual([])
  })

  it('is not even asked if anything is allowed', async () => {
    const pool = server({ ...safe, fsync: 'off' })
    await checkDurability(pool, { unsafe: 'allow', logger: createRecordingLogger() })
    expect(pool.asked()).toBe(0)
    const unsafe = 'ignore' as 'allow'
    await expect(checkDurability(pool, { unsafe, logger: createRecordingLogger() })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })

  it('is found out by what holds for its connections, not by its configuration', async () => {
    const url = new URL(await sharedPostgres())
    url.searchParams.set('options', '-c synchronous_commit=off')
    const refused = checkDurability(openPool(url.href), { unsafe: 'refuse', logger: createRecordingLogger() })
    await expect(refused).rejects.toMatchObject({ details: { settings: { synchronous_commit: 'off' } } })
  })

  it('that cannot be asked at all is unavailable', async () => {
    const broken = server(new Error('Connection terminated'))
    await expect(checkDurability(broken, { logger: createRecordingLogger() })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
  })
})
