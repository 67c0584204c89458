// What follows from inputs, and what does not: each is decided once, in order, and harms no other.

import { describe, expect, it } from 'vitest'
import { mostEntries } from '../../../src/core/model/transition.ts'
import { assertNotPure } from '../../../src/core/runtime/pure-call.ts'
import { decider, decision, type Rejected } from '../../../src/deciders/index.ts'
import { deciderRig, outcomes, seen } from '../../support/decider-rig.ts'
import { create, note, on, order, pay } from './order.ts'

describe('an input', () => {
  it('IF-E2 is one transition with its events, then its effects and timers in the order in which they were asked for', () => {
    const rig = deciderRig(order)
    expect(rig.execute(create)).toEqual({
      outcome: 'accepted',
      events: [{ type: 'Created' }],
      state: { status: 'open', isConfirmed: false, notes: [] },
    })
    rig.execute(pay, 'pay')
    expect(rig.story()).toEqual([
      'started, input Create, event Created, effect sendMail#4, timer payment',
      'input Pay, event Paid, effect ship#8, timer-cancelled payment',
    ])
    expect(rig.entries[5]?.meta).toEqual({ from: { kind: 'call' }, outcome: 'accepted', command: 'pay' })
    expect(rig.entries[6]).toMatchObject({ kind: 'event', name: 'Paid', meta: { version: 1 } })
  })

  it('IF-A1 IF-A4 changes the state through events alone: another fold of the journal has the same state', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    rig.execute(note('quickly'))
    rig.execute(pay)
    expect(seen(rig.reload())).toEqual(seen(rig.instance))
  })

  it('IF-E6 IF-A15 that is rejected first leaves nothing behind, and a later one in the batch begins the instance', () => {
    const rig = deciderRig(order)
    const decided = rig.offer(
      { kind: 'call', input: pay, command: 'early' },
      { kind: 'call', input: create, command: 'create' },
      { kind: 'call', input: create, command: null },
    )
    expect(decided.answers[0]).toEqual({ outcome: 'rejected', rejection: { reason: 'There is no such order.' } })
    expect(outcomes(decided)).toEqual(['rejected', 'accepted', 'rejected'])
    expect(rig.story()).toEqual(['started, input Create, event Created, effect sendMail#4, timer payment'])
    const empty = deciderRig(order)
    expect(empty.execute(pay, 'early').outcome).toBe('rejected')
    expect(empty.entries).toEqual([])
    expect(empty.instance.seq).toBe(0)
  })

  it('IF-E5 IF-E6 that is rejected is recorded with its rejection if its command may be repeated', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    rig.execute(create)
    expect(rig.entries).toHaveLength(5)
    rig.execute(create, 'again')
    expect(rig.story()[1]).toBe('input Create, input-rejected')
    expect(rig.entries[6]).toMatchObject({ data: '{"reason":"It exists."}' })
  })

  it('IF-A9 IF-E7 to an instance that is over runs no decide and records no event', () => {
    let calls = 0
    const counted = decider('counted', {
      initial: () => false,
      evolve: (_isOver, _event: { type: 'Closed' }) => true,
      decide: (_isOver, _input: { type: 'Close'; id: string }) => {
        calls += 1
        return decision({ type: 'Closed' })
      },
      id: 'id',
      isTerminal: (isOver) => isOver,
    })
    const rig = deciderRig(counted)
    const close = { type: 'Close', id: '1' }
    expect(rig.execute(close).outcome).toBe('accepted')
    expect(rig.story()).toEqual(['started, input Close, event Closed, succeeded'])
    expect(rig.execute(close)).toEqual({ outcome: 'already-completed' })
    const late = { kind: 'message', id: 'm', at: 0, read: () => close } as const
    expect(rig.offer(late, late)).toMatchObject({
      append: [],
      takes: [],
      answers: [{ outcome: 'already-completed' }, {}],
    })
    expect(calls).toBe(1)
    expect(rig.story()).toHaveLength(1)
  })

  it('IF-E7 that comes with the one that ends it is not recorded: the end is the last entry', () => {
    const rig = deciderRig(order)
    rig.execute(create, 'create')
    const message = (id: string, input: unknown) => ({ kind: 'message', id, at: 0, read: () => input }) as const
    const damaged = { ...message('damaged', null), read: () => JSON.parse('{') as unknown }
    const late = [message('late', note('late')), message('create', create), damaged]
    const decided = rig.offer(message('end', on('Abandon')), ...late)
    expect(decided.takes).toEqual(['end'])
    expect(outcomes(decided)).toEqual(['accepted', ...late.map(() => 'already-completed')])
    expect(rig.entries.at(-1)).toMatchObject({ kind: 'succeeded' })
  })

  it('that makes decide or evolve throw, or returns what cannot be recorded, fails alone and shows the input', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const offers = [{ ...pay, amount: -1 }, on('Misspeak'), on('Overreach'), note('fine'), { type: 1 }, pay]
    const decided = rig.offer(...offers.map((input) => ({ kind: 'call', input, command: null }) as const))
    expect(outcomes(decided)).toEqual(['failed', 'failed', 'failed', 'accepted', 'failed', 'accepted'])
    const errors = decided.answers.flatMap((answer) => (answer.outcome === 'failed' ? [answer.error] : []))
    expect(errors.map(({ code }) => code)).toEqual(Array<string>(4).fill('DECIDE_FAILED'))
    expect(errors.map(({ message }) => message)).toEqual([
      'Decider "order" could not decide an input "Pay" for instance "1": An amount cannot be negative',
      'Decider "order" could not decide an input "Misspeak" for instance "1": Event "Mispaid", entry 7 of instance "1" of ' +
        'decider "order", cannot be folded: evolve returned nothing, so it does not know this event',
      'Decider "order" could not decide an input "Overreach" for instance "1": decide asked for an effect "shipp", and no ' +
        'handler performs it. Did you mean "ship"? Add it to the effects of the decider.',
      expect.stringContaining('An input of decider "order" must be an object with a type'),
    ])
    expect(errors[0]?.details).toEqual({ type: 'order', id: '1', input: '{"amount":-1,"orderId":"1","type":"Pay"}' })
    expect(rig.story()[1]).toBe(
      'input Note, event Noted, input Pay, event Paid, effect ship#10, timer-cancelled payment',
    )
    expect(seen(rig.reload())).toEqual(seen(rig.instance))
  })

  it('from the mailbox that cannot be read or decided leaves it, recorded as failed', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const read = () => {
      throw new Error('damaged')
    }
    const decided = rig.offer(
      { kind: 'message', id: 'a', at: 1, read },
      { kind: 'message', id: 'b', at: 2, read: () => ({ ...pay, amount: -1 }) },
      { kind: 'message', id: 'c', at: 3, read: () => ({ ...pay, amount: () => 1 }) },
      { kind: 'message', id: 'd', at: 4, read: () => pay },
    )
    expect(outcomes(decided)).toEqual(['failed', 'failed', 'failed', 'accepted'])
    expect(decided.takes).toEqual(['a', 'b', 'c', 'd'])
    expect(rig.story()[1]).toBe(
      'input, input-failed, input Pay, input-failed, input, input-failed, ' +
        'input Pay, event Paid, effect ship#14, timer-cancelled payment',
    )
  })

  it('IF-A5 without an event is none, whatever a cast has made of it', () => {
    const odd = decider('odd', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Counted' }) => count + 1,
      decide: (_count, input: { type: 'None' | 'Nothing' | 'Promise'; id: string }) => {
        const results = { None: { events: [], requests: [] }, Nothing: undefined, Promise: Promise.resolve() }
        return results[input.type] as unknown as Rejected
      },
      id: 'id',
    })
    for (const type of ['None', 'Nothing', 'Promise']) {
      expect(deciderRig(odd).execute({ type, id: '1' })).toMatchObject({
        outcome: 'failed',
        error: { code: 'DECIDE_FAILED', message: expect.stringMatching(/decision\(…\)|promise/) as string },
      })
    }
  })

  it('cannot call the engine while it is decided', () => {
    const greedy = decider('greedy', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Counted' }) => count + 1,
      decide: (_count, _input: { type: 'Count'; id: string }) => {
        assertNotPure('holdfast.execute()')
        return decision({ type: 'Counted' })
      },
      id: 'id',
    })
    const answer = deciderRig(greedy).execute({ type: 'Count', id: '1' })
    expect(answer).toMatchObject({ error: { cause: { code: 'DECIDE_UNSAFE', family: 'usage' } } })
    assertNotPure('holdfast.execute()')
  })

  it('gets the time of the store as it is, and cannot change it', () => {
    const times: number[] = []
    const clock = decider('clock', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Ticked' }) => count + 1,
      decide: (_count, _input: { type: 'Tick'; id: string }, tools) => {
        times.push(tools.now)
        expect(Object.isFrozen(tools)).toBe(true)
        return decision({ type: 'Ticked' })
      },
      id: 'id',
    })
    const rig = deciderRig(clock)
    rig.now = 77
    rig.execute({ type: 'Tick', id: '1' })
    expect(times).toEqual([77])
  })
})

