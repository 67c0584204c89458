// A promise of `ctx` knows whether anybody has asked what comes of it, in whatever way, and is otherwise as any other.

import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { CallPromise } from '../../../../src/functions/api/call-promise.ts'

function pending(): { readonly promise: CallPromise<number>; readonly fulfil: (value: number) => void } {
  let fulfil = (_value: number): void => undefined
  const promise = new CallPromise<number>((resolve) => (fulfil = resolve))
  return { promise, fulfil }
}

const never = new Promise<never>(() => undefined)

const asking: Readonly<Record<string, (promise: Promise<number>) => unknown>> = {
  'an await': async (promise) => {
    await promise
  },
  'a call of then': (promise) => promise.then((value) => value),
  'a call of catch': (promise) => promise.catch(() => 0),
  'a call of finally': (promise) => promise.finally(() => undefined),
  'Promise.all': (promise) => Promise.all([promise, Promise.resolve(2)]),
  'Promise.allSettled': (promise) => Promise.allSettled([promise]),
  'Promise.race': (promise) => Promise.race([promise, never]),
  'Promise.any': (promise) => Promise.any([promise, never]),
  'Promise.resolve': (promise) => Promise.resolve(promise),
  'an async function that returns it': async (promise) => promise,
  'a promise that is resolved with it': (promise) => new Promise((resolve) => resolve(promise)),
}

describe('a promise of a call', () => {
  it.each(Object.keys(asking))('is heard by %s', async (way) => {
    const { promise, fulfil } = pending()
    const asked = asking[way]?.(promise)
    await Promise.resolve()
    expect(promise.isHeard).toBe(true)
    fulfil(1)
    await asked
  })

  it('is not heard by who only looks at it, nor when it is silenced', async () => {
    const { promise, fulfil } = pending()
    expect(promise instanceof Promise).toBe(true)
    expect(inspect(promise)).toContain('pending')
    promise.silence()
    fulfil(1)
    await Promise.resolve()
    expect(promise.isHeard).toBe(false)
  })

  it('that was heard stays heard when it is silenced', () => {
    const { promise } = pending()
    void promise.then(() => undefined)
    promise.silence()
    expect(promise.isHeard).toBe(true)
  })

  it('takes as many microtasks as a plain one, and what follows from it is plain', async () => {
    const order: string[] = []
    const awaiting = async (name: string, promise: Promise<unknown>): Promise<void> => {
      await promise
      order.push(name)
    }
    let fulfilPlain = (): void => undefined
    const plain = new Promise<void>((resolve) => (fulfilPlain = resolve))
    const { promise, fulfil } = pending()
    const all = [awaiting('call', promise), awaiting('plain', plain), awaiting('call again', promise)]
    fulfil(1)
    fulfilPlain()
    await Promise.all(all)
    expect(order).toEqual(['call', 'call again', 'plain'])
    expect(promise.then() instanceof CallPromise).toBe(false)
    expect(Promise.resolve(promise)).toBe(promise)
  })
})
