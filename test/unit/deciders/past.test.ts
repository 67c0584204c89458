// Journals of older code: events of older versions, under other names and of types that are gone, and states of older snapshots.

import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../../src/core/model/entry.ts'
import { decider, decision } from '../../../src/deciders/index.ts'
import { deciderRig } from '../../support/decider-rig.ts'

type Paid = { readonly type: 'Paid'; readonly amount: number; readonly currency: string }
type Paid1 = { readonly type: 'Paid'; readonly cents: number }
type Paid2 = { readonly type: 'Paid'; readonly amount: number }
type In = { readonly type: 'Pay'; readonly id: string; readonly amount: number }

/** What wrote the journals: version 1 of its event, and a type that is gone. */
const oldest = decider('till', {
  initial: () => ({ cents: 0 }),
  evolve: (state, event: Paid1 | { readonly type: 'Noted' }) =>
    event.type === 'Paid' ? { cents: state.cents + event.cents } : state,
  decide: (_state, { amount }: In) =>
    amount === 0 ? decision({ type: 'Noted' }) : decision({ type: 'Paid', cents: amount * 100 }, { type: 'Noted' }),
  id: 'id',
  snapshotEvery: 6,
})

const evolve = (state: { readonly total: number; readonly last: string }, event: Paid) => ({
  total: state.total + event.amount,
  last: event.currency,
})
const first = vi.fn((old: Paid1) => ({ type: 'Paid', amount: old.cents / 100 }) as const)
const second = (old: Paid2) => ({ ...old, currency: 'EUR' })
const base = {
  initial: () => ({ total: 0, last: '' }),
  evolve,
  decide: (_state: { total: number }, { amount }: In) => decision({ type: 'Paid', amount, currency: 'USD' }),
  id: 'id',
  retired: ['Noted'],
} as const
const newest = decider('till', { ...base, upcast: { Paid: { 1: first, 2: second } } })

const pay = (amount: number): In => ({ type: 'Pay', id: '1', amount })

/** The journal of an old build that has decided these. */
function journalOf(...amounts: readonly number[]): readonly Entry[] {
  const rig = deciderRig(oldest)
  for (const amount of amounts) rig.execute(pay(amount), `c-${amount}`)
  return rig.entries
}

