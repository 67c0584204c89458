// The test kit for deciders: what passes, what fails, and what it says.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decider, decision } from '../../src/deciders/index.ts'
import { checkLaws, given } from '../../src/testing/deciders/index.ts'
import { create, initial, note, on, order, pay, type OrderInput } from '../unit/deciders/order.ts'

const open = { ...initial(), status: 'open' } as const

describe('given, when, then', () => {
  it('IF-T2 compares events, effects, timers, rejections and states', () => {
    given(order)
      .when(create)
      .then({
        events: [{ type: 'Created' }],
        effects: [{ type: 'sendMail', to: 'ada' }],
        timers: [{ key: 'payment', after: 3_600_000, input: { type: 'Late' } }],
      })
      .thenState(open)
    given(order, [{ type: 'Created' }])
      .when(create)
      .thenRejected({ reason: 'It exists.' })
      .thenState(open)
    given(order).when(pay).thenRejected({ reason: 'There is no such order.' })
    given(order, [{ type: 'Created' }])
      .when(on('Remind'), { now: new Date(100) })
      .then({ events: [{ type: 'Noted', text: 'remind' }], timers: [{ at: 95, input: { type: 'Reminded' } }] })
    given(order, [{ type: 'Expired' }])
      .when(pay)
      .thenAlreadyCompleted()
  })

  it('IF-T2 shows the difference, and the error of what cannot be decided', () => {
    const paid = given(order, [{ type: 'Created' }]).when(pay)
    expect(() => paid.then({ events: [{ type: 'Paid', amount: 6 }] })).toThrow(/amount: 5/)
    expect(() => paid.then({ events: [{ type: 'Paid', amount: 5 }] })).toThrow(/ship/)
    expect(() => paid.thenState(open)).toThrow(/paid/)
    expect(() => paid.thenRejected({ reason: 'It is paid.' })).toThrow('expected to be rejected, and it is accepted')
    const rejected = given(order).when(pay)
    expect(() => rejected.then({ events: [] })).toThrow('it is rejected with {"reason":"There is no such order."}')
    expect(() => rejected.thenRejected({ reason: 'It exists.' })).toThrow(/It exists/)
    const failed = given(order, [{ type: 'Created' }]).when({ type: 'Pay', orderId: '1', amount: -1 })
    expect(() => failed.then({ events: [] })).toThrow('An amount cannot be negative')
    expect(() => failed.thenState(open)).toThrow('An amount cannot be negative')
  })

  it('IF-T2 knows which timers are set, so that their cancellation is seen', () => {
    const created = [{ type: 'Created' }] as const
    const expected = { events: [{ type: 'Paid', amount: 5 }], effects: [{ type: 'ship' }] } as const
    given(order, created).when(pay).then(expected)
    given(order, created, { timers: ['payment', 'other'] })
      .when(pay)
      .then({ ...expected, cancelled: ['payment'] })
  })

  it('IF-T2 refuses an input that has no type or names no instance, unless it comes from timers and effects', () => {
    const untyped = (input: unknown) => given(order).when(input as never)
    expect(() => untyped({ type: 'Pay', amount: 5 })).toThrow(
      /The id of decider "order".*It was read from an input "Pay"/,
    )
    expect(() => untyped({ kind: 'Pay' })).toThrow('Got an object without a type')
    expect(() => untyped({ type: 5 })).toThrow('Got an object whose type is 5')
    given(order).when({ type: 'Late' }).thenRejected({ reason: 'There is no such order.' })
  })

  it('says how the time of a timer is given, if it is a text', () => {
    const hasty = decider('hasty', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Gone' }) => count + 1,
      decide: (_count, input: In) => decision({ type: 'Gone' }).timer('again', '1h' as never, input),
      id: 'id',
    })
    expect(() => given(hasty).when(go).then({ events: [] })).toThrow(
      /The time of a timer must be \{ after \} or \{ at \}.*such as \{ after: "1h" \}\. Got "1h"/,
    )
  })

  it('is no promise, and says so to those who await it', async () => {
    const when = given(order).when(create)
    await expect(Promise.resolve(when)).rejects.toThrow('do not await it')
  })

  it('IF-T2 reads the given events as a journal, so an unknown one is refused', () => {
    const unknown = [{ type: 'Forgotten' }] as unknown as readonly { readonly type: 'Created' }[]
    expect(() => given(order, unknown).when(pay)).toThrow('it does not know this event')
  })
})

