// Timers: inputs that are due later. None fires early, and none after the end.

import { describe, expect, it } from 'vitest'
import { decider, decision, type TimerTime } from '../../../src/deciders/index.ts'
import { deciderRig, seen } from '../../support/decider-rig.ts'
import { create, note, on, order } from './order.ts'

const hour = 3_600_000

type TickInput =
  | { readonly type: 'Set'; readonly id: string; readonly when: TimerTime; readonly key?: string }
  | { readonly type: 'Tick' }
  | { readonly type: 'Break' }

/** Sets timers as it is asked to, and counts those that fire. */
const metronome = decider('metronome', {
  initial: () => 0,
  evolve: (ticks, event: { type: 'Set' | 'Ticked' }) => (event.type === 'Ticked' ? ticks + 1 : ticks),
  decide: (ticks, input: TickInput) => {
    if (input.type === 'Break') throw new Error('The spring is broken')
    if (input.type === 'Tick') {
      const ticked = decision({ type: 'Ticked' })
      return ticks < 3 ? ticked.timer('tick', { after: '10s' }, { type: 'Tick' }) : ticked
    }
    const set = decision({ type: 'Set' })
    const next = { type: 'Tick' } as const
    return input.key === undefined ? set.timer(input.when, next) : set.timer(input.key, input.when, next)
  },
  id: { Set: 'id', Tick: null, Break: null },
})

const set = (when: TimerTime, key?: string): TickInput => ({
  type: 'Set',
  id: '1',
  when,
  ...(key === undefined ? {} : { key }),
})