describe('a batch', () => {
  it('IF-C1 decides each input on the state that the one before has left', () => {
    const rig = deciderRig(order)
    const decided = rig.offer(
      ...[create, pay, pay, note('late')].map((input, at) => ({ kind: 'call', input, command: `${at}` }) as const),
    )
    expect(outcomes(decided)).toEqual(['accepted', 'accepted', 'rejected', 'accepted'])
    expect(rig.story()).toHaveLength(1)
  })

  it('holds what one transition takes, and leaves the others for the next', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const offers = Array.from(
      { length: 400 },
      (_, at) => ({ kind: 'call', input: note(`${at}`), command: null }) as const,
    )
    const decided = rig.offer(...offers)
    expect(decided.answers).toHaveLength(250)
    expect(decided.isCut).toBe(true)
    expect(decided.append).toHaveLength(mostEntries)
    const rest = rig.offer(...offers.slice(decided.answers.length))
    expect(rest).toMatchObject({ isCut: false })
    expect((rig.instance.state as { notes: string[] }).notes).toEqual(offers.map((_, at) => `${at}`))
  })

  it('holds 4 MiB, and an input that never fits fails alone', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const large = 'x'.repeat(700 * 1024)
    const offers = [large, large, large].map((text) => ({ kind: 'call', input: note(text), command: null }) as const)
    expect(rig.offer(...offers)).toMatchObject({
      isCut: true,
      answers: [{ outcome: 'accepted' }, { outcome: 'accepted' }],
    })
    const many = decider('many', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Counted' }) => count + 1,
      decide: (_count, _input: { type: 'Count'; id: string }) => {
        const [first, ...more] = Array.from({ length: mostEntries }, () => ({ type: 'Counted' }) as const)
        return decision(first ?? { type: 'Counted' }, ...more)
      },
      id: 'id',
    })
    const alone = deciderRig(many)
    const failed = alone.execute({ type: 'Count', id: '1' })
    expect(failed).toMatchObject({
      outcome: 'failed',
      error: { message: expect.stringContaining('500 entries') as string },
    })
    expect(alone.entries).toEqual([])
  })

  it('that is refused is taken back with all that was decided on top of it', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    rig.execute(note('kept'), 'kept')
    const before = seen(rig.instance)
    rig.propose({ kind: 'call', input: on('Extend'), command: 'extend' })
    rig.propose({ kind: 'call', input: pay, command: 'pay' })
    expect(rig.instance.effects).toHaveLength(2)
    rig.instance.rollBack()
    expect(seen(rig.instance)).toEqual(before)
    expect(rig.execute(pay, 'pay').outcome).toBe('accepted')
    expect(rig.execute(note('no'), 'kept').outcome).toBe('duplicate')
    expect(seen(rig.reload())).toEqual(seen(rig.instance))
  })

  it('may follow another that is not committed yet, and both get their times', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const first = rig.propose({ kind: 'call', input: on('Extend'), command: null })
    const second = rig.propose({ kind: 'call', input: note('on top'), command: null })
    rig.now += 7
    rig.commit(first)
    rig.now += 5
    rig.commit(second)
    expect(rig.instance.timers).toEqual([
      { name: 'payment', key: 'payment', dueAt: 1_000_007 + 3 * 3_600_000, failures: 0 },
    ])
    expect(seen(rig.reload())).toEqual(seen(rig.instance))
  })
})

