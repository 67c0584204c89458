// Until when leases are valid is reported by the process that holds them, and never too late: what is judged by it must not
// depend on when the process came to say so.

import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMemoryStore, type Store } from '../../src/index.ts'
import { Tenures, type TenureNews } from './tenures.ts'

const leaseMs = 2_000
let news: TenureNews[]
let tenures: Tenures
let inner: Store
let store: Store

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: 10_000 })
  news = []
  tenures = new Tenures({ worker: 'w1.1', leaseMs, report: (one) => news.push(one) })
  inner = createMemoryStore()
  store = tenures.watch(inner)
})
afterEach(() => void vi.useRealTimers())

const reported = (): readonly unknown[] => news.splice(0).map(({ tenure, until }) => [tenure, until])

it('counts a lease from the moment at which a heartbeat was sent, once it is answered', async () => {
  await store.beat({ session: 'one', leaseMs })
  expect(reported()).toEqual([
    ['w1.1/1', 10_000],
    ['w1.1/1', 12_000],
  ])
  vi.setSystemTime(11_000)
  const beat = store.beat({ session: 'one', leaseMs })
  vi.setSystemTime(11_300)
  await beat
  expect(reported()).toEqual([['w1.1/1', 13_000]])
  vi.spyOn(inner, 'beat').mockRejectedValue(new Error('away'))
  await expect(store.beat({ session: 'one', leaseMs })).rejects.toThrow('away')
  expect(reported()).toEqual([])
  expect(tenures.current).toBe('w1.1/1')
})

it('who stood still for too long had lost his leases then, and not when he says so', async () => {
  await store.beat({ session: 'one', leaseMs })
  reported()
  vi.setSystemTime(17_000)
  await store.beat({ session: 'one', leaseMs, end: true })
  expect(reported()).toEqual([['w1.1/1', 12_000]])
  await store.beat({ session: 'two', leaseMs })
  expect(reported()).toEqual([
    ['w1.1/2', 17_000],
    ['w1.1/2', 19_000],
  ])
  expect(tenures.current).toBe('w1.1/2')
})

it('a session that learns that it is dead has no longer lease by that', async () => {
  await store.beat({ session: 'one', leaseMs })
  await inner.beat({ session: 'one', leaseMs, end: true })
  reported()
  vi.setSystemTime(11_000)
  expect((await store.beat({ session: 'one', leaseMs })).alive).toBe(false)
  expect(reported()).toEqual([])
})

it('who leaves has no lease from the moment at which he gives back; who gives back a stray goes on', async () => {
  await store.beat({ session: 'one', leaseMs })
  reported()
  await store.release([])
  expect(reported()).toEqual([])
  tenures.leave()
  vi.setSystemTime(10_700)
  await store.release([])
  await store.beat({ session: 'one', leaseMs, end: true })
  expect(reported()).toEqual([['w1.1/1', 10_700]])
})
