// Cursors and numbers of pages, as they come back from an address or a form: no store is asked with one that no page gave.

import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { topic, workflow, type Holdfast, type HoldfastError } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { everyStore } from './stores.ts'

const order = workflow('order', (_ctx, id: string) => id)
const paid = topic<number>('paid', { onUnread: 'dead-letter' })
const id = '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70'
const codec = encryptingCodec({ keys: { a: randomBytes(32) }, current: 'a' })

const notOfRuns: readonly unknown[] = [
  '',
  'x',
  ` ${id}`,
  `${id} `,
  `${id}\n`,
  id.toUpperCase(),
  id.slice(1),
  'removed:',
  7,
  true,
  null,
  {},
  // Text by its own account: a pattern alone would let it pass.
  [id],
  { toString: () => id },
]
const notOfLetters: readonly unknown[] = [
  ...notOfRuns,
  id,
  ` ${id} letter`,
  `${id}  \u0000`,
  `${id} a\u0000b`,
  `${id} \uD800`,
  `${id} a\nb`,
  `${id}\tletter`,
  `${id} ${'x'.repeat(10_000)}`,
  `x ${id}`,
  [`${id} letter`],
]
const notOfRekey: readonly unknown[] = [
  `removed:removed:${id}`,
  `removed:${id} letter`,
  'letters:',
  `letters:${id}`,
  `letters:${id}%20`,
  `letters:${id}%20a%00b`,
  `letters:${id}%20a%0ab`,
  `letters:${id}%20%`,
  `letters:${id}%20%ff`,
  `letters:${id}%20%ed%a0%80`,
  `letters:${id}%20${'x'.repeat(10_000)}`,
  `letters:letters:${id}%20a`,
  [`letters:${id}%20a`],
]
const notWhole: readonly unknown[] = [
  -1,
  0.5,
  Number.NaN,
  Infinity,
  1e300,
  2 ** 53,
  '1',
  '0; drop table runs',
  null,
  [],
  1n,
]

describe.each(everyStore)('a cursor that no page gave, on the $name store', ({ make }) => {
  it('is refused by every call that takes one, whatever it is', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order], codec })
    const run = await holdfast.start(order, 'a')
    const calls: readonly (readonly [readonly unknown[], (given: never) => Promise<unknown>])[] = [
      [notOfRuns, (after) => holdfast.find({ after })],
      [[...notOfRuns, ...notOfRekey], (after) => holdfast.rekey({ after })],
      [notOfLetters, (after) => holdfast.deadLetters({ after })],
      [notWhole, (after) => holdfast.journal(run, { after })],
      [[0, ...notWhole], (limit) => holdfast.journal(run, { limit })],
      [[0, 201, ...notWhole], (limit) => holdfast.find({ limit })],
      [[0, 201, ...notWhole], (limit) => holdfast.deadLetters({ limit })],
      [[0, ...notWhole], (atMost) => holdfast.count({}, { atMost })],
      [[0, 2 ** 31, ...notWhole], (version) => holdfast.find({ version })],
      [['', 'x\u0000', 7, 'x'.repeat(10_000)], (name) => holdfast.deadLetters({ name })],
    ]
    for (const [given, call] of calls) {
      for (const one of given) {
        const outcome = await call(one as never).then(
          () => 'taken',
          (error: unknown) => (error as HoldfastError).code,
        )
        expect(`${String(call)}: ${outcome}`).toMatch(/: INVALID_(?:OPTION|NAME)$/)
      }
    }
  })

  it('nor is a dead letter named by anything but its run and its id', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order] })
    const letters: readonly unknown[] = [
      null,
      'x',
      {},
      { runId: id },
      { id: 'a' },
      { runId: 7, id: 'a' },
      { runId: id, id: 7 },
      { runId: id, id: 'a\u0000b' },
      { runId: [id], id: 'a' },
    ]
    const refused = { code: 'INVALID_OPTION', message: expect.stringContaining('{ runId, id }') as string }
    for (const letter of letters) {
      await expect(holdfast.discardDeadLetter(letter as never)).rejects.toMatchObject(refused)
      await expect(holdfast.retryDeadLetter(letter as never, { to: id })).rejects.toMatchObject(refused)
    }
    for (const letter of [
      { runId: 'x', id: 'a' },
      { runId: id, id: 'a' },
    ]) {
      expect(await holdfast.discardDeadLetter(letter)).toEqual({ outcome: 'not-dead' })
      expect(await holdfast.retryDeadLetter(letter, { to: id })).toEqual({ outcome: 'not-dead' })
    }
  })

  it('and every cursor that a page gave is taken, also with the longest id and letters of any script', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [order] })
    const run = await holdfast.start(order, 'a')
    const ids = ['a b  c', '注文 ٤٢', 'x'.repeat(400)]
    for (const one of ids) await holdfast.signal(run, paid, 1, { id: one })
    await run.cancel()
    expect((await seen(holdfast)).toSorted()).toEqual(ids.toSorted())
    // One that names no letter, or no more, begins nowhere.
    expect(await holdfast.deadLetters({ after: `${id} letter` })).toEqual({ letters: [], next: null })
  })
})

async function seen(holdfast: Holdfast): Promise<readonly string[]> {
  const ids: string[] = []
  for (let after: string | null = null; ;) {
    const { letters, next } = await holdfast.deadLetters({ limit: 1, ...(after === null ? {} : { after }) })
    ids.push(...letters.map((letter) => letter.id))
    if (next === null) return ids
    after = next
  }
}
