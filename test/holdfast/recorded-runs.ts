// Runs of every kind, each brought to an end or to where it waits, for tests that replay their journals.

import {
  topic,
  workflow,
  type Context,
  type Holdfast,
  type RunHandle,
  type StartOptions,
  type Workflow,
} from 'holdfast'
import type { Definition } from '../../src/core/definition/definition.ts'
import type { VirtualWorld } from './virtual-world.ts'

/** What was done outside of the journals. */
export const effects: string[] = []

const did = <Value>(what: string, value: Value): Value => {
  effects.push(what)
  return value
}

const refuse = (what: string): never => {
  effects.push(what)
  throw new Error(`${what} is refused`)
}

export interface Recorded {
  readonly workflow: Workflow<void, unknown>
  readonly others?: readonly Definition[]
  readonly options?: StartOptions
  /** What is done to the run once it was started. */
  readonly meanwhile?: (holdfast: Holdfast, run: RunHandle<unknown>, world: VirtualWorld) => Promise<unknown>
}

const once = { retry: 'none' } as const
const soon = { retry: { maxAttempts: 2, initial: '1 s' } } as const
const late = { retry: { maxAttempts: 2, initial: '1 min' } } as const

type Body = (ctx: Context) => Promise<unknown>

const of = (type: string, body: Body, options: object = once): Workflow<void, unknown> => workflow(type, options, body)

const child = workflow('child', async (ctx, value: number) => {
  await ctx.sleep('1 s')
  return value * 2
})
const stubborn = workflow('stubborn', once, async (ctx) => void (await ctx.sleep('1 min')))
const prices = topic('prices')

let isWell = false
let failures = 0

