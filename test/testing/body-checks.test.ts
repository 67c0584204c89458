// A body that does what a replay could not repeat fails the test that runs it, and the error says where and what to do instead; also
// when every run comes to the end that it should.

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { workflow, type Context, type HoldfastError } from '../../src/index.ts'
import { crashEverywhere, createRecordingLogger, createTest } from '../../src/testing/index.ts'

const file = import.meta.filename
const source = readFileSync(file, 'utf8').split('\n')

/** The place of a line by the comment at its end. */
function placeOf(mark: string): string {
  return `${file}:${source.findIndex((line) => line.endsWith(`// ${mark}`)) + 1}:`
}

async function findingsOf(body: (ctx: Context) => unknown): Promise<HoldfastError | null> {
  const careless = workflow('careless', { retry: { maxAttempts: 1 } }, body)
  const t = await createTest({ workflows: [careless] })
  try {
    await t.start(careless, undefined)
    await t.drain({ time: true })
    return null
  } catch (error) {
    return error as HoldfastError
  } finally {
    await t.close()
  }
}

describe('a body that uses the machine is found with file and line, and the error says what to use instead:', () => {
  it.each<[string, string, string, (ctx: Context) => unknown]>([
    ['the clock', 'Date.now()', 'ctx.now()', () => void Date.now()], // the clock
    ['a date', 'new Date()', 'ctx.now()', () => void new Date()], // a date
    ['a date as text', 'new Date()', 'ctx.now()', () => void Date()], // a date as text
    ['a stopwatch', 'performance.now()', 'ctx.now()', () => void performance.now()], // a stopwatch
    ['chance', 'Math.random()', 'ctx.random()', () => void Math.random()], // chance
    ['an id', 'crypto.randomUUID()', 'ctx.uuid()', () => void crypto.randomUUID()], // an id
    ['an imported id', 'crypto.randomUUID()', 'ctx.uuid()', () => void randomUUID()], // an imported id
    ['bytes', 'crypto.getRandomValues()', 'ctx.random()', () => void crypto.getRandomValues(new Uint8Array(1))], // bytes
    ['the network', 'fetch()', 'ctx.step(name', async () => void (await fetch('data:text/plain,x'))], // the network
    ['a timer', 'setTimeout()', 'ctx.sleep()', () => new Promise((done) => setTimeout(done, 1))], // a timer
    ['an imported timer', 'setTimeout()', 'ctx.sleep()', () => sleep(1)], // an imported timer
    ['an interval', 'setInterval()', 'ctx.sleep()', () => clearInterval(setInterval(() => undefined, 1))], // an interval
    ['a turn', 'setImmediate()', 'ctx.sleep()', () => new Promise((done) => setImmediate(done))], // a turn
  ])('%s', async (mark, what, instead, body) => {
    const found = await findingsOf(async (ctx) => void (await body(ctx)))
    expect(found).toMatchObject({ code: 'BODY_UNSAFE', family: 'usage' })
    expect(found?.message).toContain(`The body of "careless" calls ${what} outside of a step, at ${placeOf(mark)}`)
    expect(found?.message).toContain(instead)
    expect(found?.details['findings']).toHaveLength(1)
  })

  it('after it has awaited steps, waits and others, in a branch, and beside a resource', async () => {
    const careful = workflow('careful', {}, async (ctx) => {
      await ctx.step('one', () => 1)
      Date.now() // after a step
      await ctx.sleep('1 min')
      Date.now() // after a wait
      await Promise.all([ctx.step('two', () => 2), ctx.step('three', () => 3)])
      Date.now() // after several
      await ctx.branch('branch', async (inner) => {
        Date.now() // in a branch
        await inner.step('inner', () => 1)
        Date.now() // in a branch, later
      })
      const use = async (): Promise<void> => void Date.now() // beside a resource
      await ctx.withResource(
        () => 1,
        () => undefined,
        use,
      )
    })
    const logger = createRecordingLogger()
    await using t = await createTest({ workflows: [careful], bodyChecks: 'warn', logger })
    await t.start(careful)
    await t.drain({ time: true })
    const marks = ['after a step', 'after a wait', 'after several', 'in a branch', 'in a branch, later']
    expect(logger.messages('warn')).toEqual(
      [...marks, 'beside a resource'].map((mark) => expect.stringContaining(placeOf(mark)) as string),
    )
  })

  it('a function that the body calls is named, and not what that calls in a library', async () => {
    const now = (): Date => new Date() // in a function
    const found = await findingsOf(async () => void now())
    expect(found?.message).toContain(placeOf('in a function'))
  })

  it('all that it does at one time is reported at once', async () => {
    const found = await findingsOf(async (ctx) => {
      Math.random()
      await ctx.step('work', () => 1)
      Date.now()
    })
    expect(found?.details['findings']).toHaveLength(2)
  })

  it('once, however often the body does it', async () => {
    const found = await findingsOf(async (ctx) => {
      for (let nth = 0; nth < 5; nth += 1) {
        Math.random()
        await ctx.step('work', () => nth)
      }
    })
    expect(found?.details['findings']).toHaveLength(1)
  })
})

