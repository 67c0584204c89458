// The judge must be able to condemn: a sound history is found sound, and each thing that must not be, planted into it, is
// found by its name.

import { describe, expect, it } from 'vitest'
import type { JournalEntry, RunStatus } from '../../src/index.ts'
import { judge } from './checker.ts'
import type { Evidence, FinalRun } from './evidence.ts'
import type { Effect } from './testbed.ts'
import type { Operation } from './history.ts'
import { items, type Inputs, type Kind } from './workload.ts'

type Made = { readonly [Part in keyof Evidence]: Evidence[Part] }

const nothing: Made = {
  operations: [],
  effects: [],
  goneAt: new Map(),
  runs: [],
  deadLetters: [],
  happened: [],
  calls: [],
  leaseMs: 2_000,
}

const date = (at: number): Date => new Date(at)

/** A journal: `started`, then these, at 1,000, 2,000 and so on. */
function journal(input: unknown, ...rest: readonly Partial<JournalEntry>[]): readonly JournalEntry[] {
  const started = { kind: 'started', name: null, meta: null, data: input }
  return [started, ...rest].map((entry, index) => {
    return { name: null, meta: null, ...entry, seq: index + 1, at: date(1_000 * index) } as JournalEntry
  })
}

const step = (name: string, mark: string, n = 'x', attempt = 1): Partial<JournalEntry> => {
  return { kind: 'step-succeeded', name, meta: { attempt, ms: 1 }, data: { mark, value: `${name} of ${n}` } }
}
const woken = (id: string, kind: 'signal' | 'topic-signal' | 'broadcast'): Partial<JournalEntry> => {
  const place = { runId: '', seq: 0, name: null }
  const by = { id, kind, name: 'mail', place }
  return { kind: 'woken', name: 'signal', meta: { winner: 'signal', trueAt: 0, seenAt: 0, by }, data: { id } }
}
const succeeded = (output: unknown): Partial<JournalEntry> => ({ kind: 'succeeded', data: output })

function made(kind: Kind, status: RunStatus, entries: readonly JournalEntry[]): FinalRun {
  return { id: 'r', kind, status, tags: ['start-1'], idempotencyKey: 'key', parentId: null, journal: entries }
}

const effect = (name: string, mark: string, began: number, ended: number | null, worker = 'w1'): Effect => {
  return { worker, run: 'r', step: name, attempt: 1, key: `r:1:${name}`, mark, began, ended }
}

type Recorded = Pick<Operation, 'f' | 'args' | 'type' | 'value'>

function operations(...recorded: readonly Recorded[]): readonly Operation[] {
  return recorded.map((one, index) => {
    return { ...one, id: index + 1, proc: 'client-0', invokedAt: index * 10, at: index * 10 + 5 } as Operation
  })
}

const start = (input: unknown, kind: Kind, run = 'r', tag = 'start-1'): Recorded => {
  return { f: 'start', args: { kind, input, idempotencyKey: 'key', tag }, type: 'ok', value: { run } }
}
const signal = (id: string, order: number, name = 'mail', outcome = 'queued'): Recorded => {
  return { f: 'signal', args: { run: 'r', name, id, order }, type: 'ok', value: { outcome } }
}
const broadcast = (id: string): Recorded => {
  return { f: 'broadcast', args: { topic: items.name, id }, type: 'ok', value: { outcome: 'queued' } }
}

const napped = ['before of x', 'after of x']
const nap: Inputs['nap'] = { n: 'x', ms: 10, sleepMs: 500 }
const napJournal = journal(nap, step('before', 'm1'), step('after', 'm2'), succeeded(napped))
/** A run that slept as long as it should. */
const slept: Made = {
  ...nothing,
  operations: operations(start(nap, 'nap')),
  runs: [made('nap', 'succeeded', napJournal)],
  effects: [effect('before', 'm1', -500, -490), effect('after', 'm2', 90, 95)],
}

/** Two bodies at once. The first never ended. */
const twice = [
  effect('before', 'm0', -600, null, 'w2'),
  effect('before', 'm1', -590, -490),
  effect('after', 'm2', 90, 95),
]
const paused = { kind: 'paused', meta: { reason: 'operator', note: null } } as const
const resumed = { kind: 'resumed', meta: { note: null } } as const

const inbox: Inputs['inbox'] = { n: 'x', ms: 10, count: 2 }
const [one, two] = ['x-letter-1', 'x-letter-2'] as const
const inboxJournal = journal(inbox, woken(one, 'signal'), woken(two, 'signal'), succeeded([one, two]))
/** A run that read what was sent to it. */
const read: Made = {
  ...nothing,
  operations: operations(start(inbox, 'inbox'), signal(one, 1), signal(two, 2)),
  runs: [made('inbox', 'succeeded', inboxJournal)],
}

