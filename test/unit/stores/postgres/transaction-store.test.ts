// The store inside a transaction of a user, over a handle that the test answers for.

import { expect, it } from 'vitest'
import type { Dialect, Statement } from '../../../../src/stores/postgres/dialect.ts'
import type { Execution } from '../../../../src/stores/postgres/execution.ts'
import {
  PostgresTransactionStore,
  type TransactionStoreParts,
} from '../../../../src/stores/postgres/transaction-store.ts'

const statement = (text: string): Statement => ({ text, name: text, plan: [], writes: false })
const refused = (code: string): Error => Object.assign(new Error(code), { code })

it('says why statements that were sent together have failed, and not what followed from it', async () => {
  const query = (text: string): Promise<never> => Promise.reject(refused(text === 'first' ? '40001' : '25P02'))
  const deep = async (x: Execution): Promise<unknown> => {
    const answer = await (async () => x.execute(statement('first'), []))()
    return answer
  }
  const load = (x: Execution): Promise<never> =>
    Promise.all([deep(x), x.execute(statement('second'), [])]) as unknown as Promise<never>
  const parts = { dialect: {} as Dialect, readQueries: { load } } as unknown as TransactionStoreParts
  const within = new PostgresTransactionStore(parts, { query }, null, () => undefined)
  await expect(within.load([])).rejects.toMatchObject({ cause: { code: '40001' } })
})

it.each(['public, pg_catalog', '"$user", "pg_catalog"', 'a,b,PG_CATALOG'])(
  'sends nothing in a transaction of the user that searches %s: there, operators of others come before those of Postgres',
  async (path) => {
    const sent: string[] = []
    const query = async (text: string): Promise<{ path: string; mark: string }[]> => {
      sent.push(text)
      return [{ path, mark: 'open' }]
    }
    const load = async (x: Execution): Promise<never[]> => {
      await x.execute(statement('ours'), [])
      return []
    }
    const parts = { dialect: {} as Dialect, readQueries: { load } } as unknown as TransactionStoreParts
    const refusal = { code: 'INVALID_OPTION', details: { searchPath: path } }
    const within = new PostgresTransactionStore(parts, { query }, null)
    for (let time = 0; time < 2; time += 1) await expect(within.load([])).rejects.toMatchObject(refusal)
    await expect(within.assertMarked()).rejects.toMatchObject(refusal)
    expect(sent.filter((text) => text.includes('ours'))).toEqual([])
    // A transaction of ours searches what we want.
    await new PostgresTransactionStore(parts, { query }, null, () => undefined).load([])
    expect(sent.at(-1)).toBe('ours')
  },
)

it('asks for the search path of a user once for each handle, and not at all if that came with something else', async () => {
  const sent: string[] = []
  const query = async (text: string): Promise<{ path: string; mark: string }[]> => {
    sent.push(text)
    return [{ path: '"$user", public', mark: 'open' }]
  }
  const load = async (x: Execution): Promise<never[]> => {
    await x.execute(statement('ours'), [])
    return []
  }
  const parts = { dialect: {} as Dialect, readQueries: { load } } as unknown as TransactionStoreParts
  const within = new PostgresTransactionStore(parts, { query }, null)
  await within.load([])
  await within.load([])
  expect(sent).toHaveLength(3)
  const marked = new PostgresTransactionStore(parts, { query }, null)
  await marked.assertMarked()
  await marked.load([])
  expect(sent).toHaveLength(5)
})
