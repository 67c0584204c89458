// A start that is repeated with the same input must get its run, whatever the input is made of, however it is written and
// wherever it is kept; and one with another input must be recognized.

import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { jsonCodec, workflow, type Codec, type HoldfastOptions } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { memoryStore, open } from './open.ts'

class Money {
  readonly amount: bigint
  readonly currency: string

  constructor(amount: bigint, currency: string) {
    this.amount = amount
    this.currency = currency
  }

  /** For people: it says less than there is. */
  toJSON(): string {
    return String(this.amount)
  }
}

/** Knows a class of the application, and writes all of it. */
const moneyCodec: Codec = {
  encode: (value) =>
    JSON.stringify(value, function (this: Record<string, unknown>, key, item: unknown) {
      const given = this[key]
      return given instanceof Money ? { money: [String(given.amount), given.currency] } : item
    }),
  decode: (text) =>
    JSON.parse(text, (_key, item: { money?: [string, string] } | null) =>
      item?.money === undefined ? item : new Money(BigInt(item.money[0]), item.money[1]),
    ) as unknown,
}

/** Another encryption, so to speak: another text each time, and nothing about what can be compared. */
const salted: Codec = {
  encode: (value, place) =>
    JSON.stringify({ salt: randomBytes(8).toString('hex'), text: jsonCodec().encode(value, place) }),
  decode: (text, place) => jsonCodec().decode((JSON.parse(text) as { text: string }).text, place),
}

/** Says what it knows in no order and in no JSON. */
const hexCodec: Codec = {
  encode: (value, place) => Buffer.from(jsonCodec().encode(value, place)).toString('hex'),
  decode: (text, place) => jsonCodec().decode(Buffer.from(text, 'hex').toString(), place),
}

function offload(): NonNullable<HoldfastOptions['offload']> {
  const kept = new Map<string, string>()
  return {
    thresholdBytes: 1_000,
    put: async (text) => {
      kept.set(String(kept.size), text)
      return String(kept.size - 1)
    },
    get: async (reference) => kept.get(reference) ?? '',
  }
}

const mebibyte = 1024 * 1024
const large = (last: string) => ({ rows: Array.from({ length: 9 }, () => 'x'.repeat(mebibyte)), last })
const price = (currency: string) => ({ price: new Money(5n, currency), list: [new Money(1n, 'EUR')] })
const encrypted = (codec?: Codec): Codec =>
  encryptingCodec({ keys: { k: randomBytes(32) }, current: 'k', ...(codec === undefined ? {} : { codec }) })
const roomy = jsonCodec({ maxBytes: 16 * mebibyte })

it.each<[string, Partial<HoldfastOptions>, () => unknown, () => unknown]>([
  ['a class that only its codec knows', { codec: moneyCodec }, () => price('EUR'), () => price('USD')],
  ['such a class, encrypted', { codec: encrypted(moneyCodec) }, () => price('EUR'), () => price('USD')],
  ['plain data, encrypted', { codec: encrypted() }, () => ({ a: 1, b: 2 }), () => ({ a: 1, b: 3 })],
  ['plain data, in a codec that is never the same', { codec: salted }, () => ({ a: 1 }), () => ({ a: 2 })],
  ['plain data, in a codec that is no JSON', { codec: hexCodec }, () => ({ a: 1 }), () => ({ a: 2 })],
  ['more than the default codec takes', { codec: roomy }, () => large('a'), () => large('b')],
  ['such an input, offloaded', { codec: roomy, offload: offload() }, () => large('a'), () => large('b')],
  [
    'such an input, encrypted and offloaded',
    { codec: encrypted(roomy), offload: offload() },
    () => large('a'),
    () => large('b'),
  ],
])('%s does not conflict with itself, and another input does', async (_what, options, input, other) => {
  const take = workflow('take', (_ctx, given: unknown) => typeof given)
  const holdfast = await open({ workflows: [take], ...options })
  const once = { idempotencyKey: 'request-1' }
  const first = await holdfast.start(take, input(), once)
  const again = await holdfast.start(take, input(), once)
  expect([again.id, again.created]).toEqual([first.id, false])
  await expect(holdfast.start(take, other(), once)).rejects.toMatchObject({ code: 'INPUT_CONFLICT' })
})

it.each<[string, Codec]>([
  ['a custom codec', moneyCodec],
  ['an encrypting one', encrypted(moneyCodec)],
])('the order of keys makes no conflict in %s', async (_what, codec) => {
  const take = workflow('take', (_ctx, given: unknown) => typeof given)
  const holdfast = await open({ workflows: [take], codec })
  const first = await holdfast.start(take, { a: new Money(1n, 'EUR'), b: 2 }, { idempotencyKey: 'request-1' })
  const again = await holdfast.start(take, { b: 2, a: new Money(1n, 'EUR') }, { idempotencyKey: 'request-1' })
  expect(again.id).toBe(first.id)
})

it('starts that are repeated together are looked up together', async () => {
  const store = memoryStore()
  let loads = 0
  const load = store.load.bind(store)
  store.load = (...request) => {
    loads += 1
    return load(...request)
  }
  const flow = workflow('flow', async (_ctx, _input: number) => undefined)
  const holdfast = await open({ store, workflows: [flow] })
  const all = (input: number): Promise<PromiseSettledResult<{ readonly id: string }>[]> =>
    Promise.allSettled(
      Array.from({ length: 400 }, (_, at) =>
        holdfast.start(flow, at === 7 ? input : at, { idempotencyKey: `key ${at}` }),
      ),
    )
  const first = await all(7)
  expect(loads).toBe(0)
  const again = await all(7)
  expect(loads).toBe(1)
  const idOf = (one: PromiseSettledResult<{ readonly id: string }>): unknown => 'value' in one && one.value.id
  expect(again.map(idOf)).toEqual(first.map(idOf))
  // One that means something else is refused, and none of the others.
  const otherwise = await all(8)
  expect(loads).toBe(2)
  expect(otherwise.filter(({ status }) => status === 'rejected')).toHaveLength(1)
  expect(otherwise[7]).toMatchObject({ reason: { code: 'INPUT_CONFLICT' } })
})
