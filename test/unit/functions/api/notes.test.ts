// What a body may get wrong without harm: a note that cannot be stored, a time that is no whole millisecond, a step without a
// name, a promise that it forgets to await, a continuation whose schema takes its time.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { NewRun } from '../../../../src/core/model/new-run.ts'
import type { Schema } from '../../../../src/core/definition/schema.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig, unhandledIn } from '../../../support/function-rig.ts'

const loop: Record<string, unknown> = { big: 1n }
loop['self'] = loop

const child = workflow('child', () => null)
let children = 0
const prepare = (): NewRun => {
  children += 1
  const id = `01900000-0000-7000-8000-${children.toString(16).padStart(12, 'c')}`
  return { id, type: 'child', version: 1, first: { data: null } } as NewRun
}

describe('a note that cannot be stored', () => {
  it.each([
    ['a function', (): null => null],
    ['a cycle', loop],
    ['a symbol', Symbol('no')],
  ])('says why in its place, and the run goes on: %s', async (_, value) => {
    const rig = new FunctionRig()
    const flow = workflow('notes', async (ctx) => {
      ctx.log('a line', value)
      ctx.expose('shown', value)
      return ctx.step('after', () => 'went on')
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'went on' })
    expect(await held.story()).toEqual(['started', 'logged log', 'exposed shown', 'step-succeeded after', 'succeeded'])
    const [, logged, exposed] = await held.journal()
    for (const entry of [logged, exposed]) expect(entry?.data).toContain('cannot be stored')
    expect(logged?.data).toContain('a line')
    expect(rig.lines.filter(({ level }) => level === 'warn')).toHaveLength(2)
  })

  it('is not noted again by a replay, and shifts no other', async () => {
    const rig = new FunctionRig()
    const flow = workflow('notes', async (ctx) => {
      ctx.log('a line', loop)
      await ctx.sleep('1h')
      ctx.log('another')
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn('replayed')
    expect((await held.story()).filter((line) => line.startsWith('logged'))).toEqual(['logged log', 'logged log#2'])
  })
})

describe('times are whole milliseconds', () => {
  it('a fractional time to sleep until is rounded up, and none fires early', async () => {
    const rig = new FunctionRig()
    const flow = workflow('fraction', async (ctx) => {
      await ctx.sleepUntil(rig.clock.now() + 20.5)
    })
    const before = rig.clock.now()
    const held = await (await rig.start(flow)).begin()
    expect((await held.journal())[1]).toMatchObject({ meta: { conditions: [{ kind: 'time', at: before + 21 }] } })
    expect((await rig.run(held.runId)).due).toBe(before + 21)
    await held.goOn()
    expect(await held.status()).toBe('succeeded')
  })
})

describe('a time that no Date can hold', () => {
  it.each([1e300, -1e300, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, new Date(Number.NaN)])(
    'is refused at the call, on every store alike: %s',
    async (time) => {
      const rig = new FunctionRig()
      const flow = workflow('never', { retry: 'none' }, async (ctx) => void (await ctx.sleepUntil(time)))
      const held = await (await rig.start(flow)).begin()
      expect(await held.outcome()).toMatchObject({ status: 'failed', value: { code: 'INVALID_DURATION' } })
    },
  )
})

describe('a step without a name', () => {
  it('rejects, and does not throw', async () => {
    const rig = new FunctionRig()
    let how = ''
    const flow = workflow('nameless', async (ctx) => {
      const step = ctx.step('', () => 1)
      how = await step.catch((error: { readonly code: string }) => error.code).then(String)
    })
    const held = await (await rig.start(flow)).begin()
    expect([how, await held.status()]).toEqual(['INVALID_NAME', 'succeeded'])
  })
})

describe('a run that begins anew', () => {
  it('with an asynchronous schema and an open wait is not parked meanwhile', async () => {
    const rig = new FunctionRig()
    let check = (): void => undefined
    const slow: Schema<number, number> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value) => new Promise((resolve) => (check = () => resolve({ value: value as number }))),
      },
    }
    const flow = workflow('anew', { input: slow }, async (ctx) => {
      void ctx.receive('never').then()
      await ctx.continueAsNew(2)
    })
    const held = await (await rig.start(flow, 1)).begin()
    await rig.pass(3_600_000)
    expect([held.departure, await held.status()]).toEqual([null, 'running'])
    check()
    await rig.quiet()
    expect(held.departure).toMatchObject({ kind: 'continued', input: { data: '2' } })
  })
})

