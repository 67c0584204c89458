// What may be stored, how it becomes text, and where large things go.

import { describe, expect, it } from 'vitest'
import { jsonCodec, workflow, type Codec, type Offload } from 'holdfast'
import { keepLines, memoryStore, open, openWorking } from './open.ts'
import { changed, virtualWorld } from './virtual-world.ts'

const echo = workflow('echo', (ctx, value: unknown) => ctx.step('echo', () => value))
const mebibyte = 2 ** 20

class Money {
  readonly amount = 1
}

describe('a payload', () => {
  it('comes back as what it was, also what JSON lacks', async () => {
    const holdfast = await openWorking([echo])
    const value = {
      when: new Date('2026-01-02T03:04:05.678Z'),
      big: 2n ** 70n,
      bytes: new Uint8Array([0, 127, 255]),
      map: new Map<unknown, unknown>([['a', { b: 1 }]]),
      set: new Set([1, 'two']),
      odd: [undefined, Number.NaN, Infinity, -0],
      error: new RangeError('Too far'),
    }
    expect(await (await holdfast.start(echo, value)).result()).toEqual(value)
  })

  it('reaches the body as it will be replayed: later changes of the caller’s object are not seen', async () => {
    const holdfast = await open({ workflows: [echo] })
    const value = { total: 1 }
    const run = await holdfast.start(echo, value)
    value.total = 2
    await holdfast.work()
    expect(await run.result()).toEqual({ total: 1 })
  })

  const cyclic: Record<string, unknown> = { name: 'me' }
  cyclic['self'] = cyclic
  it.each([
    ['a function', { items: [{ price: () => 1 }] }, '$.items[0].price', 'function'],
    ['a cycle', cyclic, '$.self', 'cycle'],
    ['a promise', { later: Promise.resolve(1) }, '$.later', 'promise'],
    ['a symbol', [Symbol('s')], '$[0]', 'symbol'],
    ['an instance of a class', { at: new Money() }, '$.at', 'class-instance'],
    ['a match of a regular expression', { match: /(?<y>\d+)/.exec('in 1999') }, '$.match.index', 'array-property'],
    ['an array with a hole', [[1, 2], Array(1)], '$[1][0]', 'sparse-array'],
    ['more than a mebibyte', 'x'.repeat(mebibyte + 1), '$', 'too-large'],
  ])('%s is refused where it is given, with its path', async (_what, value, path, reason) => {
    const holdfast = await openWorking([echo])
    const refused = { code: 'NOT_STORABLE', details: { path, reason } }
    await expect(holdfast.start(echo, value)).rejects.toMatchObject(refused)
    await expect(holdfast.start(echo, value)).rejects.toThrow(path)
  })

  it('over a mebibyte says how large it is, what the limit is and what to do', async () => {
    const holdfast = await open({ workflows: [echo] })
    await expect(holdfast.start(echo, { scan: 'x'.repeat(mebibyte) })).rejects.toThrow(/1048576.*offload/s)
  })

  it('that a step returns and that cannot be stored fails the step at once, and names it', async () => {
    let attempts = 0
    const bulky = workflow('bulky', (ctx) =>
      ctx.step('scan', () => {
        attempts += 1
        return 'x'.repeat(mebibyte + 1)
      }),
    )
    const holdfast = await openWorking([bulky])
    const run = await holdfast.start(bulky)
    await expect(run.result()).rejects.toMatchObject({
      code: 'RUN_FAILED',
      cause: {
        code: 'NOT_STORABLE',
        message: expect.stringContaining('step "scan"') as string,
        details: { step: 'scan', reason: 'too-large' },
      },
    })
    expect(attempts).toBe(1)
  })

  it('that a body returns and that cannot be stored fails the run', async () => {
    const leaky = workflow('leaky', () => ({ close: () => undefined }))
    const holdfast = await openWorking([leaky])
    await expect((await holdfast.start(leaky)).result()).rejects.toMatchObject({
      code: 'RUN_FAILED',
      cause: { code: 'NOT_STORABLE', details: { path: '$.close' } },
    })
  })

  it('may be larger when the codec says so', async () => {
    const holdfast = await openWorking([echo], { codec: jsonCodec({ maxBytes: 3 * mebibyte }) })
    const scan = 'x'.repeat(2 * mebibyte)
    expect(await (await holdfast.start(echo, scan)).result()).toBe(scan)
  })
})

