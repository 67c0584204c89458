// What a run sends while another transaction has locked the receiver, on a unit of work that is plain maps.

import { describe, expect, it } from 'vitest'
import type { Draft, Entry } from '../../../../../src/core/model/entry.ts'
import { partiesOf, sendTarget } from '../../../../../src/core/model/chore.ts'
import { sentMessageId } from '../../../../../src/core/model/message.ts'
import type { TopicRules } from '../../../../../src/core/model/topic.ts'
import { doChore } from '../../../../../src/core/rules/messages/exchange.ts'
import { sendAll } from '../../../../../src/core/rules/messages/send.ts'
import { broadcastSent, signalSent, step } from '../../../../../src/testing/contract/drafts.ts'
import { PlainUnitOfWork } from '../unit-of-work.ts'

const [sender, a, b] = [1, 2, 3].map((n) => `01b8d1a4-e000-7000-8000-00000000000${n}`) as [string, string, string]
const jobs: TopicRules = { name: 'jobs', delivery: 'one', retainMs: 0 }

function unitOfWork(): PlainUnitOfWork {
  const unit = new PlainUnitOfWork()
  unit.add(sender, { seq: 1 })
  unit.add(a)
  unit.add(b)
  return unit
}

/** A transition of the sender appends this. */
function append(unit: PlainUnitOfWork, ...drafts: readonly Draft[]): void {
  const { seq } = unit.known(sender)
  const run = unit.add(sender, { seq: seq + drafts.length })
  const entries = drafts.map((draft, at): Entry => ({ ...draft, seq: seq + at + 1, at: unit.now, transition: null }))
  unit.journals.set(sender, [...(unit.journals.get(sender) ?? []), ...entries])
  sendAll(unit, run, seq, drafts)
}

function goOn(unit: PlainUnitOfWork): void {
  for (const chore of unit.chores.values()) doChore(unit, chore)
}

const textsTo = (unit: PlainUnitOfWork, runId: string): readonly string[] =>
  unit.messages.filter((message) => message.runId === runId).map(({ data }) => data)

describe('a message to a receiver that another transaction has locked', () => {
  it('holds up neither its sender nor other receivers, and arrives before what is sent later', () => {
    const unit = unitOfWork()
    unit.locked.add(a)
    append(unit, signalSent(a, '1'), signalSent(b, 'x'))
    expect([textsTo(unit, a), textsTo(unit, b)]).toEqual([[], ['x']])
    unit.locked.clear()
    append(unit, step(), signalSent(a, '2'), signalSent(b, 'y'))
    expect([textsTo(unit, a), textsTo(unit, b)]).toEqual([[], ['x', 'y']])
    goOn(unit)
    expect(textsTo(unit, a)).toEqual(['1', '2'])
    expect(unit.messages.find(({ data }) => data === '2')?.id).toBe(sentMessageId(sender, 5))
    expect(unit.chores.size).toBe(0)
    append(unit, signalSent(a, '3'))
    expect(textsTo(unit, a)).toEqual(['1', '2', '3'])
  })

  it('is tried again less and less often, for as long as it takes', () => {
    const unit = unitOfWork()
    unit.locked.add(a)
    append(unit, signalSent(a, '1'))
    const target = sendTarget(sender, { kind: 'run', name: a })
    const delays: number[] = []
    for (const later of [0, 10_000, 100_000, 10_000_000]) {
      unit.now += later
      goOn(unit)
      delays.push((unit.dues.get(`send ${target}`) ?? 0) - unit.now)
    }
    expect(delays).toEqual([200, 1_250, 13_750, 60_000])
    expect(textsTo(unit, a)).toEqual([])
    unit.locked.clear()
    goOn(unit)
    expect([textsTo(unit, a), unit.chores.size]).toEqual([['1'], 0])
  })

  it('is not sent twice by two chores of which each has seen the first', () => {
    const unit = unitOfWork()
    unit.locked.add(a)
    append(unit, signalSent(a, '1'))
    const [chore] = unit.chores.values()
    unit.locked.clear()
    for (const taken of [chore, chore]) if (taken !== undefined) doChore(unit, taken)
    if (chore !== undefined) unit.chores.set(`send ${chore.target}`, chore)
    goOn(unit)
    expect(textsTo(unit, a)).toEqual(['1'])
  })

  it('waits for a topic, too, and expires by the time at which it was sent', () => {
    const unit = unitOfWork()
    unit.locked.add('jobs')
    append(unit, broadcastSent(jobs, '1', { expiresInMs: 1_000 }), broadcastSent(jobs, '2'))
    expect(unit.broadcasts).toEqual([])
    const sentAt = unit.now
    unit.now += 500
    unit.locked.clear()
    goOn(unit)
    expect(unit.broadcasts.map(({ data, expiresAt }) => [data, expiresAt])).toEqual([
      ['1', sentAt + 1_000],
      ['2', null],
    ])
    expect(unit.chores.size).toBe(0)
  })

  it('that has ended waits for the topic that its policy names', () => {
    const unit = unitOfWork()
    unit.end(a, { kind: 'succeeded', meta: null, data: '1' })
    unit.locked.add('jobs')
    const policy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 } as const
    append(unit, signalSent(a, '1', { signal: 'jobs', kind: 'topic-signal', policy }))
    expect([unit.messages.length, unit.chores.size]).toEqual([0, 1])
    unit.locked.clear()
    goOn(unit)
    expect([unit.broadcasts.length, unit.chores.size]).toEqual([1, 0])
  })

  it('is dropped with its chore if there is no sender any more', () => {
    const unit = unitOfWork()
    unit.locked.add(a)
    append(unit, signalSent(a, '1'))
    unit.runs.delete(sender)
    goOn(unit)
    expect(unit.chores.size).toBe(0)
  })
})

describe('the target of such a chore', () => {
  it('distinguishes a run from a topic of any name', () => {
    for (const receiver of [
      { kind: 'run', name: a },
      { kind: 'topic', name: a },
      { kind: 'topic', name: 'a/b c' },
      { kind: 'topic', name: ' ' },
    ] as const) {
      expect(partiesOf(sendTarget(sender, receiver))).toEqual({ senderId: sender, receiver })
    }
  })

  it('sends nothing where a key named no run', () => {
    const unit = unitOfWork()
    append(unit, { kind: 'signal-sent', name: 'signal', meta: null, data: null })
    expect([unit.messages.length, unit.chores.size]).toEqual([0, 0])
  })
})