describe('a promise that the body forgets to await', () => {
  const warnings = (rig: FunctionRig): readonly string[] =>
    rig.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)

  it('gives one warning that names it, with its file and line, and nothing else', async () => {
    const rig = new FunctionRig({ prepare })
    const flow = workflow('forgetful', async (ctx) => {
      void ctx.step('forgotten', () => 1)
      void ctx.child(child)
      await ctx.step('awaited', () => 2)
    })
    await (await rig.start(flow)).begin()
    const [warning = '', ...more] = warnings(rig)
    expect(more).toEqual([])
    expect(warning).toMatch(/wait "child" at .*notes\.test\.ts:\d+:\d+/)
    expect(warning).toMatch(/step "forgotten" at .*notes\.test\.ts:\d+:\d+/)
    expect(warning).not.toMatch(/"awaited"/)
  })

  it('gives the warning for every kind of wait, each at its own line, and for none that was awaited or raced', async () => {
    const rig = new FunctionRig({ prepare })
    const other = '01900000-0000-7000-8000-00000000000c'
    const flow = workflow('forgetful', async (ctx) => {
      void ctx.receive('mail')
      void ctx.sleepUntil(rig.clock.now() + 1)
      void ctx.waitFor(other)
      void ctx.token()
      void ctx.race({ yes: ctx.receive('yes'), no: ctx.receive('no') })
      const [first, second] = [ctx.sleep(1), ctx.sleep(1)]
      void first
      await second
      void ctx.sleep(1)
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn()
    const [warning = '', ...more] = warnings(rig)
    expect(more).toEqual([])
    const lines = readFileSync(fileURLToPath(import.meta.url), 'utf8').split('\n')
    const said = [...warning.matchAll(/wait "([^"]+)" at [^,]*notes\.test\.ts:(\d+):\d+/g)].map(
      ([, name, line]) => [name, lines[Number(line) - 1]?.trim()] as const,
    )
    expect(Object.fromEntries(said)).toEqual({
      mail: "void ctx.receive('mail')",
      sleep: 'void ctx.sleepUntil(rig.clock.now() + 1)',
      run: 'void ctx.waitFor(other)',
      token: 'void ctx.token()',
      race: "void ctx.race({ yes: ctx.receive('yes'), no: ctx.receive('no') })",
      'sleep#2': 'const [first, second] = [ctx.sleep(1), ctx.sleep(1)]',
      'sleep#4': 'void ctx.sleep(1)',
    })
  })

  it('a step is named with its file and line if it is under way when the body returns', async () => {
    const rig = new FunctionRig()
    const flow = workflow('forgetful', async (ctx) => {
      void ctx.step('forgotten', rig.gated)
      void ctx.branch('eu', (eu) => eu.step('inner', rig.gated))
    })
    const held = await (await rig.start(flow)).begin()
    const [warning = '', ...more] = warnings(rig)
    expect(more).toEqual([])
    expect(warning).toMatch(/step "forgotten" at .*notes\.test\.ts:\d+:\d+/)
    expect(warning).toMatch(/step "eu\/inner" at .*notes\.test\.ts:\d+:\d+/)
    await rig.succeed('forgotten')
    await rig.succeed('eu/inner')
    expect([warnings(rig).length, await held.status()]).toEqual([1, 'succeeded'])
  })

  it('and that has failed by then is named with its error and its place, and the run succeeds', async () => {
    const rig = new FunctionRig()
    const flow = workflow('forgetful', { retry: 'none' }, async (ctx) => {
      void ctx.step('broken', () => {
        throw new Error('No room')
      })
      void ctx.branch('eu', (eu) => eu.step('inner', () => Promise.reject(new Error('No car'))))
      void ctx.step('', () => 1)
      void ctx.step('caught', () => Promise.reject(new Error('fine'))).catch(() => 1)
      const later = ctx.step('later', () => Promise.reject(new Error('awaited')))
      await ctx.step('fine', () => 1)
      await Promise.allSettled([later])
      return 'done'
    })
    const unhandled = await unhandledIn(async () => {
      const held = await (await rig.start(flow)).begin()
      expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'done' })
    })
    expect(unhandled).toEqual([])
    const [warning = '', ...more] = warnings(rig)
    expect(more).toEqual([])
    expect(warning).toMatch(/step "broken" at .*notes\.test\.ts:\d+:\d+: No room/)
    expect(warning).toMatch(/ctx\.branch "eu" at .*notes\.test\.ts:\d+:\d+: No car/)
    expect(warning).toMatch(/ctx\.step at .*notes\.test\.ts:\d+:\d+: A step needs a name/)
    expect(warning).not.toMatch(/caught|awaited|fine/)
  })

  it('and that fails after the body has returned is named twice: as not awaited, and then with its error', async () => {
    const rig = new FunctionRig()
    const flow = workflow('forgetful', { retry: 'none' }, async (ctx) => {
      void ctx.step('late', rig.gated)
    })
    const held = await (await rig.start(flow)).begin()
    await rig.fail('late', new Error('No room'))
    const [first = '', second = '', ...more] = warnings(rig)
    expect([more, await held.status()]).toEqual([[], 'succeeded'])
    expect(first).toMatch(/without awaiting step "late" at .*notes\.test\.ts:\d+:\d+/)
    expect(second).toMatch(/step "late" at .*notes\.test\.ts:\d+:\d+: No room/)
  })

  it('and that has succeeded before the body returns is named, too; those that the body awaited late are not', async () => {
    const rig = new FunctionRig()
    const flow = workflow('forgetful', { retry: 'none' }, async (ctx) => {
      const late = Array.from({ length: 20 }, (_, at) => ctx.step(`late-${at}`, () => at))
      await ctx.step('between', () => undefined)
      await ctx.step('and between', () => undefined)
      for (const one of late) await one
      void ctx.step('forgotten', () => 'parcel')
      await ctx.step('last', () => undefined)
      return 'done'
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'done' })
    const [warning = '', ...more] = warnings(rig)
    expect(more).toEqual([])
    expect(warning).toMatch(/without awaiting step "forgotten" at .*notes\.test\.ts:\d+:\d+\. /)
  })

  it('gives no warning when the body throws: then what it would have awaited is no news', async () => {
    const rig = new FunctionRig()
    const flow = workflow('stops', { retry: 'none' }, async (ctx) => {
      const one = ctx.step('one', () => Promise.reject(new Error('1')))
      const two = ctx.step('two', () => Promise.reject(new Error('2')))
      await one
      await two
    })
    const held = await (await rig.start(flow)).begin()
    expect([await held.status(), warnings(rig)]).toEqual(['failed', [`Run ${held.runId} of "stops" failed: 1`]])
  })

  it('gives no warning if it was awaited later, alone, in a race, or lost one', async () => {
    const rig = new FunctionRig({ prepare })
    const flow = workflow('mindful', async (ctx) => {
      const step = ctx.step('later', () => 1)
      const nap = ctx.sleep(10)
      const long = ctx.sleep('1h')
      await ctx.step('first', () => 2)
      await step
      await ctx.race({ nap, long, never: ctx.receive('never') })
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn()
    expect(await held.status()).toBe('succeeded')
    expect(warnings(rig)).toEqual([])
  })

  it.each(['race', 'any'] as const)('gives no warning if it lost a Promise.%s: that has awaited it', async (how) => {
    const rig = new FunctionRig()
    const flow = workflow('quick', async (ctx) => {
      await Promise[how]([ctx.step('quick', () => 1), ctx.step('slow', rig.gated), ctx.sleep('1h')])
    })
    const held = await (await rig.start(flow)).begin()
    await rig.succeed('slow', 2)
    expect([await held.status(), warnings(rig)]).toEqual(['succeeded', []])
  })

  it('is warned of once, and not by each replay of a body that waits', async () => {
    const rig = new FunctionRig({ prepare })
    const flow = workflow('forgetful', async (ctx) => {
      void ctx.child(child)
      await ctx.sleep('1h')
    })
    const held = await (await rig.start(flow)).begin()
    expect(warnings(rig)).toEqual([])
    await held.goOn('replayed')
    expect(warnings(rig)).toHaveLength(1)
  })
})
