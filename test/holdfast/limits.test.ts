// How much one call may ask for: each refusal says the number and the option, and nothing has happened.

import { describe, expect, it, test } from 'vitest'
import { jsonCodec, operation, workflow, type HoldfastError, type HoldfastOptions, type JournalEntry } from 'holdfast'
import { everyStore } from './stores.ts'
import { open } from './open.ts'

const order = workflow('order', { tags: ['shop'] }, (_ctx, id: string) => id)

async function refusal(call: Promise<unknown>): Promise<string> {
  const error = (await call.catch((reason: unknown) => reason)) as HoldfastError
  expect(error.code).toBe('INVALID_OPTION')
  return error.message
}

describe('one call that asks for too much', () => {
  test('a batch that is longer than limits.batch is refused whole, before anything of it is looked at', async () => {
    const holdfast = await open({ workflows: [order], limits: { batch: 3 } })
    const four = [1, 2, 3, 4]
    const bulk: readonly [string, Promise<unknown>][] = [
      ['startMany()', holdfast.startMany(four.map((n) => ({ workflow: order, input: `${n}` })))],
      ['signals()', holdfast.signals(four.map(() => ({ to: 'nobody', name: 'go' })))],
      ['submitBatch()', holdfast.submitBatch(four.map((n) => operation.start(order, `${n}`)))],
      ['ids of a filter', holdfast.find({ ids: four.map((n) => `run-${n}`) })],
      ['type of a filter', holdfast.count({ type: four.map((n) => `type-${n}`) })],
      ['status of a filter', holdfast.cancelMany({ status: four.map(() => 'pending' as const) })],
    ]
    for (const [what, call] of bulk) {
      expect(await refusal(call)).toBe(
        `${what} takes at most 3 (limits.batch of createHoldfast()). Got 4: make several calls of it.`,
      )
    }
    expect((await holdfast.count()).count).toBe(0)
    expect(await holdfast.startMany([{ workflow: order, input: '1' }])).toMatchObject([{ ok: true }])
  })

  test('by default a batch is at most 100,000 long', async () => {
    const holdfast = await open({ workflows: [order] })
    const message = await refusal(
      holdfast.signals(Array.from({ length: 100_001 }, () => ({ to: 'nobody', name: 'go' }))),
    )
    expect(message).toContain('at most 100,000 (limits.batch of createHoldfast()). Got 100,001')
  })

  test.each([null, 'abc', 7, {}])('a batch that is no list (%j) is refused', async (given) => {
    const holdfast = await open({ workflows: [order] })
    expect(await refusal(holdfast.signals(given as never))).toContain('signals() takes a list')
    expect(await refusal(holdfast.startMany(given as never))).toContain('startMany() takes a list')
    expect(await refusal(holdfast.submitBatch(given as never))).toContain('submitBatch() takes a list')
    if (given !== null) expect(await refusal(holdfast.find({ ids: given as never }))).toContain('must be a list')
  })

  test('a run with a tag too many is refused, those of its workflow counted', async () => {
    const holdfast = await open({ workflows: [order] })
    const tags = Array.from({ length: 50 }, (_, n) => `tag-${n}`)
    expect(await refusal(holdfast.start(order, 'a', { tags }))).toBe(
      'The tags of a run are at most 50 (limits.tags of createHoldfast()). Got 51.',
    )
    await holdfast.start(order, 'a', { tags: [...tags.slice(1), 'shop', 'shop'] })
    const roomy = await open({ workflows: [order], limits: { tags: 51 } })
    expect((await roomy.get(await roomy.start(order, 'a', { tags }))).tags).toHaveLength(51)
  })

  test('a workflow of more tags than limits.tags allows is refused at its start, also without options', async () => {
    const tags = Array.from({ length: 20 }, (_, n) => `tag-${n}`)
    const labelled = workflow('labelled', { tags }, () => null)
    const holdfast = await open({ workflows: [labelled], limits: { tags: 5 } })
    for (const options of [undefined, {}, { tags: [] }]) {
      expect(await refusal(holdfast.start(labelled, undefined, options))).toBe(
        'The tags of a run are at most 5 (limits.tags of createHoldfast()). Got 20.',
      )
    }
    expect((await holdfast.count()).count).toBe(0)
    const roomy = await open({ workflows: [labelled], limits: { tags: 20 } })
    expect((await roomy.get(await roomy.start(labelled))).tags).toEqual(tags)
  })

  test('a workflow of more tags than the default is refused by nothing but limits.tags, up to its highest', async () => {
    const tags = Array.from({ length: 10_001 }, (_, n) => `tag-${n}`)
    const labelled = workflow('labelled', { tags: tags.slice(0, 51) }, () => null)
    const usual = await open({ workflows: [labelled] })
    expect(await refusal(usual.start(labelled))).toContain('at most 50 (limits.tags of createHoldfast()). Got 51.')
    const roomy = await open({ workflows: [labelled], limits: { tags: 51 } })
    expect((await roomy.get(await roomy.start(labelled))).tags).toHaveLength(51)
    // No option allows more, so the error names none.
    expect(() => workflow('excessive', { tags }, () => null)).toThrow(
      'The tags of workflow "excessive" are at most 10,000. Got 10,001.',
    )
  })

  test('a million tags are refused at the first too many', async () => {
    const holdfast = await open({ workflows: [order] })
    const tags = Array.from({ length: 1_000_000 }, (_, n) => (n <= 50 ? `tag-${n}` : '\u0000'))
    expect(await refusal(holdfast.start(order, 'a', { tags }))).toContain('Got 1,000,001.')
  })

  test.each(['vip', 7, { 0: 'a' }])('tags that are no list (%j) do not become the letters of a text', async (tags) => {
    const holdfast = await open({ workflows: [order] })
    expect(await refusal(holdfast.start(order, 'a', { tags: tags as never }))).toContain('must be a list')
  })

  test.each([1_000_001, -1_000_001, 2 ** 31, 0.5, Number.NaN, '7' as never])(
    'a priority of %s, before which nobody else would have a turn, is refused',
    async (priority) => {
      const holdfast = await open({ workflows: [order] })
      expect(await refusal(holdfast.start(order, 'a', { priority }))).toContain(
        'from 0 in either direction at most 1,000,000 (limits.priority of createHoldfast())',
      )
    },
  )

  test('a priority at its bound is taken, and the bound can be another', async () => {
    const holdfast = await open({ workflows: [order] })
    for (const priority of [1_000_000, -1_000_000]) await holdfast.start(order, 'a', { priority })
    const wide = await open({ workflows: [order], limits: { priority: 2 ** 31 - 1 } })
    await wide.start(order, 'a', { priority: 2 ** 31 - 1 })
    const narrow = await open({ workflows: [order], limits: { priority: 5 } })
    expect(await refusal(narrow.start(order, 'a', { priority: 6 }))).toContain('at most 5 (limits.priority')
  })

  test.each<[HoldfastOptions['limits'], string]>([
    [{ batch: 0 }, 'limits.batch of createHoldfast() is a whole number from 1'],
    [{ tags: 1.5 }, 'limits.tags'],
    [{ tags: Infinity }, 'limits.tags'],
    [{ priority: 2 ** 31 }, 'from 1 to 2,147,483,647. Got 2147483648.'],
    [{ batches: 7 } as never, 'Did you mean "batch"?'],
  ])('limits of %j are refused', async (limits, message) => {
    expect(await refusal(open({ limits: limits as never }))).toContain(message)
  })
})

