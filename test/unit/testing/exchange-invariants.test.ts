// The invariants of what lies between runs can fail, too: each is broken here and found by its name.

import { describe, expect, it } from 'vitest'
import type { Chore } from '../../../src/core/model/chore.ts'
import type { Entry } from '../../../src/core/model/entry.ts'
import type { WaitRow } from '../../../src/core/rules/messages/unit-of-work.ts'
import type { Message } from '../../../src/core/model/message.ts'
import type { Run } from '../../../src/core/model/run.ts'
import type { Broadcast } from '../../../src/core/model/topic.ts'
import { checkExchange, type RunState } from '../../../src/testing/invariants/index.ts'
import { newRun } from '../core/model/new-run.ts'

const now = 5_000
const over = { status: 'failed', readiness: 'idle', due: null, endedAt: 2_000 } as const

function keyed(id: string, changes: Partial<Run>): RunState {
  return { run: newRun({ id, ...changes }), entries: [], messages: [] }
}

describe('a state', () => {
  it('in which a run waits for a run that has ended is found', () => {
    const wait: WaitRow = {
      kind: 'run',
      target: 'b',
      runId: 'a',
      effect: 'notify',
      delivery: null,
      openedAt: 1,
      since: 0,
      missed: null,
    }
    const found = (waits: readonly WaitRow[], changes: Partial<Run>, chores: readonly Chore[] = []): string[] =>
      checkExchange({ waits, broadcasts: [], chores }, [keyed('a', {}), keyed('b', changes)], now).map(
        ({ name, runId }) => `${name} ${runId}`,
      )
    expect(found([wait], {})).toEqual([])
    expect(found([wait], over)).toEqual(['end_notified a'])
    expect(found([{ ...wait, effect: 'cancel' }], over)).toEqual(['end_notified a'])
    expect(found([{ ...wait, kind: 'topic' }], over)).toEqual([])
    const chore: Chore = { kind: 'end', target: 'b', position: 0, after: null }
    for (const after of [null, { openedAt: 0, runId: 'z' }, { openedAt: 1, runId: 'a' }]) {
      expect(found([wait], over, [{ ...chore, after }]), 'it is still to be notified').toEqual([])
    }
    for (const after of [
      { openedAt: 1, runId: 'b' },
      { openedAt: 2, runId: 'a' },
    ]) {
      expect(found([wait], over, [{ ...chore, after }]), 'the chore has gone past it').toEqual(['end_notified a'])
      expect(found([wait], over, [{ ...chore, position: 1, after }]), 'it was passed over').toEqual([])
    }
    expect(found([wait], over, [{ ...chore, kind: 'messages' }])).toEqual(['end_notified a'])
    expect(found([wait], over, [{ ...chore, target: 'c' }])).toEqual(['end_notified a'])
  })

  it('in which a signal of a run is neither in the mailbox of its receiver nor left to a chore is found', () => {
    const [sender, receiver] = ['01b8d1a4-e000-7000-8000-000000000001', '01b8d1a4-e000-7000-8000-000000000002']
    const meta = { to: receiver, signal: 'go', kind: 'signal', policy: null } as const
    const sent: Entry = { kind: 'signal-sent', name: 'signal', meta, data: '1', seq: 2, at: 3_000, transition: 't' }
    const message: Message = {
      id: `sent:${sender}:2`,
      runId: receiver,
      kind: 'signal',
      name: 'go',
      data: '1',
      policy: null,
      position: 1,
      at: 3_000,
    }
    const found = (there: Partial<RunState>, chores: readonly Chore[] = [], changes: Partial<Run> = {}): string[] =>
      checkExchange(
        { waits: [], broadcasts: [], chores },
        [
          { ...keyed(sender, {}), entries: [sent] },
          { ...keyed(receiver, changes), taken: [], ...there },
        ],
        now,
      ).map(({ name, runId }) => `${name} ${runId}`)
    const lost = [`sent_delivered ${sender}`]
    expect(found({})).toEqual(lost)
    expect(found({ messages: [message] })).toEqual([])
    expect(found({ taken: [{ id: message.id, position: 1, takenBy: 2 }] })).toEqual([])
    const chore: Chore = { kind: 'send', target: `${sender} ${receiver}`, position: 2, after: null }
    expect(found({}, [chore])).toEqual([])
    expect(found({}, [{ ...chore, position: 3 }])).toEqual(lost)
    expect(found({}, [{ ...chore, target: `${receiver} ${sender}` }])).toEqual(lost)
    expect(found({}, [], over), 'it was over').toEqual([])
    expect(found({}, [], { createdAt: 3_000 }), 'it was not there').toEqual([])
    const retried: Entry = {
      kind: 'retried',
      name: null,
      meta: { note: null },
      data: null,
      seq: 3,
      at: 1,
      transition: null,
    }
    expect(found({ entries: [retried] }), 'it was over for a while').toEqual([])
  })

  it('in which a queue keeps something although a run waits on it is found', () => {
    const wait: WaitRow = {
      kind: 'topic',
      target: 'q',
      runId: 'a',
      effect: 'notify',
      delivery: 'one',
      openedAt: 1,
      since: 0,
      missed: null,
    }
    const open: Broadcast = {
      topic: 'q',
      position: 1,
      id: 'b',
      delivery: 'one',
      data: '1',
      policy: null,
      at: 1,
      expiresAt: null,
      takenBy: null,
      deliveredTo: 0,
    }
    const found = (kept: Partial<Broadcast>, waiter: Partial<Run> = {}, waits: Partial<WaitRow> = {}): string[] =>
      checkExchange(
        { waits: [{ ...wait, ...waits }], broadcasts: [{ ...open, ...kept }], chores: [] },
        [keyed('a', waiter)],
        now,
      ).map(({ name, runId }) => `${name} ${runId}`)
    expect(found({})).toEqual(['queue_not_stuck a'])
    expect(found({ expiresAt: now + 1 })).toEqual(['queue_not_stuck a'])
    for (const kept of [{ expiresAt: now }, { takenBy: 'b' }, { topic: 'other' }, { delivery: 'all' }] as const) {
      expect(found(kept)).toEqual([])
    }
    expect(found({}, over)).toEqual([])
    expect(found({}, { deletedAt: 1 })).toEqual([])
    expect(found({}, {}, { delivery: 'all' })).toEqual([])
    expect(found({}, {}, { kind: 'run' })).toEqual([])
  })

  it('in which nobody will give a broadcast to who has missed it is found', () => {
    const wait: WaitRow = {
      kind: 'topic',
      target: 'q',
      runId: 'a',
      effect: 'notify',
      delivery: 'all',
      openedAt: 1,
      since: 0,
      missed: 3,
    }
    const found = (changes: Partial<WaitRow>, chores: readonly Chore[] = []): string[] =>
      checkExchange({ waits: [{ ...wait, ...changes }], broadcasts: [], chores }, [keyed('a', {})], now).map(
        ({ name, runId }) => `${name} ${runId}`,
      )
    const chore: Chore = { kind: 'late', target: 'q', position: 0, after: null }
    expect(found({})).toEqual(['late_catch_up a'])
    expect(found({ missed: null })).toEqual([])
    expect(found({}, [chore])).toEqual([])
    expect(found({}, [{ ...chore, target: 'other' }])).toEqual(['late_catch_up a'])
    expect(found({}, [{ ...chore, kind: 'topic' }])).toEqual(['late_catch_up a'])
  })

  it('in which a run has ended, and nobody will settle what it has not read, is found', () => {
    const message: Message = {
      id: 'm',
      runId: 'a',
      kind: 'signal',
      name: 's',
      data: '1',
      policy: null,
      position: 7,
      at: 1,
    }
    const found = (chores: readonly Chore[], changes: Partial<Run> = over): string[] =>
      checkExchange({ waits: [], broadcasts: [], chores }, [{ ...keyed('a', changes), messages: [message] }], now).map(
        ({ name, runId }) => `${name} ${runId}`,
      )
    const chore: Chore = { kind: 'messages', target: 'a', position: 6, after: null }
    expect(found([])).toEqual(['leftovers_settled a'])
    expect(found([], {}), 'a live run may still read it').toEqual([])
    expect(found([chore])).toEqual([])
    expect(found([{ ...chore, position: 7 }]), 'the chore has gone past it').toEqual(['leftovers_settled a'])
    expect(found([{ ...chore, kind: 'topic' }])).toEqual(['leftovers_settled a'])
    expect(found([{ ...chore, target: 'b' }])).toEqual(['leftovers_settled a'])
  })
})
