// Effects: what the engine is asked to perform, and how their outcomes come back.

import { describe, expect, it } from 'vitest'
import type { EffectTools } from '../../../src/core/definition/decider-model.ts'
import { decider, decision } from '../../../src/deciders/index.ts'
import { deciderRig, outcomes, seen } from '../../support/decider-rig.ts'
import { create, note, on, order, pay } from './order.ts'

const meta = { attempt: 1, ms: 3 }

describe('an effect', () => {
  it('IF-A14 IF-U1 is asked for with an identity, from which its idempotency key is made: type:id:effectId', () => {
    const rig = deciderRig(order, { id: '42' })
    const { effects } = rig.offer({ kind: 'call', input: { ...create, orderId: '42' }, command: null })
    expect(effects).toEqual([
      {
        seq: 4,
        name: 'sendMail#4',
        type: 'sendMail',
        idempotencyKey: 'order:42:4',
        effect: { type: 'sendMail', to: 'ada' },
        order: 'ada',
      },
    ])
    expect(rig.instance.effects).toEqual([{ name: 'sendMail#4', type: 'sendMail', seq: 4, createdAt: rig.now }])
  })

  it('IF-A13 is performed by the one handler of its type, which gets the effect and its tools', async () => {
    const tools = {} as EffectTools
    expect(order.model.effect('sendMail')?.perform({ type: 'sendMail', to: 'ada' }, tools)).toEqual({
      type: 'MailSent',
    })
    await expect(order.model.effect('ship')?.perform({ type: 'ship' }, tools)).resolves.toEqual({ type: 'Shipped' })
    expect(order.model.effect('toString')).toBeUndefined()
    expect(order.model.effectTypes).toEqual(['sendMail', 'ship'])
  })

  it('IF-R1 IF-R2 has five attempts, unless its type has a policy of its own', () => {
    expect(order.model.effect('ship')?.policy).toMatchObject({ maxAttempts: 5, initialMs: 1000, maxMs: 300_000 })
    expect(order.model.effect('sendMail')?.policy).toMatchObject({ maxAttempts: 2 })
  })

  it('that was performed is acknowledged in the transition that decides its result', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const decided = rig.offer({ kind: 'performed', name: 'sendMail#4', meta, result: { type: 'MailSent' } })
    expect(decided).toMatchObject({ answers: [{ outcome: 'accepted' }], settles: ['sendMail#4'] })
    expect(rig.story()[1]).toBe('effect-succeeded sendMail#4, input MailSent, event Confirmed')
    expect(rig.entries[6]?.meta).toEqual({ from: { kind: 'effect', name: 'sendMail#4' }, outcome: 'accepted' })
    expect(rig.instance.effects).toEqual([])
    expect(seen(rig.reload())).toEqual(seen(rig.instance))
  })

  it('that returns nothing is acknowledged alone', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    expect(rig.offer({ kind: 'performed', name: 'sendMail#4', meta, result: undefined })).toMatchObject({
      answers: [{ outcome: 'settled' }],
      settles: ['sendMail#4'],
    })
    expect(rig.story()[1]).toBe('effect-succeeded sendMail#4')
  })

  it('IF-R6 whose result cannot be decided has failed, and nothing of it is written', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const results = [on('Misspeak'), 'no input', { ...pay, amount: -1 }]
    for (const result of results) {
      const decided = rig.offer({ kind: 'performed', name: 'sendMail#4', meta, result })
      expect(decided).toMatchObject({ answers: [{ outcome: 'failed' }], append: [], settles: [] })
    }
    expect(rig.instance.effects).toHaveLength(1)
  })

  it('whose result is rejected is acknowledged: performing it again would change nothing', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    expect(rig.offer({ kind: 'performed', name: 'sendMail#4', meta, result: create }).settles).toEqual(['sendMail#4'])
    expect(rig.story()[1]).toBe('effect-succeeded sendMail#4, input Create, input-rejected')
  })

  it('is acknowledged once: a second outcome changes nothing', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const outcome = { kind: 'performed', name: 'sendMail#4', meta, result: { type: 'MailSent' } } as const
    expect(outcomes(rig.offer(outcome, outcome))).toEqual(['accepted', 'unknown-effect'])
    expect(outcomes(rig.offer(outcome))).toEqual(['unknown-effect'])
    expect(rig.story()).toHaveLength(2)
  })

  it('IF-R8 that gave up is reported to the decider in the transition that says so', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const decided = rig.offer({
      kind: 'gave-up',
      name: 'sendMail#4',
      meta,
      error: new Error('No such address'),
    })
    expect(decided.settles).toEqual(['sendMail#4'])
    expect(rig.story()[1]).toBe('effect-failed sendMail#4, input MailLost, event Unconfirmed')
    expect(rig.entries[5]?.data).toContain('No such address')
  })

  it('IF-R8 that gave up is a dead letter alone if the decider wants no input, or cannot decide it', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    rig.execute(pay)
    const { name } = rig.instance.effects.find(({ type }) => type === 'ship') ?? { name: '' }
    const error = new Error('x'.repeat(1e6))
    expect(outcomes(rig.offer({ kind: 'gave-up', name, meta, error }))).toEqual(['settled'])
    const careless = decider('careless', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Said' }) => count + 1,
      decide: (_count, _input: { type: 'Say'; id: string }) => decision({ type: 'Said' }).effect({ type: 'shout' }),
      id: 'id',
      effects: { shout: () => undefined },
      onDeadLetter: () => {
        throw new Error('No answer to that')
      },
    })
    const other = deciderRig(careless)
    other.execute({ type: 'Say', id: '1' })
    const decided = other.offer({ kind: 'gave-up', name: 'shout#4', meta, error })
    expect(decided).toMatchObject({ answers: [{ outcome: 'failed' }], settles: ['shout#4'] })
    expect(other.story()[1]).toBe('effect-failed shout#4, input, input-failed')
    expect(other.entries[4]?.data?.length).toBeLessThan(66_000)
  })

  it('that gave up and was retried has its second outcome recorded, too, and no third', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    rig.offer({ kind: 'gave-up', name: 'sendMail#4', meta, error: new Error('No such address') })
    const performed = { kind: 'performed', name: 'sendMail#4', meta, result: { type: 'MailSent' } } as const
    expect(seen(rig.reload())).toEqual(seen(rig.instance))
    expect(outcomes(rig.offer(performed))).toEqual(['accepted'])
    expect(outcomes(rig.offer(performed))).toEqual(['unknown-effect'])
    expect(rig.instance.state).toMatchObject({ isConfirmed: true })
  })

  it('whose outcome a message reports takes it, also if it is known already', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const performed = { kind: 'performed', name: 'sendMail#4', meta, result: undefined } as const
    expect(rig.offer({ ...performed, message: 'm1' }).takes).toEqual(['m1'])
    expect(rig.offer({ ...performed, message: 'm2' })).toMatchObject({ takes: ['m2'], settles: [] })
    expect(rig.story()[2]).toBe('input')
  })

  it('of an order begins when the one before it has its outcome, and at the latest with the end', () => {
    const letters = decider('letters', {
      initial: () => 'open',
      evolve: (_state, event: { type: 'Sent' | 'Closed' }) => (event.type === 'Closed' ? 'closed' : 'open'),
      decide: (_state, input: { type: 'Send' | 'Close'; id: string }) => {
        if (input.type === 'Close') return decision({ type: 'Closed' })
        return decision({ type: 'Sent' }).effect({ type: 'post' }).effect({ type: 'call' })
      },
      id: 'id',
      isTerminal: (state) => state === 'closed',
      effects: { post: { perform: () => undefined, orderBy: () => 'all' }, call: () => undefined },
    })
    const rig = deciderRig(letters)
    const begun = ({ effects }: { effects: readonly { name: string }[] }): readonly string[] =>
      effects.map(({ name }) => name)
    const send = (): readonly string[] =>
      begun(rig.offer({ kind: 'call', input: { type: 'Send', id: '1' }, command: null }))
    expect([send(), send(), send()]).toEqual([['post#4', 'call#5'], ['call#9'], ['call#13']])
    const done = { kind: 'performed', name: 'post#4', meta, result: undefined } as const
    expect(begun(rig.offer(done))).toEqual(['post#8'])
    const close = rig.offer({ kind: 'call', input: { type: 'Close', id: '1' }, command: null })
    expect(begun(close)).toEqual(['post#12'])
  })

  it('that gave up is recorded even if the input that reports it never fits into a transition', () => {
    const verbose = decider('verbose', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Said' }) => count + 1,
      decide: (_count, input: { type: 'Say'; id: string } | { type: 'Lost' }) => {
        if (input.type === 'Say') return decision({ type: 'Said' }).effect({ type: 'shout' })
        return decision({ type: 'Said' }, ...Array.from({ length: 600 }, () => ({ type: 'Said' }) as const))
      },
      id: { Say: 'id', Lost: null },
      effects: { shout: () => undefined },
      onDeadLetter: () => ({ type: 'Lost' }),
    })
    const rig = deciderRig(verbose)
    rig.execute({ type: 'Say', id: '1' })
    const decided = rig.offer({ kind: 'gave-up', name: 'shout#4', meta, error: new Error('No voice') })
    expect(decided).toMatchObject({ answers: [{ outcome: 'failed' }], settles: ['shout#4'], isCut: false })
    expect(rig.story()[1]).toBe('effect-failed shout#4, input, input-failed')
  })

  it('that was asked for before the end is still to be performed, and its outcome changes nothing after it', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const { effects, end } = rig.offer({ kind: 'call', input: on('Abandon'), command: null })
    expect({ end, effects: effects.map(({ name }) => name) }).toEqual({ end: 'succeeded', effects: ['ship#8'] })
    expect(rig.instance.effects).toHaveLength(2)
    const late = rig.offer({ kind: 'performed', name: 'ship#8', meta, result: { type: 'Shipped' } })
    expect(late).toMatchObject({ answers: [{ outcome: 'already-completed' }], append: [] })
  })

  it('IF-E10 does not change the answer to the input that asked for it', () => {
    const rig = deciderRig(order)
    expect(rig.execute(create).outcome).toBe('accepted')
    expect(rig.execute(note('fine')).outcome).toBe('accepted')
    expect(rig.instance.effects).toHaveLength(1)
  })
})

