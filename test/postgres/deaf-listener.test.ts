// A connection that listens, and hears nothing any more without a word of warning. The long version waits until it is
// replaced.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { holdfastAt, proxied } from './proxied.ts'

const echo = workflow('echo', async (_ctx, text: string) => text)

describe('a LISTEN connection that is silently dead', { timeout: 60_000 }, () => {
  it('PQ-C6 delays work of other processes and does not hide it: the worker looks by itself', async () => {
    const { proxy, direct, through } = await proxied()
    const worker = await holdfastAt({ store: through, workflows: [echo] })
    await worker.work()
    const client = await holdfastAt({ store: direct, workflows: [echo] })
    expect(await (await client.start(echo, 'heard')).result({ timeout: '20s' })).toBe('heard')
    expect(proxy.blackhole(/^listen/)).toBe(1)
    expect(await (await client.start(echo, 'found')).result({ timeout: '20s' })).toBe('found')
  })
})