describe('an event of an older version', () => {
  it('IF-V2 is brought to the present one, step by step, and new ones are written in the present version', () => {
    const rig = deciderRig(newest, { entries: journalOf(5, 7) })
    expect(rig.instance.state).toEqual({ total: 12, last: 'EUR' })
    expect(rig.execute(pay(1))).toMatchObject({ events: [{ type: 'Paid', amount: 1, currency: 'USD' }] })
    const versions = rig.entries.filter(({ kind }) => kind === 'event').map(({ name, meta }) => [name, meta])
    expect(versions.at(-1)).toEqual(['Paid', { version: 3 }])
    expect(versions[0]).toEqual(['Paid', { version: 1 }])
    const calls = first.mock.calls.length
    expect(rig.reload().state).toEqual({ total: 13, last: 'USD' })
    expect(first.mock.calls.length - calls).toBe(2)
  })

  it('IF-V2 is given in the present form to the repetition of its command', () => {
    const rig = deciderRig(newest, { entries: journalOf(5) })
    const known = rig.instance.find('c-5')
    if (known === null) throw new Error('The command is not known')
    const answer = rig.instance.recall(known, rig.entries.slice(known.seq - 1))
    expect(answer).toMatchObject({ outcome: 'accepted', events: [{ type: 'Paid', amount: 5, currency: 'EUR' }] })
    expect(answer.outcome === 'accepted' ? answer.events : []).toHaveLength(1)
  })

  it('IF-V2 goes through the schema after it was brought up to date', () => {
    const checked = decider('till', {
      ...base,
      event: z.object({ type: z.literal('Paid'), amount: z.number().max(10), currency: z.string() }),
      upcast: { Paid: { 1: first, 2: second } },
    })
    expect(deciderRig(checked, { entries: journalOf(5) }).instance.state).toEqual({ total: 5, last: 'EUR' })
    expect(() => deciderRig(checked, { entries: journalOf(50) })).toThrow('does not fit its schema')
  })

  const unreadable: readonly (readonly [string, Parameters<typeof deciderRig>[0], string])[] = [
    ['no upcaster reads', decider('till', base), 'it has version 1, and upcast of this code reads from version 2 on'],
    [
      'an upcaster throws at',
      decider('till', {
        ...base,
        upcast: {
          Paid: {
            1: (): Paid2 => {
              throw new RangeError('no rate')
            },
            2: second,
          },
        },
      }),
      'the upcaster of "Paid" from version 1 threw: no rate',
    ],
    [
      'an upcaster returns nothing for',
      decider('till', { ...base, upcast: { Paid: { 1: first, 2: () => undefined as unknown as Paid } } }),
      'the upcaster of "Paid" from version 2 must return an event of that type, and returned undefined',
    ],
    [
      'an upcaster gives another type to',
      decider('till', { ...base, upcast: { Paid: { 1: first, 2: () => ({ type: 'Piad' }) as unknown as Paid } } }),
      'returned an object whose type is "Piad"',
    ],
    [
      'an upcaster takes time for',
      decider('till', { ...base, upcast: { Paid: { 1: first, 2: async () => ({}) as never } } as never }),
      'returned a promise',
    ],
  ]
  it.each(unreadable)(
    'IF-V2 IF-E9 that %s is refused with type, id and number, and nothing is decided',
    (what, code, why) => {
      const entries = journalOf(5).map((entry): Entry =>
        entry.kind === 'event' && what === 'no upcaster reads' ? { ...entry, meta: { version: 1 } } : entry,
      )
      const partial =
        what === 'no upcaster reads' ? decider('till', { ...base, upcast: { Paid: { 2: second } } }) : code
      const { instance } = deciderRig(partial)
      const details = { type: 'till', id: '1', seq: 3, event: 'Paid' }
      expect(() => instance.apply(entries)).toThrow(
        expect.objectContaining({
          code: 'EVENT_UNREADABLE',
          details: expect.objectContaining(details) as object,
        }) as Error,
      )
      expect(() => instance.apply(entries)).toThrow(why)
      expect(() => instance.decide([{ kind: 'call', input: pay(1), command: null }], { now: 1 })).toThrow(why)
    },
  )

  it('IF-V2 that newer code has written is refused: upcasters lead one way', () => {
    const rig = deciderRig(newest)
    rig.execute(pay(1))
    expect(() => deciderRig(oldest, { entries: rig.entries })).toThrow(
      'it has version 3, and this code reads version 1',
    )
  })
})

describe('an event type of older code', () => {
  it('IF-V2 is folded under its present name, and its versions go on', () => {
    const renamed = decider('till', {
      initial: () => 0,
      evolve: (total, event: { type: 'Settled'; amount: number }) => total + event.amount,
      decide: (_total, { amount }: In) => decision({ type: 'Settled', amount }),
      id: 'id',
      renamed: { Paid: 'Settled' },
      upcast: { Settled: { 1: ({ cents }: { cents: number }) => ({ type: 'Settled', amount: cents / 100 }) } },
      retired: ['Noted'],
    })
    const rig = deciderRig(renamed, { entries: journalOf(5) })
    expect(rig.instance.state).toBe(5)
    rig.execute(pay(2))
    expect(rig.entries.at(-1)).toMatchObject({ name: 'Settled', meta: { version: 2 } })
    expect(rig.reload().state).toBe(7)
  })

  it('IF-V2 that is retired is passed over, also if it cannot even be decoded', () => {
    const entries = journalOf(5).map((entry): Entry =>
      entry.name === 'Noted' && entry.kind === 'event' ? { ...entry, data: '{"type":' } : entry,
    )
    expect(deciderRig(newest, { entries }).instance.state).toEqual({ total: 5, last: 'EUR' })
  })

  it('IF-V2 that is retired or has another name is not written any more', () => {
    const untyped = (type: string) =>
      decider('till', {
        initial: () => 0,
        evolve: (total, _event: { type: string }) => total + 1,
        decide: (_total, _input: In) => decision({ type }),
        id: 'id',
        retired: ['Noted'] as never[],
        renamed: { Paid: 'Settled' },
      })
    expect(deciderRig(untyped('Noted')).execute(pay(1))).toMatchObject({
      outcome: 'failed',
      error: { message: expect.stringContaining('an event "Noted", and it is retired') as string },
    })
    expect(deciderRig(untyped('Paid')).execute(pay(1))).toMatchObject({
      error: { message: expect.stringContaining('it is called "Settled" now') as string },
    })
  })
})