export const recordedRuns: Readonly<Record<string, Recorded>> = {
  'parallel steps, notes and values': {
    workflow: of('steps', async (ctx) => {
      ctx.log('begins', { at: 1 })
      const parts = await Promise.all([1, 2, 3].map((at) => ctx.step('part', () => did('part', at))))
      ctx.progress(0.5, 'half')
      const noted = [ctx.now(), ctx.random(), ctx.uuid()]
      ctx.expose('noted', noted)
      await ctx.branch('eu', async (eu) => eu.step('part', () => did('part', 'eu')))
      return { parts, noted, isNew: ctx.patched('more'), last: await ctx.step('last', () => did('last', 1)) }
    }),
  },
  'messages to itself, to a key that nobody has and to a topic, and an answer': {
    workflow: of('sends', async (ctx) => {
      const sent = [ctx.signal(ctx.run.id, 'own', 1), ctx.signal({ type: 'nobody', key: 'k' }, 'own', 2)]
      const own = await ctx.receive('own')
      await Promise.all([...sent, ctx.broadcast(prices, 3), ctx.step('beside', () => did('beside', 4))])
      const asked = await ctx.receive('asked', { message: true })
      await asked.reply(await ctx.step('answer', () => did('answer', 5)))
      return own
    }),
    meanwhile: (holdfast, run) => holdfast.signal(run, 'asked', 'what?'),
  },
  'a step that fails and is caught, after short and long delays': {
    workflow: of('caught', async (ctx) => {
      const messages: string[] = []
      for (const options of [once, soon, late]) {
        await ctx.step('risky', () => refuse('risky'), options).catch((error: Error) => messages.push(error.message))
      }
      return messages
    }),
  },
  'a step whose error ends the run': {
    workflow: of('uncaught', async (ctx) => {
      await ctx.step('well', () => did('well', 1))
      await ctx.step('risky', () => refuse('risky'))
    }),
  },
  'a body that throws, again and again': {
    workflow: of(
      'thrower',
      async (ctx) => {
        await ctx.step('well', () => did('well', 1))
        throw new Error('It never works')
      },
      { retry: { maxAttempts: 3 } },
    ),
  },
  'waits of every kind': {
    workflow: of('waits', async (ctx) => {
      const { tag } = await ctx.race({ messages: ctx.receive('news'), due: ctx.sleep('1 h') })
      const both = await ctx.all({ news: ctx.receive(prices), slept: ctx.sleep('1 s') })
      await ctx.sleepUntil(0)
      const found = await ctx.until('seen', () => did('looked', isWell), { every: '10 s' })
      return [tag, both.news, found]
    }),
    meanwhile: async (holdfast, run, { clock }) => {
      isWell = false
      await run.signal('news', { by: 'Ada' })
      await clock.advance('1 s')
      await holdfast.broadcast(prices, 7)
      await clock.advance('1 min')
      isWell = true
    },
  },
  'a token': {
    workflow: of('token', async (ctx) => {
      const approval = ctx.token<string>()
      ctx.expose('token', approval.token)
      return approval
    }),
    meanwhile: async (holdfast, run) => holdfast.complete(String(await holdfast.query(run, 'token')), 'yes'),
  },
  'children, waited for, started and outlasted': {
    others: [child, stubborn],
    workflow: of('parent', async (ctx) => {
      const doubled = await ctx.child(child, 4)
      const { id } = await ctx.start(stubborn)
      const outcome = await ctx.waitFor(id)
      await ctx.start(stubborn, undefined, { onParentEnd: 'wait' })
      return [doubled, outcome.status]
    }),
  },
  resources: {
    workflow: of('resources', async (ctx) =>
      ctx.withResource(
        () => 'connection',
        () => undefined,
        async (connection) => {
          await ctx.sleep('1 min')
          return ctx.step('use', () => did('use', connection))
        },
      ),
    ),
  },
  'a run that began anew': {
    workflow: workflow('anew', async (ctx, round?: number) => {
      await ctx.step('round', () => did('round', round ?? 0))
      await ctx.sleep('1 min')
      if ((round ?? 0) < 2) await ctx.continueAsNew((round ?? 0) + 1)
      return 'enough'
    }) as Workflow<void, unknown>,
  },
  'a failure that is undone': {
    workflow: of('undone', async (ctx) => {
      await ctx.step('book', () => did('book', 1), { undo: () => did('unbook', 1) })
      await ctx.step('hold', () => did('hold', 1), { ...soon, undo: () => refuse('unhold') })
      await ctx.step('risky', () => refuse('risky'))
    }),
  },
  'a cancellation that is undone': {
    workflow: of('cancelled', async (ctx) => {
      await ctx.step('book', () => did('book', 1), { undo: () => did('unbook', 1) })
      await ctx.start(stubborn, undefined, { onParentEnd: 'wait' })
      await ctx.receive('never')
    }),
    others: [stubborn],
    meanwhile: (_, run) => run.cancel({ reason: 'sold out' }),
  },
  'a run whose time is over': {
    options: { timeout: '1 min' },
    workflow: of('slow', async (ctx) => void (await ctx.receive('never'))),
  },
  'a run that was paused and resumed': {
    workflow: of('paused', async (ctx) => ctx.receive('go')),
    meanwhile: async (holdfast, run, { clock }) => {
      await holdfast.pause(run, { note: 'lunch' })
      await clock.advance('1 s')
      await holdfast.resume(run)
      await run.signal('go', 1)
    },
  },
  'a run that failed and was retried': {
    workflow: of('retried', async (ctx) => {
      const news = ctx.receive(prices)
      await ctx.step('fragile', () => (failures++ === 0 ? refuse('fragile') : did('fragile', 1)))
      return news
    }),
    meanwhile: async (holdfast, run, { clock }) => {
      failures = 0
      await clock.advance('1 s')
      await holdfast.retry(run)
      await clock.advance('1 s')
      // As it was, for the next file that records it.
      failures = 0
      await holdfast.broadcast(prices, 8)
    },
  },
  'a run that was repaired': {
    workflow: of('repaired', async (ctx) => {
      const shelf = await ctx.step('reserve', () => did('reserve', 'shelf 3'))
      if (shelf === 'shelf 3') await ctx.step('wrong', () => did('wrong', 1))
      await ctx.receive('go')
      return shelf
    }),
    meanwhile: async (holdfast, run, { clock }) => {
      await clock.advance('1 s')
      await holdfast.pause(run)
      await holdfast.resume(run, {
        amend: [
          { seq: 3, drop: true },
          { seq: 2, result: 'shelf 4' },
        ],
      })
      await clock.advance('1 s')
      await run.signal('go')
    },
  },
}