type In = { readonly type: 'Go'; readonly id: string; readonly tags?: string[] }

/** A decider of which one function is another. */
function broken(change: {
  readonly evolve?: (count: number, event: { type: 'Gone' | 'Lost' }) => number
  readonly decide?: (input: In) => { type: 'Gone' | 'Lost' }
}) {
  const { evolve = (count) => count + 1, decide = () => ({ type: 'Gone' }) } = change
  return decider('broken', {
    initial: () => 0,
    evolve: (count, event: { type: 'Gone' | 'Lost' }) => evolve(count, event),
    decide: (_count, input: In) => decision(decide(input)),
    id: 'id',
  })
}
const go: In = { type: 'Go', id: '1', tags: ['a'] }

describe('the laws', () => {
  it('hold for inputs of any source', () => {
    checkLaws(order, [create, note('a'), pay, pay])
    function* notes() {
      yield create
      for (let count = 0; count < 5; count += 1) yield note(`${count}`)
    }
    checkLaws(order, notes(), { now: new Date(5) })
    checkLaws(broken({}), [go])
  })

  it('hold for the inputs of a generator', () => {
    const anInput: fc.Arbitrary<OrderInput> = fc.oneof(
      fc.constantFrom(create, pay, on('Extend'), on('Forgive'), on('Remind'), on('Abandon')),
      fc.string().map(note),
      fc.integer({ min: -2, max: 2 }).map((amount) => ({ type: 'Pay', orderId: '1', amount }) as const),
    )
    fc.assert(fc.property(fc.array(anInput), (inputs) => checkLaws(order, [create, ...inputs])))
  })

  it('name the event that evolve does not take', () => {
    const partial = broken({
      decide: () => ({ type: 'Lost' }),
      evolve: (count, event) => (event.type === 'Gone' ? count + 1 : (undefined as unknown as number)),
    })
    expect(() => checkLaws(partial, [go])).toThrow(/breaks the law "total" at \{"type":"Go".*Event "Lost"/)
  })

  it('name what decide or evolve used of the machine, and where', () => {
    const clocked = broken({ decide: () => (Date.now() > 0 ? { type: 'Gone' } : { type: 'Lost' }) })
    expect(() => checkLaws(clocked, [go])).toThrow(/law "pure".*decide used Date\.now\(\) at .*deciders\.test\.ts/)
    const lucky = broken({ decide: () => ({ type: Math.random() < 2 ? 'Gone' : 'Lost' }) })
    expect(() => checkLaws(lucky, [go])).toThrow('decide used Math.random()')
    const moody = broken({ evolve: (count) => count + (new Date().getTime() > 0 ? 1 : 2) })
    expect(() => checkLaws(moody, [go])).toThrow('new Date() was used')
  })

  it('name evolve if it changes its state, as impure', () => {
    const mutating = decider('mutating', {
      initial: () => ({ count: 0 }),
      evolve: (state, _event: { type: 'Gone' }) => {
        state.count += 1
        return state
      },
      decide: (_state, _input: In) => decision({ type: 'Gone' }),
      id: 'id',
    })
    expect(() => checkLaws(mutating, [go])).toThrow(/law "pure".*evolve changed its arguments/)
  })

  it('name what differs between two calls, and between two folds', () => {
    let calls = 0
    const counting = broken({ decide: () => ({ type: (calls += 1) % 2 === 0 ? 'Gone' : 'Lost' }) })
    expect(() => checkLaws(counting, [go])).toThrow(/decide returned something else the second time/)
    let folds = 0
    const drifting = broken({ evolve: () => (folds += 1) })
    expect(() => checkLaws(drifting, [go])).toThrow(/law "fold".*another state/)
  })

  it('name arguments that are changed', () => {
    const writing = broken({
      decide: (input) => {
        input.tags?.push('b')
        return { type: 'Gone' }
      },
    })
    expect(() => checkLaws(writing, [structuredClone(go)])).toThrow(/decide changed its arguments/)
  })

  it('are not broken by an input that fails', () => {
    const failing = broken({
      decide: () => {
        throw new Error('No')
      },
    })
    checkLaws(failing, [go])
    const error: unknown = (() => {
      try {
        checkLaws(broken({ decide: () => ({ type: Math.random() < 2 ? 'Gone' : 'Lost' }) }), [go])
        return null
      } catch (thrown) {
        return thrown
      }
    })()
    expect(error).toMatchObject({ code: 'LAW_BROKEN', details: { law: 'pure', type: 'broken' } })
  })
})
