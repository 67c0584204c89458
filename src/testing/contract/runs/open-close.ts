// Opening and closing.

import assert from 'node:assert/strict'
import { isHoldfastError } from '../../../core/errors/error.ts'
import type { Store, StoreSecrets } from '../../../store.ts'
import { atOnce } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'

export const openCloseCases: readonly ContractCase[] = [
  {
    name: 'migrating again, and from many places at once, harms nothing',
    async run({ store, start, run }) {
      const before = await start()
      await atOnce(5, () => store.migrate())
      await store.migrate()
      assert.deepEqual(await run(before.id), before)
    },
  },
  {
    name: 'the key of completion tokens, if the store has one, is long and stays what it is',
    async run({ store, start }) {
      const tokenKey = async (): Promise<string | null> =>
        'tokenKey' in store ? (store as Store & StoreSecrets).tokenKey() : null
      const key = await tokenKey()
      if (key !== null) assert.ok(key.length >= 32)
      await start()
      await store.migrate()
      assert.equal(await tokenKey(), key)
    },
  },
  {
    name: 'a closed store refuses to work and may be closed again',
    async run({ store, start, newRun, claim }) {
      const { id } = await start()
      await store.close()
      await store.close()
      const closed = (error: unknown): boolean => isHoldfastError(error, 'CLOSED')
      await assert.rejects(store.start([newRun()]), closed)
      await assert.rejects(claim(), closed)
      await assert.rejects(store.get([id]), closed)
    },
  },
]