describe('the offload port', () => {
  it.each(['its input', 'a message', 'what it has to undo'])(
    'that a worker lacks to read %s of a run: it says so once, holds no slot, does not claim it again and again, and leaves it to others',
    async (what) => {
      const { open: openAt, clock, after, store } = virtualWorld()
      const undone: unknown[] = []
      const reading = workflow('reading', { retry: 'none' }, async (ctx, input: string) => {
        await ctx.step('work', () => input.repeat(what === 'what it has to undo' ? 200 : 1), {
          undo: (result) => void undone.push(result?.length),
        })
        const mail = await ctx.receive<string>('mail')
        if (what === 'what it has to undo') throw new Error('No')
        return input.length + mail.length
      })
      const quick = workflow('quick', (ctx) => ctx.step('work', () => 'worked'))
      const offload = bucket(100)
      const logger = keepLines()
      const claims: string[] = []
      const counted = changed(store, {
        claim: async (request) => {
          const claimed = await store.claim(request)
          claims.push(...claimed.runs.map(({ id }) => id))
          return claimed
        },
      })
      const equipped = await openAt({ workflows: [reading], offload })
      const first = await equipped.work()
      const run = await equipped.start(reading, what === 'its input' ? 'x'.repeat(200) : 'x')
      if (what !== 'its input') await clock.advance('1s')
      await first.stop()
      await equipped.signal(run, 'mail', what === 'a message' ? 'y'.repeat(200) : 'y')

      const poor = await openAt({ workflows: [reading, quick], store: counted, logger })
      const worker = await poor.work({ concurrency: 1 })
      await clock.advance('1 min')
      expect(claims.filter((id) => id === run.id).length).toBeLessThan(20)
      expect(await after((await poor.start(quick)).result())).toBe('worked')
      const errors = logger.lines.filter(({ level }) => level === 'error')
      expect(errors).toHaveLength(1)
      expect(errors[0]?.message).toMatch(new RegExp(`${run.id} of "reading".*no \`offload\` port.*createHoldfast`))
      expect(['running', 'pending', 'waiting']).toContain(await run.status())

      const second = await openAt({ workflows: [reading], offload })
      await second.work()
      const end = await after(run.result().catch((error: unknown) => (error as Error).message))
      if (what === 'what it has to undo') expect([undone, end]).toEqual([[200], expect.stringContaining('No')])
      else expect(end).toBe(201)
      await worker.stop()
    },
  )

  function bucket(thresholdBytes: number): Offload & { readonly objects: Map<string, string> } {
    const objects = new Map<string, string>()
    return {
      objects,
      thresholdBytes,
      put: (text, { runId, seq }) => {
        objects.set(`${runId}/${seq}`, text)
        return Promise.resolve(`${runId}/${seq}`)
      },
      get: (reference) => Promise.resolve(objects.get(reference) ?? Promise.reject(new Error('No such object'))),
    }
  }

  const pages = workflow('pages', async (ctx, text: string) => {
    const doubled = await ctx.step('double', () => text + text)
    await ctx.sleep(1)
    const count = await ctx.step('count', () => doubled.length)
    return { doubled, count }
  })

  it.each([10_000, 0])('keeps large values out of the journal, with %i runs parked in memory', async (cachedRuns) => {
    const offload = bucket(100)
    const store = memoryStore()
    const holdfast = await open({ workflows: [pages], store, offload })
    await holdfast.work({ cachedRuns })
    const text = 'x'.repeat(200)
    const run = await holdfast.start(pages, text)
    expect(await run.result()).toEqual({ doubled: text + text, count: 400 })
    expect([...offload.objects.keys()]).toEqual([`${run.id}/1`, `${run.id}/2`, `${run.id}/6`])
    const journal = await holdfast.journal(run)
    expect(journal.map((entry) => entry.data)).toEqual([
      text,
      text + text,
      undefined,
      undefined,
      400,
      { doubled: text + text, count: 400 },
    ])
    const [kept] = await store.load([{ runId: run.id, after: 0, limit: 100 }])
    for (const entry of kept?.entries ?? []) expect(entry.data?.length ?? 0).toBeLessThan(100)
  })

  it('is not asked for small values', async () => {
    const offload = bucket(1_000)
    const holdfast = await openWorking([pages], { offload })
    await (await holdfast.start(pages, 'small')).result()
    expect(offload.objects.size).toBe(0)
  })

  it('that fails for a while delays a run and does not fail it', async () => {
    const offload = bucket(10)
    let failures = 3
    const flaky: Offload = {
      ...offload,
      put: (text, place) => {
        if (place.seq > 1 && failures-- > 0) return Promise.reject(new Error('Try later'))
        return offload.put(text, place)
      },
    }
    const holdfast = await openWorking([pages], { offload: flaky })
    expect(await (await holdfast.start(pages, 'x'.repeat(20))).result()).toMatchObject({ count: 40 })
  })

  it('leaves a text alone that only looks like one of its references', async () => {
    const codec: Codec = { encode: (value) => String(value), decode: (text) => text }
    const holdfast = await openWorking([echo], { codec, offload: bucket(100) })
    for (const text of ['offload:elsewhere', 'inline:x', 'inline:offload:x']) {
      expect(await (await holdfast.start(echo, text)).result()).toBe(text)
    }
  })
})