describe('the state of an older snapshot', () => {
  /** A journal with a snapshot, from there on. */
  function fromSnapshot(): readonly Entry[] {
    const entries = journalOf(1, 2, 3, 4)
    const at = entries.findIndex(({ kind }) => kind === 'snapshot')
    expect(at).toBeGreaterThan(0)
    return entries.slice(at)
  }
  const upcast = { Paid: { 1: first, 2: second } }
  const upcasted = (from: (old: { cents: number }) => { total: number; last: string }) =>
    decider('till', { ...base, upcast, stateVersion: 2, upcastState: { 1: from } })

  it('IF-V2 is brought to the present form, and the journal is folded from there', () => {
    const { instance } = deciderRig(upcasted(({ cents }) => ({ total: cents / 100, last: 'EUR' })))
    const entries = fromSnapshot()
    expect(instance.apply(entries)).toBe('folded')
    expect(instance.state).toEqual(deciderRig(newest, { entries: journalOf(1, 2, 3, 4) }).instance.state)
  })

  it('IF-V2 is passed over where no upcaster reads it, where one throws, and where code is another without a new version', () => {
    const thrower = upcasted(() => {
      throw new Error('no')
    })
    const later = decider('till', {
      ...base,
      upcast,
      stateVersion: 3,
      upcastState: { 2: (old: typeof base.initial) => old() },
    })
    const promised = upcasted((async () => ({ total: 0, last: '' })) as never)
    for (const code of [newest, thrower, later, promised])
      expect(deciderRig(code).instance.apply(fromSnapshot())).toBe('stale')
    const entries = fromSnapshot().map((entry): Entry =>
      entry.kind === 'snapshot' ? { ...entry, meta: { fingerprint: 'f' } } : entry,
    )
    const { instance } = deciderRig(upcasted(({ cents }) => ({ total: cents / 100, last: 'EUR' })))
    expect(instance.apply(entries)).toBe('stale')
  })

  it('IF-V2 is not used if only an upcaster of events has changed: another fold of the events before it may follow', () => {
    const other = decider('till', {
      ...base,
      upcast: { Paid: { 1: first, 2: (old: Paid2) => ({ ...old, currency: 'CHF' }) } },
      snapshotEvery: 3,
    })
    const rig = deciderRig(decider('till', { ...base, upcast, snapshotEvery: 3 }))
    rig.execute(pay(1))
    rig.execute(pay(1))
    const at = rig.entries.findIndex(({ kind }) => kind === 'snapshot')
    expect(deciderRig(other).instance.apply(rig.entries.slice(at))).toBe('stale')
    expect(rig.reload(at + 1).state).toEqual({ total: 2, last: 'USD' })
  })
})

describe('the definition of a past', () => {
  const wrong: readonly (readonly [string, object, string])[] = [
    [
      'a gap',
      { upcast: { Paid: { 1: first, 3: second } } },
      'upcast.Paid of decider "till" has no function for version 2, and has one for 3',
    ],
    ['no function', { upcast: { Paid: { 1: 'x' } } }, 'must be a function for version 1'],
    ['no versions', { upcast: { Paid: {} } }, 'must have a function for each older version'],
    ['a list', { upcast: [first] }, 'must have functions by event type and version'],
    ['a version that is none', { upcast: { Paid: { one: first } } }, 'whole numbers from 1, as its keys. Got "one"'],
    ['a version 0', { upcast: { Paid: { 0: first } } }, 'whole numbers from 1'],
    ['the old name', { upcast: { Charged: { 1: first } }, renamed: { Charged: 'Paid' } }, 'upcast it under that name'],
    ['a retired type', { upcast: { Noted: { 1: first } } }, 'which is retired and never read'],
    ['a name that has changed again', { renamed: { A: 'B', B: 'C' } }, 'to "B", which is called "C" now: name that'],
    ['a name that is none', { renamed: { A: 5 } }, 'renamed of decider "till" must say for each old event type'],
    ['a name that is retired', { renamed: { A: 'Noted' } }, 'leads to "Noted", which is retired'],
    ['a retired name that is renamed', { renamed: { Noted: 'Paid' } }, 'both name "Noted"'],
    ['retired types that are no list', { retired: 'Noted' }, "must be a list of event types, such as ['Noted']"],
    [
      'a stateVersion that its chain does not lead to',
      { upcastState: { 1: second } },
      'leads to version 2, and its stateVersion is 1',
    ],
  ]
  it.each(wrong)('IF-V2 with %s is refused', (_what, options, why) => {
    expect(() => decider('till', { ...base, ...options } as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(why) as string }) as Error,
    )
  })
})