describe('a start and a signal', () => {
  it('are asked for with the entry that says so, and nothing of their payloads is written twice', () => {
    const starter = decider('starter', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Asked' }) => count + 1,
      decide: (_count, _input: { type: 'Ask'; id: string }) =>
        decision({ type: 'Asked' })
          .start('ship', { parcel: 1 }, { key: 'p' })
          .signal({ workflow: 'ship', key: 'p' }, 'go', { now: true })
          .signal({ id: 'run-1' }, 'stop'),
      id: 'id',
    })
    const rig = deciderRig(starter)
    const { starts, signals } = rig.offer({ kind: 'call', input: { type: 'Ask', id: '1' }, command: null })
    expect(starts).toEqual([{ seq: 4, workflow: 'ship', input: { parcel: 1 }, options: { key: 'p' }, run: null }])
    expect(signals).toEqual([
      { seq: 5, to: { workflow: 'ship', key: 'p' }, name: 'go', payload: { now: true } },
      { seq: 6, to: 'run-1', name: 'stop', payload: null },
    ])
    expect(rig.story()).toEqual(['started, input Ask, event Asked, start-sent ship, signal-sent go, signal-sent stop'])
  })
})

describe('an orderBy that throws', () => {
  it('fails the report of an effect alone, which is decided once that is repaired', () => {
    let isBroken = false
    const sorted = decider('sorted', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Asked' }) => count + 1,
      decide: (_count, _input: { type: 'Ask'; id: string }) => decision({ type: 'Asked' }).effect({ type: 'mail' }),
      id: 'id',
      effects: {
        mail: {
          perform: () => undefined,
          orderBy: () => {
            if (isBroken) throw new Error('Changed')
            return 'x'
          },
        },
      },
    })
    const rig = deciderRig(sorted)
    rig.execute({ type: 'Ask', id: '1' })
    const [{ name } = { name: '' }] = rig.instance.effects
    const report = { kind: 'performed', name, meta: { attempt: 1, ms: 0 }, result: undefined } as const
    isBroken = true
    expect(outcomes(rig.offer(report))).toEqual(['failed'])
    isBroken = false
    expect(outcomes(rig.offer(report))).toEqual(['settled'])
  })
})
