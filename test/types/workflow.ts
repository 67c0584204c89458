// What the compiler makes of a workflow: input and output, from annotations and from schemas. Never run.

import * as v from 'valibot'
import { z } from 'zod'
import {
  workflow,
  type Context,
  type Duration,
  type StepTools,
  type SleepResult,
  type Wait,
  type Workflow,
} from 'holdfast'
import { expectType, type Equal } from './expect-type.ts'

// From the annotation of the body.

const annotated = workflow('annotated', async (ctx, order: { id: string; total: number }) => {
  const isPaid = await ctx.step('pay', () => order.total > 0)
  return { id: order.id, isPaid }
})
expectType<Equal<typeof annotated, Workflow<{ id: string; total: number }, { id: string; isPaid: boolean }>>>(true)

const sync = workflow('sync', (_ctx, n: number) => n.toFixed(2))
expectType<Equal<typeof sync, Workflow<number, string>>>(true)

const withOptions = workflow('with.options', { version: 2, retry: { maxAttempts: 5 } }, (_ctx, n: number) => n)
expectType<Equal<typeof withOptions, Workflow<number, number>>>(true)

const bare = workflow('bare', () => 42)
expectType<Equal<typeof bare, Workflow<void, number>>>(true)

const nothing = workflow('nothing', async (ctx) => {
  await ctx.sleep('1s')
})
expectType<Equal<typeof nothing, Workflow<void, void>>>(true)

const optional = workflow('optional', (_ctx, name?: string) => name ?? 'nobody')
expectType<Equal<typeof optional, Workflow<string | undefined, string>>>(true)

const loop = workflow('loop', async (ctx, n: number) => {
  if (n > 0) return ctx.continueAsNew(n - 1)
  return 'done'
})
expectType<Equal<typeof loop, Workflow<number, string>>>(true)

// A run begins anew with the input of its own workflow, as `start` takes it.
workflow('loop.otherwise', async (ctx, n: number) => {
  if (n > 1) return ctx.continueAsNew(n - 1)
  // @ts-expect-error -- its input is a number
  return ctx.continueAsNew('one less')
})
workflow('loop.coerced', { input: z.coerce.number<string>() }, async (ctx, n) => {
  if (n > 1) return ctx.continueAsNew(String(n - 1))
  // @ts-expect-error -- the schema makes a number of a text
  return ctx.continueAsNew(n)
})

// From the method of an object.

const object = workflow('object', {
  async run(ctx, order: { id: string }) {
    expectType<Equal<typeof ctx, Context<{ id: string }>>>(true)
    return ctx.step('pay', () => order.id)
  },
})
expectType<Equal<typeof object, Workflow<{ id: string }, string>>>(true)

class Greeter {
  private readonly greeting = 'Hello'
  run(_ctx: Context, name: string): string {
    return `${this.greeting}, ${name}`
  }
}
const ofClass = workflow('of.class', { version: 2 }, new Greeter())
expectType<Equal<typeof ofClass, Workflow<string, string>>>(true)

const objectWithSchema = workflow('object.with.schema', { input: z.coerce.number<string>() }, { run: (_ctx, n) => n })
expectType<Equal<typeof objectWithSchema, Workflow<string, number>>>(true)

// @ts-expect-error -- an object without a method to run
workflow('no.run', { version: 1 }, { perform: () => 1 })

interface Order {
  readonly orderId: string
  readonly lines: readonly string[]
  readonly note?: string
}
const performOrder = (_ctx: unknown, order: Order): string => order.orderId

workflow('unique', { unique: { key: 'orderId', scope: 'global' }, tags: ['a'], metadata: { team: 'x' } }, performOrder)
workflow('unique.by', { unique: { key: ({ lines }: Order) => lines.length } }, performOrder)
workflow('unique.inline', { unique: { key: 'orderId' } }, (_ctx, order: Order) => order)
workflow('unique.schema', { input: z.object({ id: z.coerce.number<string>() }), unique: { key: 'id' } }, () => 1)
workflow('unique.schema.by', { input: z.object({ id: z.string() }), unique: { key: ({ id }) => id } }, () => 1)

// @ts-expect-error -- the input has no such field
workflow('unique.misspelt', { unique: { key: 'orderid' } }, performOrder)

// @ts-expect-error -- a list is no key
workflow('unique.list', { unique: { key: 'lines' } }, performOrder)

// @ts-expect-error -- a field that may be missing is no key
workflow('unique.optional', { unique: { key: 'note' } }, performOrder)

// @ts-expect-error -- the input has no such field
workflow('unique.inline.misspelt', { unique: { key: 'orderid' } }, (_ctx, order: Order) => order)

// @ts-expect-error -- the schema makes no such field
workflow('unique.no.field', { input: z.object({ id: z.string() }), unique: { key: 'name' } }, () => 1)

// @ts-expect-error -- there is no such scope
workflow('no.scope', { unique: { key: 'orderId', scope: 'team' } }, performOrder)

// From a schema: `start` takes what goes in, the body gets what comes out.

const zod = workflow(
  'zod',
  { input: z.object({ at: z.string().transform((text) => new Date(text)), note: z.string().default('') }) },
  (_ctx, input) => {
    expectType<Equal<typeof input, { at: Date; note: string }>>(true)
    return input.at
  },
)
expectType<Equal<typeof zod, Workflow<{ at: string; note?: string | undefined }, Date>>>(true)

