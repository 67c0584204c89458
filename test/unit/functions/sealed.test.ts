// The context is the body's: whatever a step asks of it is refused with the name of that step, before and after the step has
// awaited something, and leaves nothing behind.

import { describe, expect, it } from 'vitest'
import { decider, decision } from '../../../src/deciders/index.ts'
import { createScopes } from '../../../src/async-scopes.ts'
import type { Host } from '../../../src/core/definition/definition.ts'
import { topic } from '../../../src/core/definition/declared-topic.ts'
import type { Context } from '../../../src/functions/api/context.ts'
import type { Wait } from '../../../src/functions/waits/wait.ts'
import { workflow, type Body, type Workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, unhandledIn, type Held, type RigOptions } from '../../support/function-rig.ts'

const other = workflow('other', () => null)
const aTopic = topic('inner')
const aRun = '01900000-0000-7000-8000-00000000abcd'

/** Every method of the context that asks something of the run. */
const aDecider = decider('order', {
  initial: () => 0,
  evolve: (count, _event: { type: 'Paid' }) => count + 1,
  decide: (_count, _input: { type: 'Pay'; id: string }) => decision({ type: 'Paid' }),
  id: 'id',
})

const asks: Readonly<Record<string, (ctx: Context, made: Wait<unknown>) => unknown>> = {
  step: (ctx) => ctx.step('inner', () => 1),
  transaction: (ctx) => ctx.transaction('inner', () => 1),
  branch: (ctx) => ctx.branch('inner', () => 1),
  sleep: (ctx) => ctx.sleep(1),
  sleepUntil: (ctx) => ctx.sleepUntil(1),
  receive: (ctx) => ctx.receive('inner'),
  race: (ctx, made) => ctx.race({ made }),
  all: (ctx, made) => ctx.all([made]),
  waitFor: (ctx) => ctx.waitFor(aRun),
  child: (ctx) => ctx.child(other),
  start: (ctx) => ctx.start(other),
  token: (ctx) => ctx.token(),
  signal: (ctx) => ctx.signal(aRun, 'inner'),
  broadcast: (ctx) => ctx.broadcast(aTopic, 1),
  execute: (ctx) => ctx.execute(aDecider, { type: 'Pay', id: '1' }),
  expose: (ctx) => ctx.expose('inner', 1),
  until: (ctx) => ctx.until('inner', () => true),
  now: (ctx) => ctx.now(),
  random: (ctx) => ctx.random(),
  uuid: (ctx) => ctx.uuid(),
  log: (ctx) => ctx.log('inner'),
  progress: (ctx) => ctx.progress(0.5),
  withResource: (ctx) =>
    ctx.withResource(
      () => 1,
      () => undefined,
      async () => 1,
    ),
  patched: (ctx) => ctx.patched('inner'),
  continueAsNew: (ctx) => ctx.continueAsNew(undefined),
  continueAs: (ctx) => ctx.continueAs(other),
}

/** Those that a step may use. */
const allowed = ['services', 'run', 'abortSignal', 'isCancelled']
/** How the context does its own work. */
const own = [
  'constructor',
  'enter',
  'branchOut',
  'issue',
  'begin',
  'wait',
  'waitFrame',
  'failedFrame',
  'outsideStep',
  'encodeNote',
  'send',
  'identify',
  'read',
]
const notes = ['record', 'note', 'refusal', 'promised']

const following = (): RigOptions => ({ scopes: createScopes({ callsOfName: Infinity }) })
/** As on older versions of Node, once a step has been performed some times: only the trace of awaits knows. */
const unfollowed = (): RigOptions => ({ scopes: createScopes({ callsOfName: 0 }) })
const transact: Host['transact'] = () => Promise.reject(new Error('Nothing is asked of it'))

async function begun(body: Body<unknown, unknown>, options: RigOptions = following()): Promise<[Held, FunctionRig]> {
  const rig = new FunctionRig(options)
  const flow: Workflow<unknown, unknown> = workflow('sealed', { retry: 'none' }, body)
  return [await (await rig.start(flow)).begin(), rig]
}

type When = 'before' | 'after' | 'after, unfollowed,'

/** What comes of asking that inside a step, and of the run. */
async function askedInside(method: string, when: When): Promise<[unknown, Held]> {
  let refusal: unknown = 'nothing was refused'
  const [held] = await begun(
    async (ctx) => {
      const made = ctx.receive('made')
      await ctx.step('outer', async () => {
        if (when !== 'before') await new Promise((resolve) => setImmediate(resolve))
        try {
          await asks[method]?.(ctx, made)
        } catch (error) {
          refusal = error
        }
      })
    },
    { ...(when === 'after, unfollowed,' ? unfollowed() : following()), transact },
  )
  return [refusal, held]
}