const consume: Inputs['consume'] = { n: 'x', ms: 10, count: 1, idleMs: 100 }
/** A run that took an item. */
const took: Made = {
  ...nothing,
  operations: operations(start(consume, 'consume'), broadcast('i')),
  runs: [made('consume', 'succeeded', journal(consume, woken('i', 'broadcast'), succeeded(['i'])))],
}

const saga: Inputs['saga'] = { n: 'x', ms: 10 }
const undoable = (name: string): Partial<JournalEntry> => {
  return { ...step(name, name), meta: { attempt: 1, ms: 1, undo: true } } as Partial<JournalEntry>
}
const undone = (name: string): Partial<JournalEntry> => ({ kind: 'undone', name, meta: { attempt: 1, ms: 1 } })
const failed = { kind: 'failed', data: new Error('x gives up') } as const
const sagaJournal = journal(saga, undoable('book'), undoable('ship'), undone('ship'), undone('book'), failed)
/** A run that failed and undid what it had done. */
const undid: Made = {
  ...nothing,
  operations: operations(start(saga, 'saga')),
  runs: [made('saga', 'failed', sagaJournal)],
  effects: ['book', 'ship', 'ship:undo', 'book:undo'].map((name, index) =>
    effect(name, name, index * 20, index * 20 + 5),
  ),
}

const offer: Inputs['offer'] = { n: 'x', ms: 10, waitMs: 10 }
/** A run that ended without what was offered to it. */
const declined: Made = {
  ...nothing,
  operations: operations(start(offer, 'offer'), signal('x-offer', 1, 'offers')),
  runs: [made('offer', 'succeeded', journal(offer, succeeded([])))],
  deadLetters: [{ runId: 'r', id: 'x-offer' }],
}

const parent: Inputs['parent'] = { n: 'x', ms: 10, children: 1, failing: -1 }
const child = made('child', 'succeeded', journal({ n: 'x.0', ms: 10, fails: false }, succeeded('only of x.0')))
/** A run with its child. */
const raised: Made = {
  ...nothing,
  operations: operations(start(parent, 'parent')),
  runs: [
    made('parent', 'succeeded', journal(parent, succeeded(['only of x.0']))),
    { ...child, id: 'c', parentId: 'r', tags: [], idempotencyKey: null },
  ],
}

/** The same, with other entries after its first. */
function rewritten(evidence: Made, ...rest: readonly Partial<JournalEntry>[]): Made {
  const [run] = evidence.runs
  return { ...evidence, runs: [{ ...run!, journal: journal(run!.journal[0]?.data, ...rest) }] }
}

function also(evidence: Made, ...recorded: readonly Recorded[]): Made {
  return { ...evidence, operations: [...evidence.operations, ...operations(...recorded)] }
}

const names = (evidence: Evidence): readonly string[] => [
  ...new Set(judge(evidence).violations.map(({ name }) => name)),
]

