// Callers that wait for a batch, and a store that answers when the test says so.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import type { Clock } from '../../../../src/core/runtime/ports.ts'
import { Batcher } from '../../../../src/engine/batch/batcher.ts'
import { done, CallerTimeouts, type Caller, type NotDone } from '../../../../src/engine/batch/caller-timeouts.ts'
import { tooSlow } from '../../../../src/core/errors/too-slow.ts'
import type { BatchOptions } from '../../../../src/store.ts'
import { systemPorts } from '../../../../src/system.ts'
import { createVirtualClock } from '../../../../src/testing/virtual-clock.ts'
import { keepLines } from '../../../holdfast/open.ts'

interface Item {
  readonly id: string
}

interface Flush extends BatchOptions {
  readonly ids: readonly string[]
  readonly answer: () => void
  readonly fail: (error: unknown) => void
}

const limitMs = 1_000

function setUp({ maxItems = 2, highWater = 1_000, wrap = (clock: Clock): Clock => clock } = {}) {
  const virtual = createVirtualClock()
  const clock = { ...virtual, ...wrap(virtual) }
  const flushes: Flush[] = []
  const patience = new CallerTimeouts<Item>({
    clock,
    limitMs: () => limitMs,
    called: ({ id }) => ({ what: `Item ${id}`, again: `Send ${id} again.`, details: { id } }),
  })
  const ports = { ...systemPorts(), clock, logger: keepLines() }
  const batcher = new Batcher<Caller<Item>, string | NotDone, string>(ports, {
    maxItems,
    highWater,
    limitMs: () => limitMs,
    flush: (items, options) =>
      patience.flush(
        items,
        (wanted) =>
          new Promise((resolve, fail) => {
            const ids = wanted.map(({ id }) => id)
            flushes.push({ ids, answer: () => resolve(ids.map((id) => `done ${id}`)), fail, ...options })
          }),
        options,
      ),
    nameOf: ({ given }) => given.id,
    sizeOf: () => 1,
    resultOf: (_item, answer) => done(answer),
  })
  const outcomes = new Map<string, unknown>()
  const submit = (id: string, abortSignal?: AbortSignal): void => {
    const item = { id }
    const settle = (outcome: unknown): void => void outcomes.set(id, outcome)
    patience.submit(batcher, item, (caller) => caller, abortSignal).then(settle, settle)
  }
  return { clock, flushes, batcher, outcomes, submit }
}

const away = (): HoldfastError => new HoldfastError('STORE_UNAVAILABLE', 'Nobody is there.')
const unavailable = (id: string, sent: boolean): unknown =>
  expect.objectContaining({ code: 'STORE_UNAVAILABLE', details: { id, sent } })

