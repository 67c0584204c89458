// In which state a connection goes back to its pool: the next user must not find another one's transaction on it.

import { Pool } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Database, type DatabaseOptions } from '../../src/stores/postgres/connection/database.ts'
import { statement } from '../../src/stores/postgres/dialect.ts'
import type { Execution, Row } from '../../src/stores/postgres/execution.ts'
import { freshSchema } from '../support/postgres-shared.ts'

const look = statement('get.read', 'select 1 as one')
const begin = statement('find.read', 'begin')

const read = (x: Execution): Promise<readonly Row[]> => x.execute(look, [])

/** A database of one connection, which is that of the user before. */
async function rig(options: Partial<DatabaseOptions> & { readonly pipeline?: boolean } = {}): Promise<Database> {
  const { pipeline = true, ...own } = options
  const { url } = await freshSchema()
  const pool = new Pool({ connectionString: url, max: 1, pipeline })
  onTestFinished(() => pool.end())
  return new Database({
    pool,
    settings: null,
    theirSettings: null,
    ourSettings: 'select 1',
    random: Math.random,
    storageMs: 5_000,
    monotonic: () => performance.now(),
    onHints: () => undefined,
    ...own,
  })
}

describe('a connection that is given back', () => {
  it.each([true, false])(
    'is in no transaction if that was begun and could not be lent; pipeline: %s',
    async (pipeline) => {
      // As when an operator cancels what follows the BEGIN: the database has answered, so the connection is sound.
      const database = await rig({ pipeline, theirSettings: 'select 1 / 0' })
      await expect(database.lend(async () => 1)).rejects.toMatchObject({ cause: { code: '22012' } })
      expect(await database.alone(read)).toMatchObject([{ one: 1 }])
    },
  )

  it('is not used again if it is in the middle of a transaction, whichever user has forgotten that', async () => {
    const database = await rig()
    await database.alone((x) => x.execute(begin, []))
    await expect(database.alone((x) => x.execute(statement('get.read', 'select 1 / 0'), []))).rejects.toThrow(/zero/)
    expect(await database.alone(read)).toMatchObject([{ one: 1 }])
  })
})