describe('the judge of a chaos run', () => {
  it.each([
    ['that slept', slept],
    ['that read', read],
    ['that took an item', took],
    ['that undid', undid],
    ['that was offered something in vain', declined],
    ['that has a child', raised],
  ])('finds nothing in a run %s', (_, evidence) => {
    expect(judge(evidence)).toMatchObject({ violations: [], counts: { lost: 0, doubled: 0 } })
  })

  const cancel = (outcome: string): Recorded => ({ f: 'cancel', args: { run: 'r' }, type: 'ok', value: { outcome } })
  const query = (value: number): Recorded => ({ f: 'query', args: { run: 'r', name: 'done' }, type: 'ok', value })
  const other = { ...slept.runs[0]!, id: 'other' }
  const cases: readonly (readonly [string, string, Made])[] = [
    ['start_not_lost', 'a run that was acknowledged and is gone', { ...slept, runs: [], effects: [] }],
    ['start_not_lost', 'a run that a client did not find', also(read, signal('x', 3, 'mail', 'target-not-found'))],
    ['start_same_input', 'a run of another input', also(slept, start({ ...nap, n: 'y' }, 'nap'))],
    ['start_not_made_up', 'a run that was refused', also(slept, { ...start(nap, 'nap'), type: 'fail', value: '' })],
    ['start_not_made_up', 'a run that nobody asked for', { ...slept, operations: [] }],
    ['one_key_one_run', 'two runs of one key', { ...slept, runs: [slept.runs[0]!, other] }],
    [
      'answer_is_computed',
      'a wrong answer',
      rewritten(read, woken(one, 'signal'), woken(two, 'signal'), succeeded([])),
    ],
    ['ends_after_heal', 'a run that does not end', { ...read, runs: [made('inbox', 'waiting', inboxJournal)] }],
    ['cancelled_was_asked', 'an end that nobody wanted', { ...read, runs: [made('inbox', 'cancelled', inboxJournal)] }],
    ['cancel_is_kept', 'a cancellation that was forgotten', also(slept, cancel('cancelling'))],
    [
      'ends_once',
      'a run that went on after its end',
      rewritten(took, succeeded([]), woken('i', 'broadcast'), succeeded(['i'])),
    ],
    [
      'result_is_recorded',
      'an end that only a client knows of',
      also(slept, { f: 'result', args: { run: 'r' }, type: 'ok', value: { status: 'succeeded', output: ['z'] } }),
    ],
    ['query_never_goes_back', 'a run that shows less than before', also(slept, query(2), query(1))],
    ['signal_not_lost', 'a signal that is nowhere', rewritten(read, woken(one, 'signal'), succeeded([one]))],
    ['signal_not_lost', 'an offer that is nowhere', { ...declined, deadLetters: [] }],
    [
      'signal_once',
      'a signal that was taken twice',
      rewritten(read, woken(one, 'signal'), woken(one, 'signal'), woken(two, 'signal'), succeeded([one, two])),
    ],
    ['signal_once', 'a dead letter that was taken', { ...read, deadLetters: [{ runId: 'r', id: one }] }],
    ['signal_was_sent', 'a signal that nobody sent', { ...read, operations: operations(start(inbox, 'inbox')) }],
    [
      'signal_in_order',
      'signals out of order',
      rewritten(read, woken(two, 'signal'), woken(one, 'signal'), succeeded([one, two])),
    ],
    ['item_not_lost', 'an item that is nowhere', also(took, broadcast('j'))],
    [
      'item_once',
      'an item that was taken twice',
      rewritten(took, woken('i', 'broadcast'), woken('i', 'broadcast'), succeeded(['i', 'i'])),
    ],
    ['item_was_sent', 'an item that nobody sent', { ...took, operations: operations(start(consume, 'consume')) }],
    ['effect_exclusive', 'a step that was performed twice at once', { ...slept, effects: twice }],
    [
      'effect_key_constant',
      'a step with two keys',
      { ...slept, effects: [{ ...effect('before', 'm0', -900, -800), key: 'k' }, ...slept.effects] },
    ],
    [
      'effect_has_run',
      'an effect without a run',
      { ...slept, effects: [...slept.effects, { ...effect('before', 'm3', 0, 1), run: 'q', key: 'q' }] },
    ],
    ['result_from_effect', 'a result that no body made', { ...slept, effects: [slept.effects[1]!] }],
    [
      'result_from_effect',
      'a result of a body that never ended',
      { ...slept, effects: [slept.effects[0]!, effect('after', 'm2', 90, null)] },
    ],
    [
      'result_from_effect',
      'a result that is not what it must be',
      rewritten(slept, step('before', 'm1', 'y'), step('after', 'm2'), succeeded(napped)),
    ],
    [
      'step_recorded_once',
      'a step that was recorded twice',
      rewritten(slept, step('before', 'm1'), step('before', 'm1'), step('after', 'm2'), succeeded(napped)),
    ],
    [
      'timer_not_early',
      'a sleep that was too short',
      { ...slept, effects: [effect('before', 'm1', -500, -400), effect('after', 'm2', 90, 95)] },
    ],
    [
      'undo_once',
      'a step that was not undone',
      rewritten(undid, undoable('book'), undoable('ship'), undone('ship'), failed),
    ],
    ['undo_once', 'an undo that never happened', { ...undid, effects: undid.effects.slice(0, 3) }],
    [
      'paused_rests',
      'a step that began in a run that was paused',
      {
        ...rewritten(slept, paused, resumed, step('before', 'm1'), step('after', 'm2'), succeeded(napped)),
        effects: [slept.effects[0]!, effect('after', 'm2', 1_500, 1_600)],
      },
    ],
    ['child_once', 'a child that came twice', { ...raised, runs: [...raised.runs, { ...raised.runs[1]!, id: 'd' }] }],
    [
      'attempt_recorded_once',
      'a failure that was forgotten',
      {
        ...nothing,
        runs: [made('retry', 'succeeded', journal({ ...saga, failures: 1 }, succeeded(['stubborn of x'])))],
      },
    ],
    [
      'testbed',
      'a worker that did not leave as it was asked',
      { ...slept, happened: [{ id: 9, proc: 'violation', type: 'info', f: 'w1 stays', args: {}, value: null, at: 0 }] },
    ],
  ]
  it.each(cases)('finds by %s %s', (name, _, evidence) => {
    expect(names(evidence)).toContain(name)
  })

  it('excuses a body that went on when its lease was over', () => {
    expect(judge({ ...slept, effects: twice, goneAt: new Map([['w2', -595]]) }).violations).toEqual([])
  })

  it('counts what nobody knows the outcome of, and believes it either way', () => {
    const unknown = { ...signal('x-letter-3', 3), type: 'info', value: 'timeout' } as const
    expect(judge(also(read, unknown))).toMatchObject({ violations: [], counts: { unknown: 1 } })
  })
})
