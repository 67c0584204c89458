// Repeated commands: each gets the first outcome, for as long as it is remembered.

import { describe, expect, it } from 'vitest'
import { decider, decision, reject } from '../../../src/deciders/index.ts'
import { mostCommands } from '../../../src/deciders/fold/known-commands.ts'
import { deciderRig, outcomes } from '../../support/decider-rig.ts'
import { create, note, order, pay } from './order.ts'

type CountInput = { readonly type: 'Count'; readonly id: string; readonly by: number } | { readonly type: 'Beat' }

/** Recognises inputs by their content. */
const counter = decider('counter', {
  initial: () => 0,
  evolve: (count, event: { type: 'Counted'; by: number }) => count + event.by,
  decide: (_count, input: CountInput) => {
    if (input.type === 'Beat')
      return decision({ type: 'Counted', by: 100 }).timer('beat', { after: 10 }, { type: 'Beat' })
    if (input.by < 0) return reject('negative')
    const counted = decision({ type: 'Counted', by: input.by })
    return input.by === 7 ? counted.timer('beat', { after: 10 }, { type: 'Beat' }) : counted
  },
  id: { Count: 'id', Beat: null },
  dedup: { last: 3, within: '1m' },
})
const count = (by: number): CountInput => ({ type: 'Count', id: '1', by })

describe('a command id', () => {
  it('IF-U2 that is repeated gets the first outcome, whatever the input is now, and a rejection, too', () => {
    const rig = deciderRig(order)
    rig.execute(create, 'create')
    const paid = rig.execute(pay, 'pay')
    const rejected = rig.execute(create, 'again')
    for (const instance of [rig.instance, rig.reload()]) {
      const decided = instance.decide(
        ['create', 'pay', 'again'].map((command) => ({ kind: 'call', input: note('other'), command }) as const),
        { now: rig.now },
      )
      expect(decided.append).toEqual([])
      const answers = decided.answers.map((answer) => {
        if (answer.outcome !== 'duplicate') throw new Error('It was decided anew')
        return instance.recall(answer.of, rig.entries.slice(answer.of.seq - 1))
      })
      expect(answers[1]).toEqual(paid)
      expect(answers[2]).toEqual(rejected)
      expect(answers[0]).toMatchObject({ outcome: 'accepted', events: [{ type: 'Created' }] })
    }
  })

  it('that comes twice in a batch, or while the first is not committed, gets the first answer itself', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    const call = { kind: 'call', input: pay, command: 'pay' } as const
    const first = rig.propose(call, call)
    expect(outcomes(first)).toEqual(['accepted', 'duplicate'])
    expect(first.answers[1]).toMatchObject({ first: first.answers[0] })
    const second = rig.propose(call)
    expect(second.answers[0]).toMatchObject({ first: first.answers[0] })
    rig.commit(first)
    expect(rig.propose(call).answers[0]).toMatchObject({ of: { seq: 6 }, first: null })
  })

  it('of a message is its id: a second one leaves the mailbox and changes nothing', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    rig.execute(pay, 'pay')
    const decided = rig.offer({ kind: 'message', id: 'pay', at: 1, read: () => pay })
    expect(decided).toMatchObject({ answers: [{ outcome: 'duplicate' }], takes: ['pay'] })
    expect(rig.story().at(-1)).toBe('input')
    expect(rig.entries.at(-1)?.meta).toEqual({ from: { kind: 'message', id: 'pay' }, outcome: 'duplicate' })
    expect(rig.execute(note('x'), 'pay')).toMatchObject({ of: { seq: 6 } })
  })

  it('that failed may be tried again: nothing of it was written', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    expect(rig.execute({ ...pay, amount: -1 }, 'pay').outcome).toBe('failed')
    expect(rig.execute(pay, 'pay').outcome).toBe('accepted')
  })

  it('of a message that failed gets that failure again', () => {
    const rig = deciderRig(order)
    rig.execute(create)
    rig.offer({ kind: 'message', id: 'm', at: 1, read: () => ({ ...pay, amount: -1 }) })
    const answer = rig.execute(pay, 'm')
    if (answer.outcome !== 'duplicate') throw new Error('It was decided anew')
    const first = rig.instance.recall(answer.of, rig.entries.slice(answer.of.seq - 1))
    expect(first).toMatchObject({
      outcome: 'failed',
      error: { message: expect.stringContaining('negative') as string },
    })
  })

  it('is remembered for a thousand commands, also by another fold of the journal', () => {
    const rig = deciderRig(counter)
    for (let at = 0; at <= mostCommands; at += 1) rig.execute(count(at + 1000), `c${at}`)
    for (const instance of [rig.instance, rig.reload()]) {
      const decide = (command: string) => {
        const { answers } = instance.decide([{ kind: 'call', input: count(-1), command }], { now: rig.now })
        instance.rollBack()
        return answers[0]?.outcome
      }
      expect([decide('c0'), decide('c1'), decide(`c${mostCommands}`)]).toEqual(['rejected', 'duplicate', 'duplicate'])
    }
  })
})

describe('an input that is recognised by its content', () => {
  it('IF-U2 within the window gets the first outcome, and after it is decided anew', () => {
    const rig = deciderRig(counter)
    expect(
      outcomes(rig.offer(...[1, 1, 2].map((by) => ({ kind: 'call', input: count(by), command: null }) as const))),
    ).toEqual(['accepted', 'duplicate', 'accepted'])
    rig.now += 60_000
    expect(rig.execute({ by: 1, id: '1', type: 'Count' }).outcome).toBe('duplicate')
    rig.now += 1
    expect(rig.execute(count(1)).outcome).toBe('accepted')
    expect(rig.instance.state).toBe(4)
  })

  it('is remembered as one of the last three, rejected or not, and by another fold, too', () => {
    const rig = deciderRig(counter)
    for (const by of [1, 2, -3, 4]) rig.execute(count(by))
    for (const instance of [rig.instance, rig.reload()]) {
      const decided = instance.decide(
        [1, 2, -3, 4].map((by) => ({ kind: 'call', input: count(by), command: null }) as const),
        { now: rig.now },
      )
      expect(outcomes(decided)).toEqual(['accepted', 'duplicate', 'duplicate', 'duplicate'])
      instance.rollBack()
    }
  })

  it('is not one that a timer brings: the same input comes again and again', () => {
    const rig = deciderRig(counter)
    rig.execute(count(7))
    for (let times = 0; times < 3; times += 1) {
      rig.now += 10
      rig.fire()
    }
    expect(rig.instance.state).toBe(307)
  })

  it('from the mailbox leaves it and changes nothing', () => {
    const rig = deciderRig(counter)
    rig.execute(count(1))
    const decided = rig.offer({ kind: 'message', id: 'm', at: 1, read: () => count(1) })
    expect(decided).toMatchObject({ answers: [{ outcome: 'duplicate' }], takes: ['m'] })
    expect(rig.instance.state).toBe(1)
  })
})
