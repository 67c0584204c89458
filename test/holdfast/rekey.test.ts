// Keys are rotated while workers run: no run is lost, and in the end nothing needs the old key.

import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, topic, workflow, type Holdfast, type RekeyResult, type Store, type StoreAdmin } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import type { Run } from '../../src/core/model/run.ts'
import { keepLines } from './open.ts'
import { everyStore, type SharedStore } from './stores.ts'
import { changed, virtualWorld } from './virtual-world.ts'

const bytes = { a: randomBytes(32), b: randomBytes(32) }
const first = encryptingCodec({ keys: { a: bytes.a }, current: 'a' })
const knowsBoth = encryptingCodec({ keys: bytes, current: 'a' })
const both = encryptingCodec({ keys: bytes, current: 'b' })
const last = encryptingCodec({ keys: { b: bytes.b }, current: 'b' })

const child = workflow('child', async (_ctx, input: string) => `child of ${input}`)
const booked = new Map<string, number>()

const order = workflow('order', { retry: { maxAttempts: 1 } }, async (ctx, input: string): Promise<string> => {
  const id = ctx.uuid()
  const place = await ctx.step('book', () => (booked.set(id, (booked.get(id) ?? 0) + 1), `seat of ${input}`), {
    undo: () => undefined,
  })
  ctx.log('booked', { place })
  await ctx.sleep(20)
  const made = await ctx.child(child, input)
  const paid = await ctx.receive<string>('paid')
  return `${place}, ${made}, ${paid}`
})

const fails = workflow('fails', { retry: { maxAttempts: 1 } }, async (ctx) => {
  await ctx.step('book', () => 'b-1', { undo: () => undefined })
  throw new Error('No seat')
})

const workflows = [order, child, fails]

/** All that the database keeps of payloads, as text. */
async function texts({ store }: SharedStore, deleted = false): Promise<readonly string[]> {
  const found: string[] = []
  for (const { id } of await store.find({ deleted }, { limit: 1_000 })) {
    const [loaded] = await store.load([{ runId: id, after: 0, limit: 1_000, messages: { names: [], limit: 0 } }])
    found.push(...(loaded?.entries ?? []).flatMap(({ data }) => data ?? []))
    for (let [more, messagesAfter] = [true, 0]; more;) {
      const [page] = await store.load([{ runId: id, after: 0, limit: 0, messagesAfter }])
      found.push(...(page?.messages ?? []).map(({ data }) => data))
      messagesAfter = page?.messages.at(-1)?.position ?? messagesAfter
      more = (page?.messages.length ?? 0) > 0
    }
  }
  return found
}

async function waits(holdfast: Holdfast, id: string): Promise<void> {
  const isWaiting = async (): Promise<boolean> => {
    const { status, dueAt } = await holdfast.get(id)
    return status === 'waiting' && dueAt === null
  }
  await expect.poll(isWaiting, { timeout: 15_000 }).toBe(true)
}

async function perform(holdfast: Holdfast, name: string, count: number): Promise<{ readonly id: string }[]> {
  return Promise.all(Array.from({ length: count }, (_, at) => holdfast.start(order, `${name} ${at}`)))
}

/** A run that nobody performs, with this many signals in its mailbox. */
async function flooded(holdfast: Holdfast, count: number, payload: string): Promise<string> {
  const { id } = await holdfast.start(order, 'Eve')
  for (let sent = 0; sent < count; sent += 500) {
    const some = Math.min(500, count - sent)
    await Promise.all(Array.from({ length: some }, () => holdfast.signal(id, 'paid', payload)))
  }
  return id
}

