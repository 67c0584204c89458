// The store inside a transaction of a user, over a handle that the test answers for.

import { expect, it } from 'vitest'
import type { Dialect, Statement } from '../../../../src/stores/postgres/dialect.ts'
import type { Execution } from '../../../../src/stores/postgres/execution.ts'
import { PostgresWithin, type WithinParts } from '../../../../src/stores/postgres/within.ts'

const statement = (text: string): Statement => ({ text, name: text, plan: [], writes: false })
const refused = (code: string): Error => Object.assign(new Error(code), { code })

it('tells why statements that were sent together have failed, and not what followed from it', async () => {
  const query = (text: string): Promise<never> => Promise.reject(refused(text === 'first' ? '40001' : '25P02'))
  const deep = async (x: Execution): Promise<unknown> => {
    const answer = await (async () => x.execute(statement('first'), []))()
    return answer
  }
  const load = (x: Execution): Promise<never> =>
    Promise.all([deep(x), x.execute(statement('second'), [])]) as unknown as Promise<never>
  const parts = { dialect: {} as Dialect, reading: { load } } as unknown as WithinParts
  const within = new PostgresWithin(parts, { query }, null)
  await expect(within.load([])).rejects.toMatchObject({ cause: { code: '40001' } })
})
