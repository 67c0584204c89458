// What the compiler makes of waits: what each gives back, which of them can be raced, and what a child takes. Never run.

import { z } from 'zod'
import {
  topic,
  workflow,
  type Context,
  type Message,
  type RunOutcome,
  type SleepResult,
  type TokenWait,
  type Wait,
} from 'holdfast'
import { expectType, type Equal } from './expect-type.ts'

declare const ctx: Context

const price = topic('price', { schema: z.object({ price: z.number() }) })
const charge = workflow('charge', async (_ctx, order: { id: string }) => ({ paid: order.id }))
const tidy = workflow('tidy', async () => 'tidied')

// Signals.

const anything = ctx.receive('go')
expectType<Equal<typeof anything, Wait<unknown>>>(true)
const named = ctx.receive<number>('go')
expectType<Equal<typeof named, Wait<number>>>(true)
const checked = ctx.receive('go', { schema: z.object({ by: z.string() }) })
expectType<Equal<typeof checked, Wait<{ by: string }>>>(true)
const fromTopic = ctx.receive(price)
expectType<Equal<typeof fromTopic, Wait<{ price: number }>>>(true)

// @ts-expect-error -- misspelt: schema
ctx.receive('go', { shema: z.string() })

// Messages that can be answered.

const message = ctx.receive<number>('go', { message: true })
expectType<Equal<typeof message, Wait<Message<number>>>>(true)
const ofTopic = ctx.receive(price, { message: true })
expectType<Equal<typeof ofTopic, Wait<Message<{ price: number }>>>>(true)
const checkedMessage = ctx.receive('go', { message: true, schema: z.object({ by: z.string() }) })
expectType<Equal<typeof checkedMessage, Wait<Message<{ by: string }>>>>(true)
expectType<Equal<ReturnType<Message['reply']>, Promise<void>>>(true)
const either = ctx.race({ message, late: ctx.sleep(1) })
expectType<Equal<Extract<Awaited<typeof either>, { tag: 'message' }>['value'], Message<number>>>(true)

// A payload without `message: true` cannot be answered.
expectType<Equal<Extract<keyof Awaited<typeof named>, 'reply'>, never>>(true)

// What a body sends.

expectType<Equal<ReturnType<typeof ctx.broadcast>, Promise<void>>>(true)
void ctx.signal('id', 'go', 1)
void ctx.signal({ id: 'id' }, price, { price: 1 })
void ctx.signal({ workflow: charge, key: 'a' }, 'go')
void ctx.signal({ type: 'charge', key: 'a' }, 'go')

// @ts-expect-error -- the topic says what is sent
void ctx.signal('id', price, { price: 'x' })
// @ts-expect-error -- and to its subscribers, too
void ctx.broadcast(price, 'x')
// @ts-expect-error -- a key needs a workflow
void ctx.signal({ key: 'a' }, 'go')
// @ts-expect-error -- a topic has a name, and is no name
void ctx.broadcast('price', 1)

// Races: the tag says what the value is.

const race = ctx.race({ ok: checked, late: ctx.sleep('2 days'), child: ctx.child(charge, { id: 'a' }) })
expectType<
  Equal<
    typeof race,
    Wait<
      | { readonly tag: 'ok'; readonly value: { by: string } }
      | { readonly tag: 'late'; readonly value: SleepResult }
      | { readonly tag: 'child'; readonly value: { paid: string } }
    >
  >
>(true)

async function narrowed(): Promise<string> {
  const won = await race
  if (won.tag === 'ok') return won.value.by
  return won.tag === 'late' ? won.value.firedAt.toISOString() : won.value.paid
}
void narrowed

// @ts-expect-error -- a step runs to its end: it cannot be withdrawn
ctx.race({ ok: checked, step: ctx.step('work', () => 1) })

// @ts-expect-error -- nor can a promise
ctx.race({ ok: checked, other: Promise.resolve(1) })

// @ts-expect-error -- several waits that must all come true are no way to end a race
ctx.race({ ok: checked, all: ctx.all([named]) })

const nested = ctx.race({ race, other: named })
expectType<Equal<Awaited<typeof nested>['tag'], 'race' | 'other'>>(true)

// All of several.

const both = ctx.all({ go: named, sleep: ctx.sleep(1) })
expectType<Equal<typeof both, Promise<{ go: number; sleep: SleepResult }>>>(true)
const list = ctx.all([named, checked])
expectType<Equal<typeof list, Promise<[number, { by: string }]>>>(true)
const many = ctx.all([1, 2].map((id) => ctx.child(charge, { id: String(id) })))
expectType<Equal<typeof many, Promise<{ paid: string }[]>>>(true)

// @ts-expect-error -- a step is awaited with Promise.all
void ctx.all([named, ctx.step('work', () => 1)])

// Other runs.

const any = ctx.waitFor('01900000-0000-7000-8000-000000000000')
expectType<Equal<typeof any, Wait<RunOutcome>>>(true)
const known = ctx.waitFor<number>({ id: '01900000-0000-7000-8000-000000000000' })
expectType<Equal<typeof known, Wait<RunOutcome<number>>>>(true)

const child = ctx.child(charge, { id: 'a' }, { key: 'a', onParentEnd: 'wait', timeout: '1 h' })
expectType<Equal<typeof child, Wait<{ paid: string }>>>(true)
expectType<Equal<ReturnType<typeof plain>, Wait<string>>>(true)
const plain = () => ctx.child(tidy)
void ctx.start(tidy, undefined, { onParentEnd: 'cancel' })
const started = ctx.start(charge, { id: 'a' })
expectType<Equal<typeof started, Promise<{ readonly id: string }>>>(true)

// @ts-expect-error -- the child takes an order
ctx.child(charge, { name: 'a' })

// @ts-expect-error -- the child has an input
ctx.child(charge)

// @ts-expect-error -- a run learns of a conflict as it happens
ctx.child(charge, { id: 'a' }, { onConflict: 'return' })

// @ts-expect-error -- there is no such way to end
ctx.child(charge, { id: 'a' }, { onParentEnd: 'kill' })

// Tokens, and conditions that are checked.

const token = ctx.token({ schema: z.boolean() })
expectType<Equal<typeof token, TokenWait<boolean>>>(true)
expectType<Equal<typeof token.token, string>>(true)
void ctx.race({ token, late: ctx.sleep('1 day') })

const found = ctx.until('file', () => (Number.isNaN(1) ? null : { path: '/in' }), { every: '10 min' })
expectType<Equal<typeof found, Promise<{ path: string }>>>(true)
const isSo = ctx.until('so', async () => Number.isNaN(1))
expectType<Equal<typeof isSo, Promise<true>>>(true)

ctx.expose('stage', { at: 1 })
