// Inputs that the store does not answer for, because a transaction that nobody ends has locked the row: their callers get an answer.

import { describe, expect, it } from 'vitest'
import type { Committed, Store } from '../../../src/store.ts'
import { changed, virtualWorld } from '../virtual-world.ts'
import { orderOf } from './order.ts'

const note = (text: string) => ({ type: 'Note', orderId: '1', text }) as const

async function world() {
  const { clock, open, after, store } = virtualWorld()
  const order = orderOf()
  const lock = { isHeld: false, sent: 0 }
  // What a database answers about a row that another transaction has locked, after it has waited for it.
  const locked: Store['commit'] = async (transitions, ...rest) => {
    if (!lock.isHeld) return store.commit(transitions, ...rest)
    lock.sent += 1
    await new Promise<void>((resolve) => void clock.after(500, resolve))
    return transitions.map((): Committed => ({ outcome: 'refused', reason: 'busy' }))
  }
  const holdfast = await open({ workflows: [order], store: changed(store, { commit: locked }) })
  await after(holdfast.execute(order, { type: 'Create', orderId: '1' }))
  return { clock, after, order, holdfast, lock }
}

describe('execute for an instance whose row is locked', () => {
  it('rejects when its time is over, and an input that was not on its way is not sent any more', async () => {
    const { clock, after, order, holdfast, lock } = await world()
    lock.isHeld = true
    const errorOf = (input: ReturnType<typeof note>, commandId?: string): Promise<unknown> =>
      holdfast.execute(order, input, { timeout: '1s', ...(commandId === undefined ? {} : { commandId }) }).then(
        () => null,
        (error: unknown) => error,
      )
    const first = errorOf(note('a'), 'a')
    await clock.advance(100)
    const second = errorOf(note('b'))
    const patient = holdfast.execute(order, note('c'), { timeout: '10 min' })
    expect(await after(first)).toMatchObject({
      code: 'EXECUTE_TIMEOUT',
      message: expect.stringContaining('commandId "a"') as string,
      details: { type: 'order', id: '1', commandId: 'a' },
    })
    expect(await after(second)).toMatchObject({
      code: 'EXECUTE_TIMEOUT',
      message: expect.stringContaining('Look at its state') as string,
    })
    lock.isHeld = false
    expect(await after(patient)).toMatchObject({ outcome: 'accepted' })
    expect(await after(holdfast.execute(order, note('not again'), { commandId: 'a' }))).toMatchObject({
      events: [{ text: 'a' }],
    })
    expect(await after(holdfast.state(order, '1'))).toMatchObject({ notes: ['a', 'c'] })
    expect(lock.sent).toBeGreaterThan(1)
  })

  it('waits as long as it may, for a row that is free again', async () => {
    const { clock, after, order, holdfast, lock } = await world()
    lock.isHeld = true
    const executed = holdfast.execute(order, note('a'))
    await clock.advance('30s')
    lock.isHeld = false
    expect(await after(executed)).toMatchObject({ outcome: 'accepted' })
    await clock.advance('5 min')
    expect(await after(holdfast.state(order, '1'))).toMatchObject({ notes: ['a'] })
  })
})
