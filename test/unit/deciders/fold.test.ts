// Reading journals: whole, from a snapshot, further and further, and those that cannot be read.

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../../src/core/model/entry.ts'
import { decider, decision, type Decider } from '../../../src/deciders/index.ts'
import { deciderRig, seen } from '../../support/decider-rig.ts'
import { create, evolve, initial, note, on, order, pay } from './order.ts'

/** A list that is snapshotted every ten entries. */
function list({
  stateVersion = 1,
  evolveAs = (items: readonly string[], event: { type: 'Added'; item: string }) => [...items, event.item],
} = {}) {
  return decider('list', {
    initial: (): readonly string[] => [],
    evolve: evolveAs,
    decide: (_items, input: { type: 'Add'; id: string; item: string } | { type: 'Later' }) => {
      if (input.type === 'Later') return decision({ type: 'Added', item: 'later' })
      const added = decision({ type: 'Added', item: input.item })
      if (input.item !== 'timer') return added
      return added.timer('t', { after: '1h' }, { type: 'Later' }).effect({ type: 'notify', item: input.item })
    },
    id: { Add: 'id', Later: null },
    effects: { notify: () => undefined },
    snapshotEvery: 10,
    stateVersion,
    dedup: { last: 5, within: '1h' },
  })
}
const add = (item: string) => ({ type: 'Add', id: '1', item })

/** The journal of a list with a snapshot. */
function longList() {
  const rig = deciderRig(list())
  for (const item of ['a', 'timer', 'b', 'c', 'd', 'e', 'f']) {
    rig.now += 1
    rig.execute(add(item), item)
  }
  const at = rig.entries.findIndex(({ kind }) => kind === 'snapshot')
  return { rig, at }
}

describe('a journal', () => {
  it('is folded further entry by entry, to what a fold of the whole is', () => {
    const rig = deciderRig(order)
    for (const input of [create, note('a'), on('Extend'), on('Remind'), pay]) rig.execute(input)
    const other = deciderRig(order).instance
    for (const entry of rig.entries) other.apply([entry])
    expect(seen(other)).toEqual(seen(rig.instance))
    const [first] = rig.entries
    expect(() => other.apply(first === undefined ? [] : [first])).toThrow('follows')
  })

  it('costs one call of evolve for each entry that is new', () => {
    let calls = 0
    const counted = list({
      evolveAs: (items, event) => {
        calls += 1
        return [...items, event.item]
      },
    })
    const { rig } = longList()
    const [early, late] = [rig.entries.slice(0, 6), rig.entries.slice(6)]
    const { instance } = deciderRig(counted)
    instance.apply(early)
    const before = calls
    instance.apply(late)
    expect(calls - before).toBe(late.filter(({ kind }) => kind === 'event').length)
  })

  it('passes over what is no concern of a decider', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const before = seen(rig.instance)
    const crashed = { kind: 'crashed', name: null, meta: { session: 's', crashes: 1 }, data: null } as const
    const paused = { kind: 'paused', name: null, meta: { reason: 'operator', note: null }, data: null } as const
    rig.instance.apply([
      { ...crashed, seq: 6, at: 9, transition: 'x' },
      { ...paused, seq: 7, at: 9, transition: 'y' },
    ])
    expect(seen(rig.instance)).toEqual({ ...(before as object), seq: 7 })
  })

  const damages: readonly (readonly [string, Partial<Entry>, string])[] = [
    ['whose text is damaged', { data: '{"type":' }, 'Event "Noted", entry 7'],
    ['of a version that this code does not read', { meta: { version: 2 } }, 'it has version 2'],
    ['that evolve does not know', { data: '{"type":"Forgotten"}' }, 'evolve returned nothing'],
    ['that is no event', { data: '"Noted"' }, 'must be an object with a type'],
    ['that is no entry', { kind: 'damaged', meta: { kind: 'event', why: 'its name is wrong' } }, 'its name is wrong'],
  ]
  it.each(damages)(
    'IF-E9 with an event %s is refused with its type, id and number, and nothing is decided',
    (_what, damage, why) => {
      const rig = deciderRig(order)
      rig.execute(create)
      rig.execute(note('a'))
      const entries = rig.entries.map((entry) => (entry.seq === 7 ? ({ ...entry, ...damage } as Entry) : entry))
      const { instance } = deciderRig(order)
      const error = { code: 'EVENT_UNREADABLE', family: 'drift', details: { type: 'order', id: '1', seq: 7 } }
      expect(() => instance.apply(entries)).toThrow(
        expect.objectContaining({ ...error, details: expect.objectContaining(error.details) as object }) as Error,
      )
      expect(() => instance.apply(entries)).toThrow(why)
      expect(() => instance.decide([{ kind: 'call', input: pay, command: null }], { now: 1 })).toThrow(why)
    },
  )

  it('is read through the schema of its events, which also checks new ones', () => {
    const strict = decider('strict', {
      initial: () => 0,
      event: z.object({ type: z.literal('Counted'), by: z.number().max(10) }),
      evolve: (count, event) => count + event.by,
      decide: (_count, input: { type: 'Count'; id: string; by: number }) => decision({ type: 'Counted', by: input.by }),
      id: 'id',
    })
    const rig = deciderRig(strict)
    rig.execute({ type: 'Count', id: '1', by: 3 })
    expect(rig.execute({ type: 'Count', id: '1', by: 11 })).toMatchObject({
      outcome: 'failed',
      error: { message: expect.stringContaining('does not fit its schema') as string },
    })
    expect(rig.instance.state).toBe(3)
    const late = decider('late', {
      initial: () => 0,
      event: z.object({ type: z.literal('Counted') }).refine(async () => true),
      evolve: (count) => count + 1,
      decide: (_count, _input: { type: 'Count'; id: string }) => decision({ type: 'Counted' }),
      id: 'id',
    })
    expect(deciderRig(late).execute({ type: 'Count', id: '1' })).toMatchObject({
      error: { message: expect.stringContaining('asynchronous') as string },
    })
  })
})