describe.each(everyStore)('on $name', ({ make }) => {
  it('two builds with two keys perform the same runs, children and signals: none is lost, paused or repeated', async () => {
    const shared = await make()
    // The first deployment brings the new key, the second writes with it.
    const prepared = await shared.open({ codec: knowsBoth, workflows })
    await prepared.work()
    const runs = await perform(prepared, 'before', 4)
    const rolled = await shared.open({ codec: both, workflows })
    await rolled.work()
    runs.push(...(await perform(rolled, 'new', 6)), ...(await perform(prepared, 'late', 6)))
    for (const [at, { id }] of runs.entries()) await (at % 2 === 0 ? prepared : rolled).signal(id, 'paid', 'cash')
    for (const { id } of runs) {
      expect(await rolled.run(id).result()).toMatch(/^seat of (\w+ \d), child of \1, cash$/)
      expect((await rolled.journal(id)).map(({ kind }) => kind)).not.toContain('paused')
    }
    expect([...booked.values()].every((times) => times === 1)).toBe(true)
  })

  it('an old build that lacks the new key loses no run: what it met and could not read goes on when it is gone', async () => {
    const shared = await make()
    const old = await shared.open({ codec: first, workflows })
    await old.work()
    const rolled = await shared.open({ codec: both, workflows })
    await rolled.work()
    const runs = [...(await perform(old, 'old', 6)), ...(await perform(rolled, 'new', 6))]
    for (const { id } of runs) await rolled.signal(id, 'paid', 'cash')
    await expect
      .poll(async () => (await rolled.count({ status: ['succeeded', 'paused'], type: 'order' })).count, {
        timeout: 15_000,
      })
      .toBe(runs.length)
    expect((await rolled.count({ status: 'failed' })).count).toBe(0)
    await old.close()
    await rolled.resumeMany({}, { all: true, reason: 'unreadable' })
    for (const { id } of runs) {
      expect(await rolled.run(id).result()).toMatch(/^seat of (\w+ \d), child of \1, cash$/)
    }
    expect([...booked.values()].every((times) => times === 1)).toBe(true)
  })

  it('rekey leaves nothing that needs the old key: live, ended and removed runs go on and are read without it', async () => {
    const shared = await make()
    const old = await shared.open({ codec: first, workflows })
    await old.work()
    const ended = await old.start(child, 'Ada')
    await ended.result()
    const failed = await old.start(fails)
    await failed.result().catch(() => undefined)
    const removed = await old.start(child, 'Bob')
    await removed.result()
    await old.remove(removed)
    const live = await old.start(order, 'Eve')
    await waits(old, live.id)
    const early = await old.start(order, 'Mel', { delay: '1h' })
    await old.signal(early.id, 'paid', 'early')
    await old.pause(early.id, { note: 'lunch' })
    await old.close()

    const before = (await texts(shared)).length
    const rekeying = await shared.open({ codec: both, workflows })
    const pages: number[] = []
    const done = await rekeying.rekey({ rate: 3, onProgress: ({ runs }) => pages.push(runs) })
    expect(done).toMatchObject({ runs: 6, rewritten: 6, held: 0, unreadable: 0, missingKeys: [], next: null })
    expect(pages).toEqual([3, 5, 6])
    expect(await rekeying.rekey({ rate: 1_000 })).toMatchObject({ runs: 6, rewritten: 0, payloads: 0 })
    await rekeying.close()
    const after = [...(await texts(shared)), ...(await texts(shared, true))]
    expect(after.filter((text) => text.includes('enc1.a.'))).toEqual([])
    expect((await texts(shared)).length).toBe(before)
    expect(await shared.store.otherKeys(['b'], 10)).toEqual([])
    expect((await shared.store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])

    const fresh = await shared.open({ codec: last, workflows })
    await fresh.work()
    expect(await fresh.run(ended.id).result()).toBe('child of Ada')
    expect((await fresh.get(failed.id)).lastError).toBe('Error: No seat')
    expect((await fresh.journal(early.id)).at(-1)).toMatchObject({ kind: 'paused', meta: { note: 'lunch' } })
    await fresh.signal(live.id, 'paid', 'cash')
    expect(await fresh.run(live.id).result()).toBe('seat of Eve, child of Eve, cash')
    expect((await fresh.journal(live.id)).filter(({ unreadable }) => unreadable !== undefined)).toEqual([])
  })

  it('rekey stops at the given bound, goes on from there, and passes over what is held or cannot be read', async () => {
    const shared = await make()
    const old = await shared.open({ codec: first, workflows })
    for (const name of ['Ada', 'Bob', 'Eve']) await old.start(child, name)
    const { store } = shared
    const { runs } = await store.claim({ session: 's', selectors: [{ type: 'child', version: 1 }], limit: 1 })
    const rekeying = await shared.open({ codec: both, workflows })
    const stop = new AbortController()
    const stopped = await rekeying.rekey({ rate: 1, abortSignal: stop.signal, onProgress: () => stop.abort() })
    expect(stopped).toMatchObject({ runs: 1, rewritten: 1 })
    expect(stopped.next).not.toBeNull()
    const rest = await rekeying.rekey({ after: stopped.next ?? '' })
    expect(rest).toMatchObject({ runs: 2, rewritten: 1, held: 1, next: null })
    await store.release(runs.map(({ id, token }) => ({ runId: id, session: 's', token })))
    const without = await shared.open({ codec: last, workflows })
    expect(await without.rekey()).toMatchObject({ rewritten: 0, unreadable: 1, missingKeys: ['a'] })
    expect(await rekeying.rekey()).toMatchObject({ rewritten: 1, held: 0, unreadable: 0 })
    expect((await texts(shared)).filter((text) => text.startsWith('enc1.a.'))).toEqual([])
  })

  it('rekey that goes on after a stop visits the runs that had a holder then, also if it is stopped again', async () => {
    const shared = await make()
    const old = await shared.open({ codec: first, workflows })
    const ids: string[] = []
    for (const name of ['Ada', 'Bob', 'Eve', 'Joe', 'Kim']) ids.push((await old.start(child, name)).id)
    const { store } = shared
    const { runs } = await store.claim({ session: 's', selectors: [{ type: 'child', version: 1 }], limit: 5 })
    const rekeying = await shared.open({ codec: both, workflows })
    const stoppedAfter = (pages: number, after?: string): Promise<RekeyResult> => {
      const stop = new AbortController()
      const onProgress = (): void => void ((pages -= 1) === 0 && stop.abort())
      const from = after === undefined ? {} : { after }
      return rekeying.rekey({ rate: 2, abortSignal: stop.signal, onProgress, ...from })
    }
    const once = await stoppedAfter(1)
    expect(once).toMatchObject({ runs: 2, held: 2 })
    const twice = await stoppedAfter(1, once.next ?? '')
    expect(twice).toMatchObject({ runs: 2, held: 2 })
    await store.release(runs.map(({ id, token }) => ({ runId: id, session: 's', token })))
    expect(await rekeying.rekey({ after: twice.next ?? '' })).toMatchObject({ rewritten: 5, held: 0, next: null })
    expect((await texts(shared)).filter((text) => text.startsWith('enc1.a.'))).toEqual([])
    const keys = (await store.get(ids)).map((run) => run?.keyId)
    expect(keys).toEqual(['b', 'b', 'b', 'b', 'b'])
  })

  it('rekey that goes on after a stop also visits a run that had a holder then, and was removed since', async () => {
    const shared = await make()
    const old = await shared.open({ codec: first, workflows })
    const gone = await old.start(child, 'Zoe')
    await old.remove(gone)
    const ids: string[] = []
    for (const name of ['Ada', 'Bob', 'Eve']) ids.push((await old.start(child, name)).id)
    const { store } = shared
    const { runs } = await store.claim({ session: 's', selectors: [{ type: 'child', version: 1 }], limit: 5 })
    const rekeying = await shared.open({ codec: both, workflows })
    const stop = new AbortController()
    const onProgress = ({ runs }: RekeyResult): void => void (runs === 4 && stop.abort())
    const stopped = await rekeying.rekey({ abortSignal: stop.signal, onProgress })
    expect(stopped).toMatchObject({ runs: 4, rewritten: 1, held: 3 })
    await store.release(runs.map(({ id, token }) => ({ runId: id, session: 's', token })))
    await old.remove(ids[1] ?? '')
    expect(await rekeying.rekey({ after: stopped.next ?? '' })).toMatchObject({ rewritten: 3, held: 0, next: null })
    const keys = (await store.get([gone.id, ...ids])).map((run) => run?.keyId)
    expect(keys).toEqual(['b', 'b', 'b', 'b'])
  })

  it.each([
    ['more unread signals than one load returns', 2_500, 'cash'],
    ['unread signals that are heavier than one load', 30, 'x'.repeat(400_000)],
  ])('rekey rewrites %s before the run says the new key', async (_, count, payload) => {
    const shared = await make()
    const id = await flooded(await shared.open({ codec: first, workflows }), count, payload)
    const rekeying = await shared.open({ codec: both, workflows })
    const done = await rekeying.rekey()
    expect(done).toMatchObject({ runs: 1, rewritten: 1, payloads: count + 1, held: 0, unreadable: 0, next: null })
    const after = await texts(shared)
    expect(after.length).toBe(count + 1)
    expect(after.filter((text) => !text.startsWith('enc1.b.')).length).toBe(0)
    expect((await shared.store.get([id]))[0]?.keyId).toBe('b')
    // It reads every payload, and the old key is gone.
    const without = await shared.open({ codec: last, workflows })
    expect(await without.rekey()).toMatchObject({ payloads: 0, unreadable: 0, missingKeys: [] })
  })

  it('rekey leaves a run its old key if a session takes it between two pages of its mailbox', async () => {
    const shared = await make()
    const { store } = shared
    const id = await flooded(await shared.open({ codec: first, workflows }), 1_500, 'cash')
    const request = { session: 's', selectors: [{ type: 'order', version: 1 }], limit: 1 }
    const claimed: Run[] = []
    const taking = changed(store, {
      async rewritePayloads(rewrite) {
        const answer = await store.rewritePayloads(rewrite)
        if (claimed.length === 0) claimed.push(...(await store.claim(request)).runs)
        return answer
      },
    })
    const rekeying = await createHoldfast({ store: taking, codec: both, workflows, logger: keepLines() })
    onTestFinished(() => rekeying.close())
    expect(await rekeying.rekey()).toMatchObject({ payloads: 1_000, held: 1, unreadable: 0 })
    expect((await store.get([id]))[0]).toMatchObject({ keyId: 'a', session: 's' })
    await store.release(claimed.map(({ token }) => ({ runId: id, session: 's', token })))
    expect(await rekeying.rekey()).toMatchObject({ payloads: 501, held: 0, unreadable: 0 })
    expect((await texts(shared)).filter((text) => !text.startsWith('enc1.b.')).length).toBe(0)
    expect((await store.get([id]))[0]?.keyId).toBe('b')
  })

  it('rekey beside working processes loses and repeats nothing', async () => {
    const shared = await make()
    const holdfast = await shared.open({ codec: first, workflows })
    await holdfast.work()
    const runs = []
    for (let made = 0; made < 10; made += 1) runs.push(await holdfast.start(order, `busy ${made}`))
    await holdfast.close()
    const working = await shared.open({ codec: both, workflows })
    await working.work()
    const rekeying = await shared.open({ codec: both, workflows })
    const rekeyed = (async () => {
      for (let times = 0; times < 5; times += 1) await rekeying.rekey({ rate: 10_000 })
    })()
    for (const { id } of runs) await working.signal(id, 'paid', 'cash')
    for (const { id } of runs) {
      expect(await working.run(id).result()).toMatch(/^seat of (busy \d), child of \1, cash$/)
    }
    await rekeyed
    await rekeying.rekey()
    expect((await texts(shared)).filter((text) => text.includes('enc1.a.'))).toEqual([])
    expect([...booked.values()].every((times) => times === 1)).toBe(true)
    expect((await shared.store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
})

describe('the end of a rekey', () => {
  it('is as bounded as the rest: 300 dead letters come by pages at the rate, and a stopped call goes on behind the last', async () => {
    const world = virtualWorld()
    const letter = topic<number>('letter', { onUnread: 'dead-letter' })
    const old = await world.open({ codec: first, workflows })
    for (const name of ['Ada', 'Bob', 'Eve']) {
      const run = await old.start(child, name)
      // An id is any text: what it says to a shell or a terminal must not be in the cursor.
      for (let n = 0; n < 100; n += 1) await old.signal(run, letter, n, { id: `'; $(say ${n}) \u202e` })
      await run.cancel()
    }
    const read: string[] = []
    const admin = world.store as Store & StoreAdmin
    const counted = changed(world.store, {
      async deadLetters(filter, page) {
        const letters = await admin.deadLetters(filter, page)
        read.push(...letters.map(({ runId, id }) => `${runId} ${id}`))
        return letters
      },
    })
    const rekeying = await world.open({ store: counted, codec: both, workflows })
    const stop = new AbortController()
    const pages: RekeyResult[] = []
    const rekey = async (after?: string): Promise<RekeyResult> => {
      const onProgress = (sofar: RekeyResult): void => {
        pages.push(sofar)
        if (pages.length === 4) stop.abort()
      }
      const more = after === undefined ? { abortSignal: stop.signal } : { after }
      return world.after(rekeying.rekey({ rate: 50, onProgress, ...more }))
    }
    const begunAt = world.clock.now()
    const stopped = await rekey()
    // Three runs and their inputs, then the letters.
    expect(pages.map(({ payloads }) => payloads)).toEqual([3, 53, 103, 153])
    expect(stopped).toEqual(pages[3])
    expect(stopped.next).toMatch(/^letters:[\w.~%-]+$/)
    expect(read).toHaveLength(150)
    expect(world.clock.now() - begunAt).toBe(60 + 1_000 + 1_000)

    const resumedAt = world.clock.now()
    expect(await rekey(stopped.next ?? '')).toMatchObject({ runs: 0, payloads: 150, unreadable: 0, next: null })
    expect(pages.slice(4).map(({ payloads }) => payloads)).toEqual([50, 100, 150])
    expect(read).toHaveLength(300)
    expect(new Set(read).size).toBe(300)
    expect(world.clock.now() - resumedAt).toBe(3_000)
    const without = await world.open({ codec: last, workflows })
    expect(await world.after(without.rekey())).toMatchObject({ runs: 3, payloads: 0, unreadable: 0, missingKeys: [] })
  })

  it('tries held runs again at the rate, and counts those that it did not come to when it is stopped', async () => {
    const world = virtualWorld()
    const old = await world.open({ codec: first, workflows })
    for (const name of ['Ada', 'Bob', 'Eve']) await old.start(child, name)
    await world.store.claim({ session: 's', selectors: [{ type: 'child', version: 1 }], limit: 3 })
    const rekeying = await world.open({ codec: both, workflows })
    const rekey = async (stopAt: number): Promise<number> => {
      const stop = new AbortController()
      let pages = 0
      const onProgress = (): void => {
        pages += 1
        if (pages === stopAt) stop.abort()
      }
      const done = await world.after(rekeying.rekey({ rate: 1, abortSignal: stop.signal, onProgress }))
      expect(done).toMatchObject({ runs: 3, held: 3 })
      expect(done.next === null).toBe(stopAt > pages)
      return pages
    }
    const begunAt = world.clock.now()
    expect(await rekey(10)).toBe(6)
    expect(world.clock.now() - begunAt).toBe(6_000)
    expect(await rekey(4)).toBe(4)
  })
})

it('rekey needs a codec that has keys', async () => {
  const { open } = await (everyStore[0] as (typeof everyStore)[number]).make()
  const holdfast = await open()
  await expect(holdfast.rekey()).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  const keyed = await open({ codec: both })
  await expect(keyed.rekey({ rate: 0 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await expect(keyed.rekey({ after: 'x' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
})