describe('a codec of one’s own', () => {
  const json = jsonCodec()
  const reverse = (text: string): string => text.split('').toReversed().join('')
  const reversing: Codec = {
    encode: (value, place) => reverse(json.encode(value, place)),
    decode: (text, place) => json.decode(reverse(text), place),
  }

  it('is used for input, results, errors and output, also on replay', async () => {
    const store = memoryStore()
    const mixed = workflow('mixed', async (ctx, name: string) => {
      const greeting = await ctx.step('greet', () => ({ text: `Hello, ${name}` }))
      const error = await ctx
        .step('fail', () => Promise.reject(new RangeError('Far')), { retry: 'none' })
        .catch((thrown: unknown) => thrown)
      await ctx.sleep(1)
      return { greeting, isRange: error instanceof RangeError, at: ctx.now() }
    })
    const holdfast = await open({ workflows: [mixed], codec: reversing, store })
    await holdfast.work({ cachedRuns: 0 })
    const run = await holdfast.start(mixed, 'Ada')
    const output = await run.result()
    expect(output).toMatchObject({ greeting: { text: 'Hello, Ada' }, isRange: true })
    expect(output.at).toBeInstanceOf(Date)
    const [kept] = await store.load([{ runId: run.id, after: 0, limit: 100 }])
    expect(kept?.entries[0]?.data).toBe('"adA"')
  })

  it('is given the place of every payload', async () => {
    const places: string[] = []
    const spying: Codec = {
      encode: (value, place) => {
        places.push(`${place.runId} ${place.seq} ${place.name}`)
        return json.encode(value, place)
      },
      decode: (text, place) => json.decode(text, place),
    }
    const holdfast = await openWorking([echo], { codec: spying })
    places.length = 0
    const run = await holdfast.start(echo, 1)
    await run.result()
    expect(places).toEqual([`${run.id} 1 null`, `${run.id} 2 echo`, `${run.id} 3 null`])
  })

  it('that throws refuses the value and harms nobody else', async () => {
    const picky: Codec = {
      encode: (value, place) => {
        if (value === 'poison') throw new Error('Not that')
        return json.encode(value, place)
      },
      decode: (text, place) => json.decode(text, place),
    }
    const holdfast = await openWorking([echo], { codec: picky })
    await expect(holdfast.start(echo, 'poison')).rejects.toMatchObject({
      code: 'NOT_STORABLE',
      cause: { message: 'Not that' },
    })
    expect(await (await holdfast.start(echo, 'fine')).result()).toBe('fine')
  })
})
