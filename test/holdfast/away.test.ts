// A store that is away for a moment: a caller that waits for a result goes on waiting.

import { expect, it } from 'vitest'
import { workflow, type Store } from 'holdfast'
import { HoldfastError } from '../../src/core/errors/error.ts'
import { memoryStore, open, openWorking } from './open.ts'

const late = workflow('away.late', async (ctx) => {
  await ctx.sleep('50 ms')
  return 'here'
})

it('a result is waited for also when the store does not answer at first', async () => {
  const store = memoryStore()
  await openWorking([late], { store })
  let refusals = 2
  const away: Store = new Proxy<Store>(store, {
    get(target, key) {
      if (key !== 'get' || refusals === 0) return Reflect.get(target, key, target) as unknown
      refusals -= 1
      return () => Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'The store is away.'))
    },
  })
  const elsewhere = await open({ store: away, workflows: [late] })
  const run = await elsewhere.start(late)
  expect(await run.result({ timeout: '15 s' })).toBe('here')
  expect(refusals).toBe(0)
})