describe('a timer', () => {
  it('IF-W1 IF-W5 IF-A7 fires as an input when it is due by the time of the store, and not before', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const dueAt = rig.now + hour
    rig.now = dueAt - 1
    expect(rig.fire()).toMatchObject({ append: [], fired: [], due: { at: dueAt, afterMs: null } })
    rig.now = dueAt + 20
    expect(rig.fire()).toMatchObject({
      fired: [{ name: 'payment', answer: { outcome: 'accepted' } }],
      end: 'succeeded',
    })
    expect(rig.story().at(-1)).toBe('input Late, event Expired, succeeded')
    expect(rig.entries.find(({ name }) => name === 'Late')?.meta).toEqual({
      from: { kind: 'timer', name: 'payment', dueAt },
      outcome: 'accepted',
    })
  })

  it.each([
    ['1h', 'such as { after: "1h" }. Got "1h"'],
    [5000, 'such as { after: 5000 }'],
    [new Date(0), 'such as { at: … }'],
    [{}, "such as { after: '1h' }"],
    [undefined, 'Got undefined'],
    [{ at: 'tomorrow' }, 'must be a valid Date. Got "tomorrow"'],
  ])('is refused at a time of %j, with how it is written', (when, said) => {
    const rig = deciderRig(metronome)
    for (const key of ['a', undefined]) {
      const { answers } = rig.propose({ kind: 'call', input: set(when as TimerTime, key), command: null })
      expect(answers).toMatchObject([
        { outcome: 'failed', error: { message: expect.stringContaining(said) as string } },
      ])
    }
  })

  it('IF-W7 counts from the commit that sets it, whenever that is', () => {
    const rig = deciderRig(metronome)
    const decided = rig.propose({ kind: 'call', input: set({ after: '1s' }, 'a'), command: null })
    expect(decided.due).toEqual({ at: null, afterMs: 1000 })
    expect(rig.instance.timers).toMatchObject([{ dueAt: null }])
    rig.now += 500
    rig.commit(decided)
    expect(rig.instance.timers).toMatchObject([{ key: 'a', dueAt: 1_001_500 }])
  })

  it('IF-W2 IF-W3 of a key replaces the one that has it, and begins afresh, its failures forgotten', () => {
    const broken = decider('broken', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Set' }) => count,
      decide: (_count, input: { type: 'Set'; id: string } | { type: 'Break' }) => {
        if (input.type === 'Break') throw new Error('Broken')
        return decision({ type: 'Set' }).timer('beat', { after: '1m' }, { type: 'Break' })
      },
      id: { Set: 'id', Break: null },
    })
    const rig = deciderRig(broken)
    rig.execute({ type: 'Set', id: '1' })
    rig.now += 60_000
    rig.fire()
    expect(rig.instance.timers).toEqual([{ name: 'beat', key: 'beat', dueAt: 1_061_000, failures: 1 }])
    rig.now += 100
    rig.execute({ type: 'Set', id: '1' })
    expect(rig.instance.timers).toEqual([{ name: 'beat', key: 'beat', dueAt: 1_120_100, failures: 0 }])
    expect(seen(rig.reload())).toEqual(seen(rig.instance))
  })

  it('IF-W2 of the same key of another instance is independent', () => {
    const [one, other] = [deciderRig(order, { id: '1' }), deciderRig(order, { id: '2' })]
    one.execute(create)
    other.execute({ ...create, orderId: '2' })
    one.execute(on('Forgive'))
    expect(one.instance.timers).toEqual([])
    expect(other.instance.timers).toHaveLength(1)
  })

  it('IF-W4 without a key accumulates, and all of them fire, the earliest first', () => {
    const rig = deciderRig(metronome)
    const offers = ([30, 10, 20] as const).map(
      (ms) => ({ kind: 'call', input: set({ after: ms }), command: null }) as const,
    )
    rig.offer(...offers)
    expect(rig.instance.timers.map(({ name, key }) => [name, key])).toEqual([
      ['#4', null],
      ['#7', null],
      ['#10', null],
    ])
    rig.now += 20
    const { fired } = rig.fire()
    expect(fired.map(({ name }) => name)).toEqual(['#7', '#10'])
    // The second one has replaced the timer that the first one had set again.
    expect(rig.instance.timers.map(({ name }) => name).sort()).toEqual(['#4', 'tick'])
  })

  it('IF-A8 that is cancelled does not fire, and the journal says that it was cancelled', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    rig.execute(on('Forgive'))
    rig.execute(on('Forgive'))
    expect(rig.story().slice(1)).toEqual([
      'input Forgive, event Forgiven, timer-cancelled payment',
      'input Forgive, event Forgiven',
    ])
    rig.now += 2 * hour
    expect(rig.fire()).toMatchObject({ fired: [], due: null })
  })

  it('IF-W3 that its own firing sets again fires each time, once in a batch, and no more once it is not', () => {
    const rig = deciderRig(metronome)
    rig.execute(set({ after: '10s' }, 'tick'))
    for (let times = 0; times < 10; times += 1) {
      rig.now += 10_000
      expect(rig.fire().fired.length).toBeLessThanOrEqual(1)
    }
    expect(rig.instance.state).toBe(4)
    expect(rig.instance.timers).toEqual([])
  })

  it('in the past fires at once, but not in the transition that sets it', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const decided = rig.offer({ kind: 'call', input: on('Remind'), command: null })
    expect(decided).toMatchObject({ fired: [], due: { at: rig.now - 5 } })
    expect(rig.fire().fired).toMatchObject([{ answer: { events: [{ type: 'Reminded' }] } }])
  })

  it('beyond 100 years, at no time at all or under a name of the engine is refused, and nothing is written', () => {
    const rig = deciderRig(metronome)
    const century = 36_525 * 24 * hour
    const refused: readonly (readonly [TickInput, string])[] = [
      [set({ at: new Date(rig.now + century + 1) }), 'over 100 years'],
      [set({ after: century + 1 }), 'over 100 years'],
      [set({ at: new Date(Number.NaN) }), 'invalid date'],
      [set({ at: 5 as unknown as Date }), 'valid Date'],
      [set({ after: 1 }, '#4'), 'must not begin with'],
      [set({ after: 1 }, ''), 'The key of a timer'],
    ]
    for (const [input, why] of refused) {
      expect(rig.execute(input)).toMatchObject({
        outcome: 'failed',
        error: { message: expect.stringContaining(why) as string },
      })
    }
    expect(rig.entries).toEqual([])
    expect(rig.execute(set({ at: new Date(rig.now + century) })).outcome).toBe('accepted')
  })

  it('that was due before a message came is decided before it, and one that is due later after it', () => {
    const rig = deciderRig(metronome)
    rig.execute(set({ after: 100 }, 'a'))
    const message = (id: string, at: number) =>
      ({ kind: 'message', id, at, read: () => set({ after: '1h' }, id) }) as const
    const start = rig.now
    rig.now += 150
    rig.offer(message('m1', start + 99), message('m2', start + 100), message('m3', start + 120))
    const sources = rig.entries.flatMap(({ kind, meta }) => (kind === 'input' ? [meta.from] : [])).slice(1)
    expect(sources.map((from) => (from.kind === 'message' ? from.id : from.kind))).toEqual(['m1', 'timer', 'm2', 'm3'])
  })

  it('IF-W6 does nothing on an instance that is over: the end cancels all, also those that the last input sets', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const { due, end } = rig.offer({ kind: 'call', input: on('Abandon'), command: null })
    expect({ due, end }).toEqual({ due: null, end: 'succeeded' })
    expect(rig.story().at(-1)).toBe('input Abandon, event Expired, effect ship#8, succeeded')
    expect(rig.instance.timers).toEqual([])
    expect(rig.reload().timers).toEqual([])
    rig.now += 5 * hour
    expect(rig.fire()).toMatchObject({ append: [], fired: [] })
  })

  it('IF-R1 IF-R8 whose input cannot be decided is tried five times, later each time, and then given up and reported', () => {
    const failing = decider('failing', {
      initial: () => [] as readonly string[],
      evolve: (keys, event: { type: 'Set' } | { type: 'Noted'; key: string | null }) =>
        event.type === 'Noted' ? [...keys, event.key ?? 'none'] : keys,
      decide: (
        _keys,
        input: { type: 'Set'; id: string } | { type: 'Break' } | { type: 'Note'; key: string | null },
      ) => {
        if (input.type === 'Break') throw new Error('The spring is broken')
        if (input.type === 'Note') return decision({ type: 'Noted', key: input.key })
        return decision({ type: 'Set' }).timer('spring', { after: 10 }, { type: 'Break' })
      },
      id: { Set: 'id', Break: null, Note: null },
      onDeadTimer: ({ key }) => ({ type: 'Note', key }),
    })
    const rig = deciderRig(failing)
    rig.execute({ type: 'Set', id: '1' })
    const delays: number[] = []
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const due = rig.instance.timers[0]?.dueAt ?? 0
      delays.push(due - rig.now)
      rig.now = due
      expect(rig.fire().fired).toMatchObject([{ answer: { outcome: 'failed' } }])
    }
    expect(delays).toEqual([10, 1000, 2000, 4000, 8000])
    expect(rig.story().slice(1)).toEqual([
      ...Array<string>(4).fill('attempt-failed spring'),
      'timer-failed spring, input Note, event Noted',
    ])
    expect(rig.instance).toMatchObject({ state: ['spring'], timers: [] })
    expect(seen(rig.reload())).toEqual(seen(rig.instance))
  })

  it('does not delay an input that comes meanwhile', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    expect(rig.execute(note('now')).outcome).toBe('accepted')
  })
})