describe('nothing is found of', () => {
  const useAll = async (): Promise<number> => {
    setImmediate(() => undefined)
    await sleep(1)
    await fetch('data:text/plain,x')
    return Date.now() + Math.random() + performance.now() + Number(new Date()) + randomUUID().length
  }

  it('steps, their undo, conditions and resources, which may use the machine', async () => {
    const found = await findingsOf(async (ctx) => {
      await ctx.step('work', useAll, { undo: useAll })
      await ctx.until('ready', useAll)
      await ctx.withResource(useAll, useAll, () => ctx.step('within', useAll))
      throw new Error('Undo it all')
    })
    expect(found).toBeNull()
  })

  it('what the engine does for a body, nor of what ctx gives', async () => {
    const child = workflow('child', {}, async () => 1)
    const all = workflow('all', {}, async (ctx) => {
      const first = await ctx.race({ ok: ctx.receive('never'), late: ctx.sleep('1h') })
      const values = [ctx.now(), ctx.random(), ctx.uuid(), new Date(0), Date.UTC(2030)]
      ctx.log('a line')
      ctx.expose('values', values)
      await ctx.all([ctx.child(child), ctx.child(child)])
      await ctx.sleepUntil(new Date('2030-01-01T02:00:00Z'))
      return first.tag
    })
    await using t = await createTest({ workflows: [all, child], cachedRuns: 0 })
    const run = await t.start(all)
    await t.drain({ time: true })
    expect(await run.result()).toBe('late')
  })

  it('the test itself, whatever it does beside a body', async () => {
    const idle = workflow('idle', {}, async (ctx) => ctx.receive('go'))
    await using t = await createTest({ workflows: [idle] })
    const run = await t.start(idle)
    await sleep(1)
    await t.drain()
    await run.signal('go')
    expect(Date.now()).toBeGreaterThan(0)
    await t.drain()
  })
})

describe('a step that nobody awaits', () => {
  it('is found with file and line when the body returns before it ends', async () => {
    const found = await findingsOf(async (ctx) => {
      void ctx.step('mail', () => sleep(5)) // floating
    })
    expect(found).toMatchObject({ code: 'BODY_UNSAFE' })
    expect(found?.message).toContain(`The body of "careless" never awaits step "mail", at ${placeOf('floating')}`)
    expect(found?.message).toContain('Promise.all()')
  })

  it('is found also if it ended long before the body did', async () => {
    const found = await findingsOf(async (ctx) => {
      void ctx.step('early', () => 1) // floating early
      await ctx.sleep('1 min')
    })
    expect(found?.message).toContain(`never awaits step "early", at ${placeOf('floating early')}`)
  })

  it('is found if it failed, once', async () => {
    const found = await findingsOf(async (ctx) => {
      void ctx.step('fails', () => Promise.reject(new Error('No')), { retry: 'none' }) // floating failure
      await ctx.sleep('1 min')
    })
    expect(found?.message).toContain(`never awaits step "fails", at ${placeOf('floating failure')}`)
    expect(found?.details['findings']).toHaveLength(1)
  })

  it('is fine if the body awaits it later, or it lost a race; and so is a deadline that is of no use any more', async () => {
    const found = await findingsOf(async (ctx) => {
      ctx.sleep('30 days')
      const early = ctx.step('early', () => 1)
      await ctx.sleep('1 min')
      await Promise.race([ctx.step('one', () => 1), ctx.step('two', () => 2)])
      return early
    })
    expect(found).toBeNull()
  })
})

describe('the author of the test', () => {
  const careless = workflow('careless', {}, async () => Date.now()) // careless

  it('learns it from close() if nothing said it before, and only once', async () => {
    const t = await createTest({ workflows: [careless] })
    expect(await (await t.start(careless)).result()).toBe(t.now.getTime())
    await expect(t.close()).rejects.toMatchObject({ code: 'BODY_UNSAFE' })
    await t.close()
  })

  it('learns it from advance() and from crash() too', async () => {
    for (const act of ['advance', 'crash'] as const) {
      await using t = await createTest({ workflows: [careless] })
      await t.start(careless)
      await expect(act === 'advance' ? t.advance('1s') : t.crash()).rejects.toThrow(placeOf('careless'))
    }
  })

  it('may have a line in the log instead', async () => {
    const logger = createRecordingLogger()
    await using t = await createTest({ workflows: [careless], bodyChecks: 'warn', logger })
    await t.start(careless)
    await t.drain()
    expect(logger.messages('warn')).toEqual([expect.stringContaining(placeOf('careless'))])
  })

  it('may switch it off: then the process is left alone', async () => {
    const before = [Date, setTimeout]
    await using t = await createTest({ workflows: [careless], bodyChecks: 'off' })
    expect([Date, setTimeout]).toEqual(before)
    const run = await t.start(careless)
    await t.drain()
    expect(await run.result()).toBeLessThan(t.now.getTime())
  })

  it('learns what bodyChecks can be', async () => {
    await expect(createTest({ workflows: [careless], bodyChecks: 'on' } as never)).rejects.toThrow(
      /'error', 'warn' or 'off'/,
    )
  })
})

describe('crashEverywhere', () => {
  const logs = workflow('logs', {}, async (ctx) => {
    const lines = [`began at ${Date.now()}`] // harmless
    await ctx.step('work', () => 1)
    return lines.length
  })

  it('finds what changes nothing, too', async () => {
    await expect(crashEverywhere(logs, undefined)).rejects.toMatchObject({
      code: 'CRASH_UNSAFE',
      message: expect.stringContaining(
        `The body of "logs" calls Date.now() outside of a step, at ${placeOf('harmless')}`,
      ) as string,
      details: { fault: 'body' },
    })
  })

  it('finds a step that nobody awaits', async () => {
    const floating = workflow('floating', {}, async (ctx) => void ctx.step('mail', () => 1))
    await expect(crashEverywhere(floating, undefined)).rejects.toThrow(/never awaits step "mail"/)
  })

  it('only logs it, once for all trials, or does not look, if it is asked to', async () => {
    const logger = createRecordingLogger()
    await crashEverywhere(logs, undefined, { bodyChecks: 'warn', logger })
    const found = logger.messages('warn').filter((message) => message.startsWith('The body of'))
    expect(found).toEqual([expect.stringContaining(placeOf('harmless'))])
    await crashEverywhere(logs, undefined, { bodyChecks: 'off' })
  })
})
