// Dead letters: what a run had not read when it ended is kept if its topic says so, and can be sent again or let go of. None
// is lost on the way, and none arrives twice.

import { describe, expect, test } from 'vitest'
import { randomBytes } from 'node:crypto'
import { topic, workflow, type HoldfastOptions } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { messagesOf, takeUp } from './by-hand.ts'
import { memoryStore, open } from './open.ts'
import { changed } from './virtual-world.ts'

const order = workflow('order', (_ctx, id: string) => id)
const paid = topic<{ readonly amount: number }>('paid', { onUnread: 'dead-letter' })
const jobs = topic<number>('jobs', { delivery: 'one', onUnread: 'dead-letter' })

async function world(options: Partial<HoldfastOptions> = {}) {
  const store = memoryStore()
  const holdfast = await open({ store, workflows: [order], ...options })
  return { store, holdfast, run: await holdfast.start(order, 'a') }
}

describe('a dead letter', () => {
  test('is what a run had not read when it ended, with whom it was for and how that ended (WC-R3, WC-P3)', async () => {
    const { holdfast, run } = await world()
    await holdfast.signal(run, paid, { amount: 3 }, { id: 'p-1' })
    await holdfast.signal(run, 'chat', 'hello')
    expect((await holdfast.deadLetters()).letters).toEqual([])
    await run.cancel()
    const { endedAt } = await holdfast.get(run)
    const date = expect.any(Date) as Date
    expect(await holdfast.deadLetters()).toEqual({
      letters: [
        { runId: run.id, id: 'p-1', name: 'paid', payload: { amount: 3 }, at: date, status: 'cancelled', endedAt },
      ],
      next: null,
    })
  })

  test('is also what came too late (WC-R3)', async () => {
    const { holdfast, run } = await world()
    await run.cancel()
    expect(await holdfast.signal(run, paid, { amount: 3 }, { id: 'p-1' })).toMatchObject({
      outcome: 'target-terminated',
    })
    expect((await holdfast.deadLetters()).letters).toMatchObject([{ id: 'p-1', payload: { amount: 3 } }])
  })

  test('is found by its topic and by its run, page by page, each once (WC-R3)', async () => {
    const { holdfast, run } = await world()
    const other = await holdfast.start(order, 'b')
    for (const amount of [1, 2, 3]) await holdfast.signal(run, paid, { amount })
    await holdfast.signal(other, jobs, 4)
    await run.cancel()
    await other.cancel()
    expect((await holdfast.deadLetters({ name: jobs })).letters).toMatchObject([{ payload: 4 }])
    expect((await holdfast.deadLetters({ name: 'paid', run })).letters).toHaveLength(3)
    expect((await holdfast.deadLetters({ run: other })).letters).toHaveLength(1)
    const seen = new Set<string>()
    for (let after: string | undefined, pages = 0; pages < 4; pages += 1) {
      const page = await holdfast.deadLetters({ limit: 1, ...(after === undefined ? {} : { after }) })
      for (const { id } of page.letters) seen.add(id)
      after = page.next ?? undefined
    }
    expect(seen.size).toBe(4)
    await expect(holdfast.deadLetters({ limit: 0 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  test('is sent to a run, once, and is then dead no more (WC-R3)', async () => {
    const { store, holdfast, run } = await world()
    await holdfast.signal(run, paid, { amount: 3 }, { id: 'p-1' })
    await run.cancel()
    const heir = await holdfast.start(order, 'b')
    const letter = { runId: run.id, id: 'p-1' }
    expect(await holdfast.retryDeadLetter(letter, { to: heir })).toMatchObject({ outcome: 'queued', runId: heir.id })
    expect(await holdfast.retryDeadLetter(letter, { to: heir })).toEqual({ outcome: 'not-dead' })
    expect(await messagesOf(store, heir)).toMatchObject([{ name: 'paid', data: '{"amount":3}' }])
    expect((await holdfast.deadLetters()).letters).toEqual([])
  })

  test('is sent to its topic, and to no other (WC-R3)', async () => {
    const { store, holdfast, run } = await world()
    await holdfast.signal(run, jobs, 4, { id: 'j-1' })
    await run.cancel()
    const [letter] = (await holdfast.deadLetters()).letters
    if (letter === undefined) throw new Error('It was to be there.')
    await expect(holdfast.retryDeadLetter(letter, { to: paid })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(await holdfast.retryDeadLetter(letter, { to: jobs })).toMatchObject({ outcome: 'queued' })
    expect((await holdfast.deadLetters()).letters).toEqual([])
    const heir = await holdfast.start(order, 'b')
    await (await takeUp(store, 'order')).park(jobs)
    expect(await messagesOf(store, heir)).toMatchObject([{ kind: 'broadcast', name: 'jobs', data: '4' }])
  })

  test('of two runs with the same id does not take the place of the other in their topic', async () => {
    const { store, holdfast, run } = await world()
    const other = await holdfast.start(order, 'b')
    await holdfast.signal(run, jobs, 1, { id: 'same' })
    await holdfast.signal(other, jobs, 2, { id: 'same' })
    await run.cancel()
    await other.cancel()
    for (const letter of (await holdfast.deadLetters()).letters) await holdfast.retryDeadLetter(letter, { to: jobs })
    const seen: string[] = []
    for (const input of ['c', 'd']) {
      const heir = await holdfast.start(order, input)
      await (await takeUp(store, 'order')).park(jobs)
      for (const { data } of await messagesOf(store, heir)) seen.push(data)
    }
    expect(seen.toSorted()).toEqual(['1', '2'])
  })

  test('goes back to the run that it was for, once that was retried', async () => {
    const { store, holdfast, run } = await world()
    await holdfast.signal(run, paid, { amount: 3 }, { id: 'p-1' })
    await (await takeUp(store, 'order')).fail()
    await holdfast.retry(run)
    expect(await holdfast.retryDeadLetter({ runId: run.id, id: 'p-1' }, { to: run })).toMatchObject({
      outcome: 'queued',
    })
    expect(await messagesOf(store, run)).toMatchObject([{ name: 'paid', data: '{"amount":3}' }])
  })

  test('stays dead if there is nobody to send it to', async () => {
    const { holdfast, run } = await world()
    await holdfast.signal(run, paid, { amount: 3 }, { id: 'p-1' })
    await run.cancel()
    const letter = { runId: run.id, id: 'p-1' }
    expect(await holdfast.retryDeadLetter(letter, { to: run })).toMatchObject({ outcome: 'target-terminated' })
    const nobody = '01900000-0000-7000-8000-000000000000'
    expect(await holdfast.retryDeadLetter(letter, { to: nobody })).toEqual({ outcome: 'target-not-found' })
    expect((await holdfast.deadLetters()).letters).toHaveLength(1)
  })

  test('is sent once, also if the process dies between sending it and saying so (WC-S3)', async () => {
    const { store, holdfast, run } = await world()
    await holdfast.signal(run, paid, { amount: 3 }, { id: 'p-1' })
    await run.cancel()
    const heir = await holdfast.start(order, 'b')
    const letter = { runId: run.id, id: 'p-1' }
    const settle = (): never => {
      throw new Error('The process is gone')
    }
    const dying = await open({ store: changed(store, { settleDeadLetter: settle }) })
    await expect(dying.retryDeadLetter(letter, { to: heir })).rejects.toThrow('gone')
    expect(await holdfast.retryDeadLetter(letter, { to: heir })).toMatchObject({ outcome: 'queued', repeated: true })
    expect(await messagesOf(store, heir)).toHaveLength(1)
    expect((await holdfast.deadLetters()).letters).toEqual([])
  })

  test('is discarded once (WC-R3)', async () => {
    const { holdfast, run } = await world()
    await holdfast.signal(run, paid, { amount: 3 }, { id: 'p-1' })
    await run.cancel()
    const letter = { runId: run.id, id: 'p-1' }
    expect(await holdfast.discardDeadLetter(letter)).toEqual({ outcome: 'discarded' })
    expect(await holdfast.discardDeadLetter(letter)).toEqual({ outcome: 'not-dead' })
    expect(await holdfast.retryDeadLetter(letter, { to: paid })).toEqual({ outcome: 'not-dead' })
    expect((await holdfast.deadLetters()).letters).toEqual([])
  })

  test('that is encrypted for its place is written anew for the next', async () => {
    const codec = encryptingCodec({ keys: { k: randomBytes(32) }, current: 'k' })
    const { holdfast, run } = await world({ codec })
    await holdfast.signal(run, jobs, 4, { id: 'j-1' })
    await run.cancel()
    const heir = await holdfast.start(order, 'b')
    await holdfast.retryDeadLetter({ runId: run.id, id: 'j-1' }, { to: heir })
    await heir.cancel()
    expect((await holdfast.deadLetters({ run: heir })).letters).toMatchObject([{ payload: 4 }])
  })
})