describe('a caller', () => {
  it('whose item is answered gets the answer, and no timer is left', async () => {
    const { clock, flushes, outcomes, submit } = setUp()
    submit('a')
    await clock.advance(limitMs - 1)
    flushes[0]?.answer()
    await clock.advance(0)
    expect(outcomes.get('a')).toBe('done a')
    expect(clock.pending).toBe(0)
  })

  it('is given up also by a clock that lags behind its timers, after a few looks', async () => {
    let looks = 0
    const wrap = (clock: Clock): Clock => ({
      ...clock,
      monotonic: () => clock.monotonic() * 0.9,
      after(ms, wake) {
        looks += 1
        return clock.after(Math.floor(ms), wake)
      },
    })
    const { clock, outcomes, submit } = setUp({ wrap })
    submit('a')
    await clock.advance(2 * limitMs)
    expect(outcomes.get('a')).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(looks).toBeLessThan(20)
  })

  it.each([
    ['one takes', ['poison']],
    ['several take', ['poison', 'a 20', 'a 40', 'a 60', 'a 80', 'a 99']],
  ])('is not given up because %s the store too long in the flush that they share', async (_, poison) => {
    const { clock, flushes, outcomes, submit } = setUp({ maxItems: 500 })
    const innocent = Array.from({ length: 100 }, (_, at) => `a ${at}`).filter((id) => !poison.includes(id))
    submit('first')
    for (const id of [...innocent, ...poison].sort()) submit(id)
    const isPoisonous = ({ ids }: Flush): boolean => ids.some((id) => poison.includes(id))
    // The database gives up what takes nine tenths of the time, or the time that a piece has; whatever else comes it answers.
    for (let seen = 0, ms = 0; ms < 10 * limitMs; ms += 1) {
      for (; seen < flushes.length; seen += 1) {
        const flush = flushes[seen] as Flush
        const giveUp = (): void => flush.fail(tooSlow('Too slow.'))
        if (isPoisonous(flush)) clock.after(0.9 * (flush.timeoutMs ?? limitMs), giveUp)
        else flush.answer()
      }
      await clock.advance(1)
    }
    expect(innocent.filter((id) => outcomes.get(id) !== `done ${id}`)).toEqual([])
    for (const id of poison) expect(outcomes.get(id)).toEqual(unavailable(id, true))
    expect(clock.pending).toBe(0)
  })

  it('whose own item takes the store too long gets that as its error when it has been alone for the time', async () => {
    const { clock, flushes, outcomes, submit } = setUp()
    submit('a')
    await clock.advance(0.9 * limitMs)
    flushes[0]?.fail(tooSlow('Too slow.'))
    await clock.advance(0.1 * limitMs)
    expect([...outcomes]).toEqual([['a', unavailable('a', true)]])
  })

  it('of a store that never answers gets an error when the time is over, which says whether its item was sent', async () => {
    const { clock, flushes, outcomes, submit } = setUp()
    for (const id of ['a', 'b', 'c', 'd', 'e']) submit(id)
    await clock.advance(limitMs - 1)
    expect(outcomes.size).toBe(0)
    await clock.advance(1)
    expect(flushes.map(({ ids }) => ids)).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ])
    expect([...outcomes]).toEqual([
      ['a', unavailable('a', true)],
      ['b', unavailable('b', true)],
      ['c', unavailable('c', true)],
      ['d', unavailable('d', true)],
      ['e', unavailable('e', false)],
    ])
    expect(String(outcomes.get('a'))).toContain('may or may not have taken effect. Send a again.')
    expect(String(outcomes.get('e'))).toContain('nothing has happened')
  })

  it('a caller that asks why gets the last error of the store', async () => {
    const { clock, flushes, outcomes, submit } = setUp()
    submit('a')
    await clock.advance(1)
    flushes[0]?.fail(away())
    await clock.advance(limitMs)
    expect(outcomes.get('a')).toMatchObject({
      message: expect.stringContaining('Nobody is there.') as string,
      cause: expect.objectContaining({ message: 'Nobody is there.' }) as unknown,
    })
  })

  it('who has given up is not served later: what was not sent is never sent, what was is not sent again', async () => {
    const { clock, flushes, outcomes, batcher, submit } = setUp()
    for (const id of ['a', 'b', 'c', 'd', 'e']) submit(id)
    await clock.advance(limitMs)
    expect(outcomes.size).toBe(5)
    for (const flush of flushes) flush.fail(away())
    await clock.advance(5_000)
    expect(flushes).toHaveLength(2)
    await batcher.drain()
    submit('f')
    await clock.advance(0)
    expect(flushes.at(-1)?.ids).toEqual(['f'])
  })

  it('in a long line is not turned away as long as the store answers', async () => {
    const { clock, flushes, outcomes, submit } = setUp({ maxItems: 1 })
    const ids = ['a', 'b', 'c', 'd', 'e', 'f']
    for (const id of ids) submit(id)
    // Two are on their way at a time. Each is answered in time, and the last two almost three times as late.
    for (let round = 0; round < 3; round += 1) {
      await clock.advance(limitMs - 100)
      for (const flush of flushes) flush.answer()
      await clock.advance(0)
    }
    expect([...outcomes]).toEqual(ids.map((id) => [id, `done ${id}`]))
  })

  it('a caller that waits for room is refused, too, and what it wanted is never sent', async () => {
    const { clock, flushes, outcomes, submit } = setUp({ maxItems: 1, highWater: 1 })
    for (const id of ['a', 'b', 'c']) submit(id)
    await clock.advance(0)
    submit('d')
    await clock.advance(limitMs)
    expect(outcomes.get('d')).toEqual(unavailable('d', false))
    for (const flush of flushes) flush.answer()
    await clock.advance(0)
    expect(flushes.flatMap(({ ids }) => ids)).toEqual(['a', 'b'])
  })
})