describe('a run that was started with an input', () => {
  const started = (input: unknown) =>
    ({ kind: 'started', name: null, meta: null, data: JSON.stringify(input), seq: 1, at: 5, transition: 's' }) as const

  it('decides it before anything else', () => {
    const rig = deciderRig(order, { entries: [started(create)] })
    const decided = rig.offer({ kind: 'call', input: pay, command: null })
    expect(decided.begun).toMatchObject({ outcome: 'accepted', events: [{ type: 'Created' }] })
    expect(rig.entries.slice(1).map(({ kind }) => kind)).toEqual([
      'input',
      'event',
      'effect',
      'timer',
      'input',
      'event',
      'effect',
      'timer-cancelled',
    ])
    expect(rig.offer().begun).toBeNull()
  })

  it('IF-E6 is over if its input is rejected or fails, and waits for nothing', () => {
    const rejected = deciderRig(order, { entries: [started(pay)] })
    expect(rejected.fire()).toMatchObject({ begun: { outcome: 'rejected' }, end: 'failed', due: null })
    expect(rejected.story()).toEqual(['started', 'input Pay, input-rejected, failed'])
    expect(rejected.entries.at(-1)?.data).toContain('INPUT_REJECTED')
    expect(rejected.execute(create)).toEqual({ outcome: 'already-completed' })
    const failed = deciderRig(order, { entries: [started('no input')] })
    expect(failed.fire()).toMatchObject({ begun: { outcome: 'failed' }, end: 'failed' })
    expect(failed.story()).toEqual(['started', 'input, input-failed, failed'])
  })
})
