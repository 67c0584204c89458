// An instance that is looked for by its id as if that were a business key: nothing is found, and the log says why.

import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast } from 'holdfast'
import { orderOf } from './order.ts'

describe('the id of an instance as a key', () => {
  it.each(['find', 'signal'])('finds nothing with %s, and is explained once', async (call) => {
    const warnings: string[] = []
    const logger = {
      debug: () => undefined,
      info: () => undefined,
      warn: (message: string) => void warnings.push(message),
      error: () => undefined,
    }
    const holdfast = await createHoldfast({ store: 'memory:', workflows: [orderOf()], logger })
    onTestFinished(() => holdfast.close())
    await holdfast.executeDynamic('order', { type: 'Create', orderId: '42' })
    for (let times = 0; times < 2; times += 1) {
      if (call === 'find') expect(await holdfast.find({ type: 'order', key: '42' })).toMatchObject({ runs: [] })
      else {
        const sent = await holdfast.signal({ type: 'order', key: '42' }, 'hello')
        expect(sent.outcome).toBe('target-not-found')
      }
    }
    expect(warnings.filter((text) => text.includes('find({ type, idempotencyKey: "42" })'))).toHaveLength(1)
    expect((await holdfast.find({ type: 'order', idempotencyKey: '42' })).runs).toHaveLength(1)
  })
})
