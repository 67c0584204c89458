// The rows of deciders: those that the engine writes are entries, and those that it cannot have written are damaged.

import { describe, expect, it } from 'vitest'
import { entryOfRow } from '../../../../src/core/rows/entry-row.ts'

function kindOf(kind: string, name: string | null, meta: unknown, data: string | null): string {
  return entryOfRow({
    seq: 1,
    at: 1,
    kind,
    name,
    meta: meta === null ? null : JSON.stringify(meta),
    data,
    transition: null,
  }).kind
}

const from = { kind: 'call' }
const attempt = { attempt: 1, ms: 2 }

const whole: readonly (readonly [string, string | null, unknown, string | null])[] = [
  ['input', 'Pay', { from, outcome: 'accepted', command: 'c' }, '1'],
  ['input', null, { from: { kind: 'message', id: 'm' }, outcome: 'duplicate' }, null],
  ['input', 'Late', { from: { kind: 'timer', name: '#4', dueAt: 5 }, outcome: 'failed' }, null],
  ['input', 'Sent', { from: { kind: 'effect', name: 'mail#4' }, outcome: 'already-completed' }, null],
  ['input-rejected', null, null, '1'],
  ['input-failed', null, null, '1'],
  ['event', 'Paid', { version: 1 }, '1'],
  ['event', 'Paid', null, '1'],
  ['effect', 'mail#4', null, '1'],
  ['effect-succeeded', 'mail#4', attempt, null],
  ['effect-failed', 'mail#4', attempt, '1'],
  ['timer', '#4', { at: null, afterMs: 5 }, '1'],
  ['timer', 'key', { at: -5, afterMs: null }, '1'],
  ['timer-cancelled', 'key', null, null],
  ['timer-failed', 'key', attempt, '1'],
  ['start-sent', 'ship', null, null],
  ['signal-sent', 'go', null, null],
  ['snapshot', null, { fingerprint: 'f' }, '1'],
]

const damaged: readonly (readonly [string, string | null, unknown, string | null])[] = [
  ['input', 'Pay', null, '1'],
  ['input', 'Pay', { from, outcome: 'perhaps' }, '1'],
  ['input', 'Pay', { from: { kind: 'message' }, outcome: 'accepted' }, '1'],
  ['input', 'Pay', { from: { kind: 'timer', name: 'a' }, outcome: 'accepted' }, '1'],
  ['input', 'Pay', { from: { kind: 'effect' }, outcome: 'accepted' }, '1'],
  ['input', 'Pay', { from: { kind: 'elsewhere' }, outcome: 'accepted' }, '1'],
  ['input', 'Pay', { from, outcome: 'accepted', command: 7 }, '1'],
  ['input-rejected', null, null, null],
  ['event', null, null, '1'],
  ['event', 'Paid', { version: 'two' }, '1'],
  ['effect', 'mail#4', null, null],
  ['effect-succeeded', 'mail#4', null, null],
  ['timer', 'key', { at: null, afterMs: null }, '1'],
  ['timer', 'key', { at: 1, afterMs: 1 }, '1'],
  ['timer', 'key', null, '1'],
  ['timer-failed', 'key', null, '1'],
  ['snapshot', null, {}, '1'],
  ['snapshot', null, { fingerprint: 'f' }, null],
]

describe('a row of a decider', () => {
  it.each(whole)('that the engine writes is an entry: %s %s %j', (kind, name, meta, data) => {
    expect(kindOf(kind, name, meta, data)).toBe(kind)
  })

  it.each(damaged)('that it cannot have written is damaged: %s %s %j', (kind, name, meta, data) => {
    expect(kindOf(kind, name, meta, data)).toBe('damaged')
  })
})