describe('a snapshot', () => {
  it('IF-S4 is written with the entries of a batch when enough of them are there, and again later', () => {
    const rig = deciderRig(list())
    rig.execute(add('a'))
    const decided = rig.offer(
      ...['b', 'c', 'd', 'e'].map((item) => ({ kind: 'call', input: add(item), command: null }) as const),
    )
    expect(decided.snapshotAt).toBe(12)
    expect(rig.entries[11]?.kind).toBe('snapshot')
    rig.execute(add('f'))
    expect(rig.entries.filter(({ kind }) => kind === 'snapshot')).toHaveLength(1)
  })

  it('has all that the journal before it has: a fold from there is the same, and answers the same', () => {
    const { rig, at } = longList()
    expect(at).toBeGreaterThan(0)
    const short = rig.reload(at + 1)
    expect(seen(short)).toEqual(seen(rig.reload()))
    expect(seen(short)).toEqual(seen(rig.instance))
    for (const instance of [rig.instance, short]) {
      const offers = ['timer', 'new'].map((command) => ({ kind: 'call', input: add(command), command }) as const)
      const decided = instance.decide([...offers, { kind: 'call', input: add('c'), command: null }], { now: rig.now })
      expect(decided.answers.map(({ outcome }) => outcome)).toEqual(['duplicate', 'accepted', 'duplicate'])
      expect(decided.due).toEqual({ at: 1_000_002 + 3_600_000, afterMs: null })
    }
    rig.instance.rollBack()
    rig.now += 4_000_000
    expect(rig.reload(at + 1).decide([], { now: rig.now }).fired).toMatchObject([
      { name: 't', answer: { outcome: 'accepted' } },
    ])
  })

  it('counts the timers of its own commit from that commit', () => {
    const rig = deciderRig(list())
    rig.offer(...['a', 'b', 'c', 'timer'].map((item) => ({ kind: 'call', input: add(item), command: null }) as const))
    const at = rig.entries.findIndex(({ kind }) => kind === 'snapshot')
    expect(rig.reload(at + 1).timers).toEqual([{ name: 't', key: 't', dueAt: rig.now + 3_600_000, failures: 0 }])
    expect(rig.reload(at + 1).effects).toEqual(rig.instance.effects)
  })

  const others: readonly (readonly [string, Decider])[] = [
    ['whose evolve is another', list({ evolveAs: (items, { item }) => [item, ...items] })],
    ['whose stateVersion is another', list({ stateVersion: 2 })],
  ]
  it.each(others)('of code %s is passed over, and the journal is read from its beginning', (_what, other) => {
    const { rig, at } = longList()
    const { instance } = deciderRig(other)
    expect(instance.apply(rig.entries.slice(at))).toBe('stale')
    expect(instance.seq).toBe(0)
    expect(instance.apply(rig.entries)).toBe('folded')
    expect(instance.seq).toBe(rig.entries.length)
  })

  it.each(['{"state":', '[]', '{"state":1,"timers":[1]}'])('that cannot be read (%s) is passed over', (data) => {
    const { rig, at } = longList()
    const entries = rig.entries.map((entry) => (entry.kind === 'snapshot' ? { ...entry, data } : entry))
    expect(deciderRig(list()).instance.apply(entries.slice(at))).toBe('stale')
    const whole = deciderRig(list()).instance
    whole.apply(entries)
    expect(whole.state).toEqual(rig.instance.state)
  })

  it('is not written while an earlier batch is not committed, nor of an instance that is over, nor if it is off', () => {
    const rig = deciderRig(list())
    rig.execute(add('a'))
    const offers = ['b', 'c', 'd', 'e'].map((item) => ({ kind: 'call', input: add(item), command: null }) as const)
    rig.propose({ kind: 'call', input: add('z'), command: null })
    expect(rig.propose(...offers).snapshotAt).toBeNull()
    const off = decider('off', {
      initial,
      evolve,
      decide: (_order, _input: { type: 'Note'; orderId: string }) => decision({ type: 'Noted', text: '' }),
      id: 'orderId',
      snapshotEvery: null,
    })
    const quiet = deciderRig(off)
    for (let times = 0; times < 150; times += 1) quiet.execute({ type: 'Note', orderId: '1' })
    expect(quiet.entries.some(({ kind }) => kind === 'snapshot')).toBe(false)
  })
})
