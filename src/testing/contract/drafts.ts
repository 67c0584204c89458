// Entries for the cases of the contract, which a store keeps without interpreting them.

import type { Draft } from '../../core/model/entry.ts'
import type { BroadcastMeta, SignalMeta } from '../../core/model/message.ts'
import type { TopicRules } from '../../core/model/topic.ts'
import type { TerminalStatus } from '../../core/model/run.ts'
import type { Due } from '../../core/model/due.ts'

export function started(data = '{"order":42}'): Draft {
  return { kind: 'started', name: null, meta: null, data }
}

export function step(name = 'charge', data = '{"paid":true}'): Draft {
  return { kind: 'step-succeeded', name, meta: { attempt: 1, ms: 12 }, data }
}

export function waiting(name = 'approval'): Draft {
  return { kind: 'waiting', name, meta: { conditions: [{ tag: 'ok', kind: 'signal', name: 'approved' }] }, data: null }
}

/** A signal that a run sends to another. */
export function signalSent(to: string, data = '"sent"', changes: Partial<SignalMeta> = {}): Draft {
  const meta = { to, signal: 'approved', kind: 'signal', policy: null, ...changes } as const
  return { kind: 'signal-sent', name: 'signal', meta, data }
}

/** A broadcast that a run sends. */
export function broadcastSent(topic: TopicRules, data = '"sent"', changes: Partial<BroadcastMeta> = {}): Draft {
  return {
    kind: 'broadcast-sent',
    name: 'broadcast',
    meta: { topic, policy: null, expiresInMs: null, ...changes },
    data,
  }
}

/** Due after a delay. */
export function inMs(ms: number): Due {
  return { at: null, afterMs: ms }
}

/** The entry with which a run comes to an end. */
export function ending(status: TerminalStatus): Draft {
  if (status === 'cancelled') {
    return { kind: status, name: null, meta: { reason: 'enough', notUndone: ['charge'] }, data: null }
  }
  return { kind: status, name: null, meta: null, data: `"${status}"` }
}

const error = '{"name":"Error","message":"no"}'

/** The outcomes of calls and holders. */
const everyOutcome: readonly Draft[] = [
  step(),
  { kind: 'step-succeeded', name: 'reserve', meta: { attempt: 1, ms: 2, undo: true }, data: '1' },
  { kind: 'patched', name: 'new-rounding', meta: null, data: null },
  { kind: 'undone', name: 'reserve', meta: { attempt: 1, ms: 2 }, data: null },
  { kind: 'undo-attempt-failed', name: 'reserve', meta: { attempt: 1, ms: 2, delayMs: 50 }, data: error },
  { kind: 'undo-failed', name: 'reserve', meta: { attempt: 2, ms: 2 }, data: error },
  { kind: 'step-succeeded', name: 'validate', meta: { attempt: 1, ms: 2, event: 'valid' }, data: 'null' },
  { kind: 'step-failed', name: 'refund', meta: { attempt: 5, ms: 0 }, data: '{"name":"Error","message":"no"}' },
  {
    kind: 'attempt-failed',
    name: 'refund',
    meta: { attempt: 1, ms: 3, delayMs: 100 },
    data: '{"message":"try again"}',
  },
  { kind: 'attempt-failed', name: null, meta: { attempt: 2, ms: 0.25, delayMs: 0 }, data: '{}' },
  { kind: 'recorded', name: 'now#2', meta: null, data: '1893456000000' },
  {
    kind: 'waiting',
    name: 'eu/approval#3',
    meta: {
      conditions: [
        { tag: 'late', kind: 'time', at: 1_893_456_000_000 },
        { tag: 'later', kind: 'delay', ms: 172_800_000 },
        { tag: 'ok', kind: 'signal', name: 'approved' },
        { tag: 'done', kind: 'run', runId: '01b8d1a4-e000-7000-8000-000000000000' },
      ],
    },
    data: null,
  },
  {
    kind: 'woken',
    name: 'eu/approval#3',
    meta: { winner: 'ok', trueAt: 1, seenAt: 2, by: { id: 'm-1', kind: 'signal', name: 'approval' } },
    data: '{"by":"Ada"}',
  },
  { kind: 'woken', name: 'pause', meta: { winner: 'time', trueAt: 1, seenAt: 2 }, data: null },
  {
    kind: 'input',
    name: 'Create',
    meta: { from: { kind: 'start' }, outcome: 'accepted' },
    data: null,
  },
  {
    kind: 'input',
    name: 'Pay',
    meta: { from: { kind: 'message', id: 'm-1' }, outcome: 'rejected', command: 'm-1' },
    data: '{"type":"Pay"}',
  },
  {
    kind: 'input',
    name: 'Late',
    meta: { from: { kind: 'timer', name: 'payment', dueAt: 1 }, outcome: 'already-completed' },
    data: '{"type":"Late"}',
  },
  { kind: 'input-rejected', name: null, meta: null, data: '"It is paid."' },
  { kind: 'input', name: null, meta: { from: { kind: 'call' }, outcome: 'failed' }, data: null },
  { kind: 'input-failed', name: null, meta: null, data: error },
  { kind: 'event', name: 'Created', meta: { version: 1 }, data: '{"type":"Created"}' },
  { kind: 'effect', name: 'sendEmail#2', meta: null, data: '{"type":"sendEmail"}' },
  { kind: 'effect-succeeded', name: 'sendEmail', meta: { attempt: 2, ms: 7 }, data: null },
  { kind: 'effect-failed', name: 'sendEmail#2', meta: { attempt: 3, ms: 0 }, data: '{"message":"no"}' },
  { kind: 'timer', name: 'payment', meta: { at: null, afterMs: 3_600_000 }, data: '{"type":"Late"}' },
  { kind: 'timer-cancelled', name: 'payment', meta: null, data: null },
  { kind: 'timer-failed', name: '#17', meta: { attempt: 5, ms: 0 }, data: error },
  { kind: 'start-sent', name: 'shop.ship', meta: null, data: null },
  { kind: 'signal-sent', name: 'paid', meta: null, data: null },
  {
    kind: 'signal-sent',
    name: 'signal#2',
    meta: {
      to: '01b8d1a4-e000-7000-8000-000000000000',
      signal: 'paid',
      kind: 'topic-signal',
      policy: { onUnread: 'dead-letter' },
      mostUnread: 100,
    },
    data: '{"by":"Ada"}',
  },
  broadcastSent({ name: 'prices', delivery: 'one', retainMs: 0 }, '12', { expiresInMs: 1_000, mostKept: 10 }),
  { kind: 'replied', name: 'order', meta: { to: 'm-1' }, data: '"yes"' },
  { kind: 'replied', name: 'order#2', meta: { to: 'm-2', refused: true }, data: error },
  { kind: 'snapshot', name: null, meta: { fingerprint: 'f00' }, data: '{"state":1}' },
  { kind: 'logged', name: 'info', meta: null, data: '"half-way"' },
  { kind: 'progressed', name: 'progress', meta: { fraction: 0.1 }, data: null },
  { kind: 'progressed', name: 'progress#2', meta: { fraction: 1 }, data: '"Fertig – schön"' },
  { kind: 'crashed', name: null, meta: { session: 'gone', crashes: 2 }, data: null },
]

