// A start in a chain of words.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { virtualWorld } from './virtual-world.ts'

describe('submit', () => {
  it('SW-A3 starts by name with idempotency, priority, attempts and a time, and gives back the id', async () => {
    const { open, clock } = virtualWorld()
    let calls = 0
    const mail = workflow('mail.send', (_ctx, to: string) => {
      calls += 1
      throw new Error(to)
    })
    const holdfast = await open({ workflows: [mail] })
    const submission = holdfast
      .submit('mail.send', 'ada')
      .withIdempotency('request-1')
      .withPriority(7)
      .withMaxAttempts(2)
      .withKey('mail-1')
      .withTags('slow', 'mail')
      .runIn('10 min')
    const id = await submission.execute()
    expect(await submission.execute()).toBe(id)
    expect(await holdfast.get(id)).toMatchObject({
      type: 'mail.send',
      idempotencyKey: 'request-1',
      priority: 7,
      key: 'mail-1',
      tags: ['slow', 'mail'],
      dueAt: new Date(clock.now() + 600_000),
    })
    await holdfast.work()
    await clock.advance('9 min')
    expect(calls).toBe(0)
    await clock.advance('1h')
    expect(calls).toBe(2)
    expect(await holdfast.get(id)).toMatchObject({ status: 'failed', lastError: 'Error: ada' })
  })

  it('SW-U2 a duplicate gives back the run that exists, and a word does not change what it was said to', async () => {
    const { open, clock } = virtualWorld()
    const job = workflow('job', (_ctx, n: number) => n)
    const holdfast = await open({ workflows: [job] })
    const plain = holdfast.submit('job', 1)
    const keyed = plain.withIdempotency('k').runAfter(new Date(clock.now() + 60_000))
    const ids = [await plain.execute(), await plain.execute(), await keyed.execute(), await keyed.execute()]
    expect(new Set(ids).size).toBe(3)
    expect(ids[2]).toBe(ids[3])
    expect((await holdfast.get(ids[0] ?? '')).idempotencyKey).toBeNull()
  })
})
