// A connection that listens and was silently dead is found out and replaced.

import { describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { opened, proxied } from './proxied.ts'

describe('a LISTEN connection that is silently dead', { timeout: 120_000 }, () => {
  it.for([1, 3])('PQ-C6 is replaced, however often, and others are heard again (%i times)', async (times) => {
    const { proxy, url, schema } = await proxied()
    const { bench } = await opened({ url, schema, listen: url })
    const listener = await openPostgresStore({ url: proxy.url, schema })
    let heard = 0
    const unlisten = await listener.listen(() => (heard += 1))
    expect(listener.capabilities.notifies).toBe(true)
    const listens = (): number => proxy.statements.filter(({ text }) => text.startsWith('listen')).length
    for (let time = 0; time < times; time += 1) {
      const before = listens()
      expect(proxy.blackhole(/^listen/)).toBeGreaterThan(0)
      await until('another one listens', () => listens() > before && listener.capabilities.notifies, 60_000)
      const sofar = heard
      await bench.start()
      await until('others are heard again', () => heard > sofar)
    }
    unlisten()
    await listener.close()
  })

  it('PQ-C6 from its first word on is no pooler: it is tried again', async () => {
    const { proxy, schema } = await proxied()
    const struck = proxy.strike({ on: /^listen/, how: 'blackhole' })
    const { store } = await opened({ url: proxy.url, schema, listen: proxy.url })
    const unlisten = await store.listen(() => undefined)
    await struck
    expect(store.capabilities.notifies).toBe(false)
    await until('others are heard', () => store.capabilities.notifies, 60_000)
    unlisten()
  })
})
