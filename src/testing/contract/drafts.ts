// Entries for the cases of the contract: what a store keeps without looking in.

import type { Draft } from '../../core/entry.ts'
import type { TerminalStatus } from '../../core/run.ts'
import type { Due } from '../../core/transition.ts'

export function started(data = '{"order":42}'): Draft {
  return { kind: 'started', name: null, meta: null, data }
}

export function step(name = 'charge', data = '{"paid":true}'): Draft {
  return { kind: 'step-succeeded', name, meta: { attempt: 1, ms: 12 }, data }
}

export function waiting(name = 'approval'): Draft {
  return { kind: 'waiting', name, meta: { conditions: [{ tag: 'ok', kind: 'signal', name: 'approved' }] }, data: null }
}

/** Due after a delay. */
export function inMs(ms: number): Due {
  return { at: null, afterMs: ms }
}

/** The entry with which a run comes to an end. No kind of entry tells of a cancellation yet: a store does not look. */
export function ending(status: TerminalStatus): Draft {
  return { kind: status === 'succeeded' ? 'succeeded' : 'failed', name: null, meta: null, data: `"${status}"` }
}

/** One of every kind, with every kind of meta. */
export const everyKind: readonly Draft[] = [
  step(),
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
  { kind: 'woken', name: 'eu/approval#3', meta: { winner: 'ok', trueAt: 1, seenAt: 2 }, data: '{"by":"Ada"}' },
  { kind: 'woken', name: 'pause', meta: { winner: 'time', trueAt: 1, seenAt: 2 }, data: null },
  { kind: 'logged', name: 'info', meta: null, data: '"half-way"' },
  { kind: 'progressed', name: 'progress', meta: { fraction: 0.1, text: null }, data: null },
  { kind: 'progressed', name: 'progress#2', meta: { fraction: 1, text: 'Fertig – schön' }, data: null },
  { kind: 'crashed', name: null, meta: { session: 'gone', crashes: 2 }, data: null },
  {
    kind: 'paused',
    name: null,
    meta: {
      reason: 'drift',
      recorded: { seq: 2, kind: 'step-succeeded', name: 'charge' },
      found: [{ kind: 'step', name: 'pay' }],
      message: 'Entry 2 is "charge", but the code asks for "pay".',
    },
    data: null,
  },
]

/** Payloads on which stores have stumbled: what escapes, what looks like SQL, what is not ASCII, what is long. */
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
