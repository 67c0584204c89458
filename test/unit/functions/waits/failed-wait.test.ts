// Every call of the context that returns a promise or a wait rejects, and never throws: thrown in a callback, the error would
// end the process.

import { describe, expect, it } from 'vitest'
import type { Definition } from '../../../../src/core/definition/definition.ts'
import type { Context } from '../../../../src/functions/api/context.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { createScopes } from '../../../../src/async-scopes.ts'
import { FunctionRig } from '../../../support/function-rig.ts'

type Make = (ctx: Context) => PromiseLike<unknown>

const wrong = undefined as never

const makers: Readonly<Record<string, Make>> = {
  step: (ctx) => ctx.step('', () => 1),
  transaction: (ctx) => ctx.transaction('', () => 1),
  branch: (ctx) => ctx.branch('', () => 1),
  sleep: (ctx) => ctx.sleep('nonsense' as never),
  sleepUntil: (ctx) => ctx.sleepUntil(wrong),
  receive: (ctx) => ctx.receive(5 as never),
  token: (ctx) => ctx.token(5 as never),
  waitFor: (ctx) => ctx.waitFor(wrong),
  child: (ctx) => ctx.child(wrong),
  start: (ctx) => ctx.start(wrong),
  until: (ctx) => ctx.until('', () => 1),
  withResource: (ctx) => ctx.withResource(wrong, wrong, wrong),
  continueAs: (ctx) => ctx.continueAs(wrong),
  'race of no waits': (ctx) => ctx.race({}),
  'race of nothing': (ctx) => ctx.race(wrong),
  'race of a promise': (ctx) => ctx.race({ a: Promise.resolve() } as never),
  'race of a wait that could not be made': (ctx) =>
    ctx.race({ a: ctx.receive('a'), b: ctx.sleep('nonsense' as never) }),
  'race of a race that could not be made': (ctx) => ctx.race({ a: ctx.race({}), b: ctx.receive('b') }),
  'all of nothing': (ctx) => ctx.all(wrong),
  'all of a promise': (ctx) => ctx.all([Promise.resolve()] as never),
  'all of a wait that could not be made': (ctx) => ctx.all([ctx.sleep('nonsense' as never)]),
}

async function resultOf(rig: FunctionRig, flow: Definition): Promise<unknown> {
  const held = await rig.start(flow)
  await held.begin()
  await rig.quiet()
  const { value } = await held.outcome()
  return value
}

describe.each(Object.entries(makers))('a wrong ctx.%s', (_, make) => {
  it('rejects when it is awaited', async () => {
    const rig = new FunctionRig()
    const flow = workflow('wrong', async (ctx) => {
      const made = make(ctx)
      await ctx.step('between', () => 1)
      return Promise.resolve(made).then(
        () => 'settled',
        (error: unknown) => (error as { code: string }).code,
      )
    })
    expect(await resultOf(rig, flow)).toMatch(/^INVALID_/)
    expect(rig.lines.filter(({ message }) => message.includes('returned without awaiting'))).toEqual([])
  })

  it('is a warning with file and line if it is never awaited, and ends no process', async () => {
    const rig = new FunctionRig()
    const flow = workflow('wrong', async (ctx) => {
      void make(ctx)
      return ctx.step('after', () => 'done')
    })
    expect(await resultOf(rig, flow)).toBe('done')
    const warnings = rig.lines.filter(({ message }) => message.includes('returned without awaiting them'))
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining('failed-wait.test.ts:')])
  })
})

it('a wait that a callback of a step makes does not end the process', async () => {
  const rig = new FunctionRig({ scopes: createScopes() })
  const thrown: unknown[] = []
  const flow = workflow('callback', async (ctx) => {
    const inCallback = (done: () => void): void => {
      try {
        void ctx.sleep('1h')
      } catch (error) {
        thrown.push(error)
      }
      done()
    }
    await ctx.step('outer', () => new Promise<void>((done) => setImmediate(inCallback, done)))
    return 'done'
  })
  expect(await resultOf(rig, flow)).toBe('done')
  expect(thrown).toEqual([])
  expect(rig.lines.map(({ message }) => message).join()).toContain('ctx.sleep was called inside of step "outer"')
})
