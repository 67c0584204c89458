// What has broken others, given to everything that takes something: a clear error or a faithful answer, and the engine
// goes on either way.

import { describe, expect, it } from 'vitest'
import { fatal, HoldfastError, isHoldfastError, workflow, type Holdfast, type StartOptions } from 'holdfast'
import { poison } from '../poison.ts'
import { everyStore } from './stores.ts'

const echo = workflow('echo', { retry: { maxAttempts: 1 } }, (_ctx, input: unknown) => input)

/** What the values were that a body gives back by itself, without sending them as an input. */
const given: { value: () => unknown } = { value: () => null }
const returned = workflow('returned', { retry: { maxAttempts: 1 } }, (ctx) => ctx.step('give', () => given.value()))
const thrown = workflow('thrown', { retry: { maxAttempts: 1 } }, (ctx) =>
  ctx.step('throw', () => {
    const value = given.value()
    throw value
  }),
)
const refused = workflow('refused', { retry: { maxAttempts: 1 } }, (ctx) =>
  ctx.step('refuse', () => {
    const error = fatal('A poisonous property')
    Object.defineProperty(error, 'details', { value: given.value(), enumerable: true })
    throw error
  }),
)
const workflows = [echo, returned, thrown, refused]

const texts = poison.flatMap((one) => {
  const value = one.storable ? one.value() : null
  return typeof value === 'string' ? [{ name: one.name, text: value }] : []
})

/** The run ends, and others after it do. */
async function isWell(holdfast: Holdfast): Promise<void> {
  expect(await (await holdfast.start(echo, 'well')).result()).toBe('well')
}

async function outcomeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'accepted',
    (error: unknown) => error,
  )
}

describe.each(everyStore)('on the $name store', ({ make }) => {
  async function working(): Promise<Holdfast> {
    const { open } = await make()
    const holdfast = await open({ workflows })
    await holdfast.work()
    return holdfast
  }

  it('PEERS 11 every value as an input is taken as it is, or refused with the place of what cannot be stored', async () => {
    const holdfast = await working()
    for (const { name, value, storable } of poison) {
      const outcome = await outcomeOf(holdfast.start(echo, value()).then((run) => run.result()))
      const isRefused = isHoldfastError(outcome, 'NOT_STORABLE')
      expect([name, outcome === 'accepted', isRefused]).toEqual([name, storable, !storable])
    }
    await isWell(holdfast)
  })

  it.each([
    ['result of a step', returned],
    ['thing to be thrown', thrown],
    ['property of an error', refused],
  ] as const)('PEERS 11 every value as a %s ends its run, and no other', async (_what, definition) => {
    const holdfast = await working()
    for (const one of poison) {
      given.value = one.value
      const run = await holdfast.start(definition)
      const outcome = await outcomeOf(run.result({ timeout: '10s' }))
      const isOver = outcome === 'accepted' || isHoldfastError(outcome, 'RUN_FAILED')
      expect([one.name, isOver]).toEqual([one.name, true])
      if (definition === returned) expect([one.name, outcome === 'accepted']).toEqual([one.name, one.storable])
      expect((await holdfast.find({ ids: [run] })).runs).toHaveLength(1)
    }
    await isWell(holdfast)
  })

  const places: readonly [string, (text: string) => StartOptions][] = [
    ['key', (key) => ({ key })],
    ['idempotency key', (idempotencyKey) => ({ idempotencyKey })],
    ['tag', (tag) => ({ tags: [tag] })],
    ['id', (id) => ({ id })],
    ['metadata', (text) => ({ metadata: { text } })],
    ['name in metadata', (text) => ({ metadata: { [text]: 1 } })],
  ]

  it.each(places)('every text as a %s is kept as it is or refused by name, and found again', async (what, options) => {
    const holdfast = await working()
    for (const { name, text } of texts) {
      const outcome = await outcomeOf(holdfast.start(echo, 1, options(text)))
      if (outcome !== 'accepted') {
        const { family, message } = outcome as HoldfastError
        expect([name, outcome instanceof HoldfastError, family]).toEqual([name, true, 'usage'])
        expect(message.length).toBeLessThan(400)
        continue
      }
      const filter =
        what === 'key' ? { key: text } : what === 'tag' ? { tag: text } : what === 'id' ? { ids: [text] } : {}
      const { runs } = await holdfast.find(what === 'idempotency key' ? { idempotencyKey: text } : filter)
      expect(runs.length).toBeGreaterThan(0)
      if (what === 'metadata') expect(runs[0]?.metadata).toEqual({ text })
    }
    await isWell(holdfast)
  })

  it('every text as a reason, a note, a filter or a reference does no harm', async () => {
    const holdfast = await working()
    for (const { name, text } of texts) {
      const run = await holdfast.start(echo, 1, { delay: '1 day' })
      const asked = [
        () => holdfast.pause(run, { note: text }),
        () => holdfast.resume(run, { note: text }),
        () => holdfast.cancel(run, { reason: text }),
        () => holdfast.remove(run, { reason: text }),
        () => holdfast.find({ typePrefix: text }),
        () => holdfast.find({ type: text, key: text, tag: text }),
        () => holdfast.count({ idempotencyKey: text }),
        () => holdfast.cancelMany({ typePrefix: `${text}\u0000` }),
        () => holdfast.find({ after: text }),
        () => holdfast.get(text),
        () => holdfast.start(text, 1),
      ]
      for (const ask of asked) {
        const outcome = await outcomeOf(ask())
        const isWellAnswered = outcome === 'accepted' || outcome instanceof HoldfastError
        expect([name, isWellAnswered]).toEqual([name, true])
      }
    }
    await isWell(holdfast)
  })
})