const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))
const deepCalls: readonly (readonly [string, (spec: () => void) => unknown])[] = [
  [
    'in a function that the step awaits',
    async (spec) => {
      const inner = async (): Promise<void> => {
        await turn()
        spec()
      }
      await inner()
    },
  ],
  ['in a promise that the step returns', (spec) => turn().then(spec)],
  ['in one of several that it awaits', (spec) => Promise.all([turn(), turn().then(spec)])],
  [
    'after an error',
    async (spec) => {
      try {
        await Promise.reject(new Error('No'))
      } catch {
        await turn()
        spec()
      }
    },
  ],
]

describe('inside a step', () => {
  it('every method of the context is known to these tests', async () => {
    let names: readonly string[] = []
    await begun((ctx) => void (names = Object.getOwnPropertyNames(Object.getPrototypeOf(ctx))))
    const known = new Set([...Object.keys(asks), ...allowed, ...own, ...notes, 'toJSON'])
    expect(names.filter((name) => !known.has(name))).toEqual([])
  })

  const cases = Object.keys(asks).flatMap((method) => [
    { method, when: 'before' as const },
    { method, when: 'after' as const },
    { method, when: 'after, unfollowed,' as const },
  ])

  it.each(cases)('ctx.$method is refused $when it awaits something, and leaves nothing behind', async (given) => {
    const { method, when } = given
    let asked: [unknown, Held] | null = null
    const unhandled = await unhandledIn(async () => void (asked = await askedInside(method, when)))
    const [refusal, held] = asked as unknown as [unknown, Held]
    expect(refusal).toMatchObject({ code: 'INVALID_OPTION', details: { step: 'outer' } })
    expect((refusal as Error).message).toMatch(new RegExp(`^ctx\\.${method} was called inside of step "outer"`))
    expect(await held.story()).toEqual(['started', 'step-succeeded outer', 'succeeded'])
    expect(unhandled).toEqual([])
  })

  it('a wait of the body that is awaited there says so', async () => {
    let refusal: unknown = 'nothing was refused'
    await begun(async (ctx) => {
      const wait = ctx.sleep('1h')
      await ctx.step('outer', async () => {
        await Promise.resolve(wait).catch((error: unknown) => (refusal = error))
      })
    })
    expect(refusal).toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringMatching(
        /^A wait of ctx\.sleep was awaited inside of step "outer"\. Await it in the body/,
      ) as string,
    })
  })

  it.each(['before', 'after'])(
    'an undo function, and those of a resource, are named when they call %s an await',
    async (when) => {
      const said: string[] = []
      await begun(async (ctx) => {
        const call = async (): Promise<void> => {
          if (when === 'after') await Promise.resolve()
          try {
            ctx.uuid()
          } catch (error) {
            said.push((error as Error).message)
          }
        }
        if (when === 'before') await ctx.withResource(call, call, async () => undefined)
        await ctx.step('paid', () => 1, { undo: call })
        throw new Error('undo it')
      })
      const resource = ['acquire', 'release'].map((name) => `inside of the ${name} function of ctx.withResource`)
      const expected = [...(when === 'before' ? resource : []), 'inside of the undo of step "paid"']
      expect(said).toEqual(expected.map((text) => expect.stringContaining(text) as string))
    },
  )

  it.each(deepCalls)('an unfollowed call is refused %s', async (_, inner) => {
    let refusal: unknown = 'nothing was refused'
    await begun(async (ctx) => {
      const spec = (): void => {
        try {
          ctx.uuid()
        } catch (error) {
          refusal = error
        }
      }
      await ctx.step('outer', () => inner(spec))
    }, unfollowed())
    expect(refusal).toMatchObject({ code: 'INVALID_OPTION', details: { step: 'outer' } })
  })

  it('an unfollowed call of the body beside a step that is under way is its own', async () => {
    let isSlow = true
    const [held] = await begun(async (ctx) => {
      const beside = async (): Promise<unknown> => {
        await turn()
        const own = await ctx.step('own', () => isSlow)
        isSlow = false
        return own
      }
      const slow = async (): Promise<void> => {
        while (isSlow) await turn()
      }
      return Promise.all([ctx.step('slow', slow), beside(), ctx.step('third', () => 1)])
    }, unfollowed())
    await expect.poll(() => held.status()).toBe('succeeded')
  })

  it('what shows the run stays allowed', async () => {
    let seen: unknown = null
    const [held] = await begun((ctx) =>
      ctx.step('outer', async () => {
        await Promise.resolve()
        seen = [ctx.services, ctx.run.type, ctx.abortSignal.aborted, ctx.isCancelled()]
      }),
    )
    expect([seen, await held.status()]).toEqual([[{}, 'sealed', false, false], 'succeeded'])
  })

  it('an undo is refused, too', async () => {
    let refusal: unknown = null
    await begun(async (ctx) => {
      const undo = async (): Promise<void> => {
        await Promise.resolve()
        try {
          ctx.uuid()
        } catch (error) {
          refusal = error
        }
      }
      await ctx.step('outer', () => 1, { undo })
      throw new Error('Enough')
    })
    expect(refusal).toMatchObject({ details: { step: 'outer' } })
  })

  it('the context of another run is not its own, and not refused', async () => {
    let outside: Context | null = null
    const rig = new FunctionRig(following())
    const lender = workflow('lender', async (ctx) => {
      outside = ctx
      await ctx.step('wait', rig.gated)
    })
    await (await rig.start(lender)).begin()
    let uuid: unknown = null
    const borrower = workflow('borrower', (ctx) => ctx.step('outer', () => void (uuid = outside?.uuid())))
    await (await rig.start(borrower)).begin()
    expect(uuid).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe('a refused call shifts nothing', () => {
  it('the body gets the same ids after a replay, though a step tried to make one', async () => {
    const seen: unknown[] = []
    const [held, rig] = await begun(async (ctx) => {
      const first = ctx.uuid()
      const tried = await ctx.step('outer', async () => {
        await Promise.resolve()
        try {
          return ctx.uuid()
        } catch {
          return 'refused'
        }
      })
      seen.push([first, tried, ctx.uuid()])
      await ctx.sleep('1h')
    })
    await rig.pass(1)
    await held.goOn('replayed')
    expect(seen).toHaveLength(2)
    expect(seen[1]).toEqual(seen[0])
    expect((seen[0] as readonly unknown[])[1]).toBe('refused')
  })

  it.each(['awaited', 'raced'] as const)('a wait of the body that a step has %s is still the body’s', async (how) => {
    const ends: unknown[] = []
    const [held, rig] = await begun(async (ctx) => {
      const hour = ctx.sleep('1h')
      const tried = await ctx.step('outer', async () => {
        try {
          await (how === 'raced' ? ctx.race({ hour }) : hour)
          return 'nothing was refused'
        } catch (error) {
          return (error as Error).message
        }
      })
      await hour
      ends.push(tried)
    })
    expect(await held.status()).toBe('waiting')
    const { due } = await rig.run(held.runId)
    expect((due ?? 0) - rig.clock.now()).toBe(3_600_000)
    await held.goOn('replayed')
    expect(ends).toEqual([expect.stringMatching(/was (?:awaited|called) inside of step "outer"/)])
    expect(await held.status()).toBe('succeeded')
  })
})

describe('createScopes', () => {
  const later = async (scopes: ReturnType<typeof createScopes>): Promise<object | undefined> => {
    await Promise.resolve()
    return scopes.current()
  }

  it('follows the first calls of each step, and no others', async () => {
    const scopes = createScopes({ callsOfName: 2 })
    const seen: unknown[] = []
    for (const name of ['a', 'a', 'a', 'b', 'a', 'b', 'b']) {
      const scope = {}
      const isFollowed = scopes.follows('test', name)
      if (isFollowed) expect(await scopes.run(scope, () => later(scopes))).toBe(scope)
      seen.push(`${name} ${String(isFollowed)}`)
    }
    expect(seen).toEqual(['a true', 'a true', 'a false', 'b true', 'a false', 'b true', 'b false'])
  })

  it('follows calls beside each other, each with its own scope, until the last is over', async () => {
    const scopes = createScopes({ callsOfName: 2 })
    const [a, b] = [{ name: 'a' }, { name: 'b' }]
    let go = (): void => undefined
    const passed = new Promise<void>((resolve) => (go = resolve))
    const slow = scopes.run(a, () => passed.then(() => scopes.current()))
    expect(await scopes.run(b, () => later(scopes))).toBe(b)
    go()
    expect(await slow).toBe(a)
    expect(scopes.current()).toBe(undefined)
  })

  it('is over with a call that throws, rejects or returns at once', async () => {
    const scopes = createScopes({ callsOfName: 10 })
    const no = new Error('No')
    expect(scopes.run({}, () => 1)).toBe(1)
    expect(() =>
      scopes.run({}, () => {
        throw no
      }),
    ).toThrow(no)
    await expect(scopes.run({}, () => Promise.reject(no))).rejects.toBe(no)
    expect(scopes.current()).toBe(undefined)
  })
})