const valibot = workflow(
  'valibot',
  { input: v.object({ total: v.pipe(v.string(), v.transform(Number)), tags: v.optional(v.array(v.string()), []) }) },
  async (_ctx, input) => {
    expectType<Equal<typeof input, { total: number; tags: string[] }>>(true)
    return input.total
  },
)
expectType<Equal<typeof valibot, Workflow<{ total: string; tags?: string[] | undefined }, number>>>(true)

workflow('schema.and.annotation', { input: z.string() }, (_ctx, text: string) => text)

// @ts-expect-error -- the schema makes a string, and the body asks for a number
workflow('schema.against.annotation', { input: z.string() }, (_ctx, n: number) => n)

// @ts-expect-error -- a shape is no schema
workflow('no.schema', { input: { id: 'string' } }, () => 1)

// @ts-expect-error -- there is no body
workflow('no.body', { version: 1 })

// @ts-expect-error -- misspelt: retry
workflow('misspelt', { retries: { maxAttempts: 3 } }, () => 1)

// @ts-expect-error -- misspelt beside a schema: version
workflow('misspelt.with.schema', { input: z.string(), verison: 2 }, (_ctx, text) => text)

// @ts-expect-error -- misspelt inside: maxAttempts
workflow('misspelt.inside', { retry: { maxAttempt: 3 } }, () => 1)

// @ts-expect-error -- there is no such preset
workflow('unknown.preset', { retry: 'temporal' }, () => 1)

// @ts-expect-error -- a misspelt unit: seconds
workflow('misspelt.unit', { retry: { initial: '5 secnods' } }, () => 1)

// Inside of a body.

workflow('inside', async (ctx) => {
  expectType<Equal<typeof ctx.run, { readonly id: string; readonly type: string; readonly version: number }>>(true)

  const sync = ctx.step('sync', () => 1)
  expectType<Equal<typeof sync, Promise<number>>>(true)
  const async = ctx.step('async', async () => ({ id: 'a' }))
  expectType<Equal<typeof async, Promise<{ id: string }>>>(true)
  const none = ctx.step('none', () => undefined)
  expectType<Equal<typeof none, Promise<undefined>>>(true)
  const never = ctx.step('never', () => {
    throw new Error('Never')
  })
  expectType<Equal<typeof never, Promise<never>>>(true)
  const tooled = ctx.step('tools', (step) => {
    expectType<Equal<typeof step, StepTools>>(true)
    return step.abortSignal
  })
  expectType<Equal<typeof tooled, Promise<AbortSignal>>>(true)

  const sleep = ctx.sleep('2 days')
  expectType<Equal<typeof sleep, Wait<SleepResult>>>(true)
  const { firedAt } = await sleep
  expectType<Equal<typeof firedAt, Date>>(true)

  const together = await Promise.all([sync, ctx.sleep(5), async])
  expectType<Equal<typeof together, [number, SleepResult, { id: string }]>>(true)

  const branched = ctx.branch('eu', (eu) => eu.step('pay', () => 'paid'))
  expectType<Equal<typeof branched, Promise<string>>>(true)

  const lent = ctx.withResource(
    () => Promise.resolve({ query: (): number => 5 }),
    (connection) => connection.query(),
    (connection) => Promise.resolve(connection.query()),
  )
  expectType<Equal<typeof lent, Promise<number>>>(true)

  // What the step returns is what its undo gets, unless nobody knows whether the step happened.
  const undoable = ctx.step('undoable', async () => ({ id: 'a', total: 5 }), {
    undo: (result, step) => {
      expectType<Equal<typeof result, { id: string; total: number } | undefined>>(true)
      expectType<Equal<typeof step, StepTools>>(true)
    },
  })
  expectType<Equal<typeof undoable, Promise<{ id: string; total: number }>>>(true)
  const annotatedUndo = ctx.step('annotated', () => 5, { undo: async (n?: number) => n?.toFixed(2) })
  expectType<Equal<typeof annotatedUndo, Promise<number>>>(true)

  // @ts-expect-error -- the step returns a number, and its undo asks for a text
  void ctx.step('undo.against.step', () => 5, { undo: (text: string) => text })

  expectType<Equal<typeof ctx.abortSignal, AbortSignal>>(true)
  expectType<Equal<ReturnType<typeof ctx.isCancelled>, boolean>>(true)
  const isPatched = ctx.patched('change')
  expectType<Equal<typeof isPatched, boolean>>(true)

  // What comes after a run that begins anew is never reached, and has no type of its own.
  const anew = ctx.continueAsNew()
  expectType<Equal<typeof anew, Promise<never>>>(true)
  const another = ctx.continueAs(annotated, { id: 'a', total: 5 })
  expectType<Equal<typeof another, Promise<never>>>(true)
  void ctx.continueAs(zod, { at: '2026-01-01' })
  void ctx.continueAs(nothing)

  // @ts-expect-error -- the other workflow takes an order
  void ctx.continueAs(annotated, { id: 'a' })

  // @ts-expect-error -- the other workflow has an input
  void ctx.continueAs(annotated)

  // @ts-expect-error -- misspelt: timeout
  void ctx.step('misspelt', () => 1, { timeOut: '1s' })

  // @ts-expect-error -- misspelt: minutes
  await ctx.sleep('5 minuets')

  // @ts-expect-error -- no unit
  await ctx.sleep('5')

  // @ts-expect-error -- months differ in length, so they are no unit
  await ctx.sleep('1 month')

  // @ts-expect-error -- the run cannot be changed
  ctx.run.id = 'another'
})

const good: readonly Duration[] = [0, 250, '250ms', '5m', '1.5 hours', '2 days', '1 week']
void good