describe('a caller with an abort signal', () => {
  it('that has fired before sends nothing', async () => {
    const { clock, flushes, outcomes, submit } = setUp()
    submit('a', AbortSignal.abort('too late'))
    await clock.advance(0)
    expect(outcomes.get('a')).toEqual(unavailable('a', false))
    expect(outcomes.get('a')).toMatchObject({ cause: 'too late' })
    expect(flushes).toEqual([])
  })

  it('is rejected as soon as it fires, and the others of its batch go on', async () => {
    const { clock, flushes, outcomes, submit } = setUp()
    const controller = new AbortController()
    submit('a', controller.signal)
    submit('b')
    await clock.advance(1)
    controller.abort(new Error('The visitor has left.'))
    await clock.advance(0)
    expect([...outcomes]).toEqual([['a', unavailable('a', true)]])
    flushes[0]?.fail(away())
    await clock.advance(100)
    expect(flushes.map(({ ids }) => ids)).toEqual([['a', 'b'], ['b']])
    flushes[1]?.answer()
    await clock.advance(0)
    expect(outcomes.get('b')).toBe('done b')
  })
})

describe('what a store says of everything that it is asked', () => {
  it.each(['STORE_REFUSED', 'SCHEMA_TOO_NEW'] as const)(
    '%s is answered to all at once, after one call',
    async (code) => {
      const { clock, flushes, outcomes, submit } = setUp({ maxItems: 500 })
      const ids = Array.from({ length: 500 }, (_, number) => `${number}`)
      for (const id of ids) submit(id)
      await clock.advance(0)
      const error = new HoldfastError(code, 'There is no table runs.')
      flushes[0]?.fail(error)
      await clock.advance(0)
      expect(flushes).toHaveLength(1)
      expect([...outcomes.values()]).toEqual(ids.map(() => error))
    },
  )

  it('is distinguished from what it says of one of them, which harms no other', async () => {
    const { clock, flushes, outcomes, submit } = setUp()
    submit('a')
    submit('b')
    await clock.advance(0)
    const error = new HoldfastError('ENTRY_REJECTED', 'Too large.')
    flushes[0]?.fail(error)
    await clock.advance(0)
    flushes[1]?.fail(error)
    await clock.advance(0)
    flushes[2]?.answer()
    await clock.advance(0)
    expect([...outcomes]).toEqual([
      ['a', error],
      ['b', 'done b'],
    ])
  })
})

it('who is closed in the middle says that it does not know what became of what was sent', async () => {
  const { clock, flushes, outcomes, batcher, submit } = setUp({ maxItems: 1 })
  for (const id of ['a', 'b', 'c']) submit(id)
  await clock.advance(0)
  batcher.close()
  for (const flush of flushes) flush.fail(away())
  await clock.advance(0)
  expect(outcomes.get('a')).toMatchObject({ code: 'CLOSED', details: { id: 'a', sent: true } })
  expect(String(outcomes.get('a'))).toContain('Send a again.')
  expect(outcomes.get('c')).toMatchObject({ code: 'CLOSED', details: {} })
})