/** Entries about the run as a whole. */
const everyTurn: readonly Draft[] = [
  started(),
  { kind: 'continued', name: null, meta: { type: 'shop.checkout', version: 2 }, data: '{"order":43}' },
  {
    kind: 'paused',
    name: null,
    meta: {
      reason: 'drift',
      recorded: { seq: 2, kind: 'step-succeeded', name: 'charge' },
      found: [{ kind: 'step', name: 'pay', place: 'src/checkout.ts:12:7' }],
      message: 'Entry 2 is "charge", but the code asks for "pay".',
    },
    data: null,
  },
  { kind: 'paused', name: null, meta: { reason: 'operator', note: 'wait' }, data: null },
  { kind: 'resumed', name: null, meta: { note: null }, data: null },
  { kind: 'retried', name: null, meta: { note: 'again' }, data: null },
  { kind: 'amended', name: null, meta: { seq: 2, dropped: true }, data: null },
  { kind: 'amended', name: null, meta: { seq: 2, dropped: false }, data: '"repaired"' },
  { kind: 'failing', name: null, meta: { cause: 3, notUndone: [] }, data: error },
  { kind: 'cancelling', name: null, meta: { reason: null }, data: null },
  { kind: 'succeeded', name: null, meta: null, data: '1' },
  { kind: 'failed', name: null, meta: { cause: null, notUndone: ['reserve'] }, data: error },
  { kind: 'cancelled', name: null, meta: { reason: 'enough', notUndone: ['reserve'] }, data: null },
]

/** One of every kind, with every kind of meta. */
export const everyKind: readonly Draft[] = [...everyOutcome, ...everyTurn]

/** Payloads that have broken stores: escapes, texts that look like SQL, non-ASCII texts, long texts. */
export const oddPayloads: readonly string[] = [
  '"\\u0000"',
  '"\\ud800"',
  '""',
  'null',
  '"\\\\ \\" \' ` $1 ? :name @p %s {} [] \\n"',
  `"'; drop table runs; --"`,
  '"line\u2028separator\u2029 \u00a0\u200b\ufeff"',
  '"日本語 עברית 👩‍👩‍👧‍👦 e\u0301"',
  '-0.1e-7',
  ' { "spaces" :  "are kept" } ',
  '12345678901234567890',
  `"${'long é '.repeat(150_000)}"`,
]