describe.each(everyStore)('a journal of many megabytes, on the $name store', ({ make }) => {
  const heavy = workflow('heavy', async (ctx, count: number) => {
    for (let n = 0; n < count; n += 1) await ctx.step(`part ${n}`, () => `${n} ${'x'.repeat(900_000)}`)
  })

  it('is not read into one list: 21 results of 0.9 MB come by pages of at most 16 MiB, each entry once', async () => {
    const { open: opened } = await make()
    const holdfast = await opened({ workflows: [heavy], codec: jsonCodec() })
    await holdfast.work()
    const run = await holdfast.start(heavy, 21)
    await run.result()
    expect(await refusal(holdfast.journal(run))).toBe(
      `The journal of run ${run.id} has more than 10,000 entries, or 16 MiB of payloads: too much for one list. ` +
        'Read it with journalPages(run), or a part of it with journal(run, { after, limit }).',
    )
    const pages: (readonly JournalEntry[])[] = []
    for await (const page of holdfast.journalPages(run)) pages.push(page)
    expect(pages.map((page) => page.length)).toEqual([20, 3])
    expect(pages.flat().map(({ seq }) => seq)).toEqual(Array.from({ length: 23 }, (_, at) => at + 1))
    expect(pages.flat().at(-1)?.kind).toBe('succeeded')
    // A part of it is a page, too.
    expect(await holdfast.journal(run, { limit: 10_000 })).toHaveLength(20)
    expect(await holdfast.journal(run, { after: 20 })).toHaveLength(3)
  })
})

describe('pages of a journal', () => {
  const long = workflow('long', async (ctx, count: number) => {
    for (let n = 0; n < count; n += 1) ctx.log(`line ${n}`)
  })

  test('never leave out or repeat an entry, whatever their size', async () => {
    const holdfast = await open({ workflows: [long] })
    await holdfast.work()
    const run = await holdfast.start(long, 20)
    await run.result()
    const whole = await holdfast.journal(run)
    for (const limit of [1, 2, 7, whole.length - 1, whole.length, whole.length + 1]) {
      for (const after of [0, 5, whole.length]) {
        const pages: (readonly JournalEntry[])[] = []
        for await (const page of holdfast.journalPages(run, { limit, after })) pages.push(page)
        expect(pages.flat()).toEqual(whole.slice(after))
        expect(pages.every((page) => page.length > 0 && page.length <= limit)).toBe(true)
      }
    }
  })

  test('of a run that is not there say so, and wrong options at once', async () => {
    const holdfast = await open({ workflows: [long] })
    const nobody = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'
    const pages = holdfast.journalPages(nobody)[Symbol.asyncIterator]()
    await expect(pages.next()).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
    expect(() => holdfast.journalPages(nobody, { limit: 10_001 })).toThrow(
      'journalPages({ limit }) is a whole number from 1 to 10000. Got 10001.',
    )
    expect(() => holdfast.journalPages(nobody, { after: -1 })).toThrow('journalPages({ after })')
  })
})
