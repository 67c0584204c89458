// What people may ask of a run, as one table: every status and holder, every request. Then what each of them writes.

import { describe, expect, it } from 'vitest'
import {
  isTerminal,
  mayMove,
  runStatuses,
  type Run,
  type RunStatus,
  type UndoState,
} from '../../../../src/core/model/run.ts'
import { control, type Control, type ControlDecision } from '../../../../src/core/rules/control.ts'
import { newRun, terminalKinds } from '../model/new-run.ts'

const now = 5_000

const requests = {
  cancel: { kind: 'cancel', mode: 'cooperative', reason: 'enough' },
  now: { kind: 'cancel', mode: 'now', reason: 'enough' },
  pause: { kind: 'pause', reason: 'operator', note: null },
  resume: { kind: 'resume', note: null, amend: [], seq: null },
  retry: { kind: 'retry', note: null, amend: [], seq: null },
  remove: { kind: 'remove', reason: 'mistake' },
} as const satisfies Record<string, Control>

const names = Object.keys(requests) as (keyof typeof requests)[]

/** What came of it: where the run stands, who has to see to it, or why not. */
function summaryOf({ answer, write }: ControlDecision): string {
  if (answer.outcome === 'refused') return answer.reason
  if (answer.outcome !== 'done' && answer.outcome !== 'requested') return answer.outcome
  const status = answer.run.deletedAt === null ? answer.run.status : 'deleted'
  return `${answer.outcome === 'requested' ? 'request: ' : ''}${write === null ? 'still ' : ''}${status}`
}

const held = { session: 's', readiness: 'leased', due: null } as const
const controlRequest = { kind: 'pause', reason: 'operator', note: null, at: 1 } as const

// Columns: cancel, cancel now, pause, resume, retry, remove.
const table: readonly (readonly [string, Partial<Run>, readonly string[]])[] = [
  ['pending', {}, ['cancelled', 'cancelled', 'paused', 'not-paused', 'not-failed', 'deleted']],
  [
    'running',
    { status: 'running', ...held },
    ['request: cancelling', 'cancelled', 'request: running', 'not-paused', 'not-failed', 'deleted'],
  ],
  [
    'running, asked to pause',
    { status: 'running', controlRequest, ...held },
    ['request: cancelling', 'cancelled', 'request: running', 'running', 'not-failed', 'deleted'],
  ],
  ['waiting', { status: 'waiting' }, ['cancelled', 'cancelled', 'paused', 'not-paused', 'not-failed', 'deleted']],
  ['paused', { status: 'paused' }, ['cancelled', 'cancelled', 'still paused', 'pending', 'not-failed', 'deleted']],
  [
    'cancelling',
    { status: 'cancelling', undo: 'due' },
    ['still cancelling', 'cancelled', 'cancelling', 'not-paused', 'not-failed', 'deleted'],
  ],
  [
    'cancelling, held',
    { status: 'cancelling', ...held },
    ['request: still cancelling', 'cancelled', 'cancelling', 'not-paused', 'not-failed', 'deleted'],
  ],
  ['succeeded', { status: 'succeeded', endedAt: 9 }, ['ended', 'ended', 'ended', 'ended', 'not-failed', 'deleted']],
  ['failed', { status: 'failed', endedAt: 9 }, ['ended', 'ended', 'ended', 'ended', 'pending', 'deleted']],
  ['cancelled', { status: 'cancelled', endedAt: 9 }, ['ended', 'ended', 'ended', 'ended', 'not-failed', 'deleted']],
]

const undos: readonly UndoState[] = ['none', 'possible', 'due']

/** Every run of the table, with everything to undo, deleted or not, and everything that can be asked of it. */
const everything = table.flatMap(([name, changes]) =>
  undos.flatMap((undo) =>
    [null, 4].flatMap((deletedAt) =>
      names.map((request) => ({ name, request, run: newRun({ ...changes, undo, deletedAt }) })),
    ),
  ),
)

describe('what comes of a request', () => {
  it.each(table)('to a run that is %s', (_, changes, expected) => {
    expect(names.map((name) => summaryOf(control(newRun(changes), requests[name], now)))).toEqual(expected)
  })

  it('is decided for every status', () => {
    expect(new Set(table.map(([, { status = 'pending' }]) => status))).toEqual(new Set(runStatuses))
  })

  it('PQ-P1 to a run with something to undo that nobody holds: cancelling, to be claimed', () => {
    for (const undo of ['possible', 'due'] as const) {
      for (const status of ['pending', 'waiting', 'paused'] as const) {
        const { write } = control(newRun({ status, undo, timeoutAt: 9_000, expiresAt: 9_000 }), requests.cancel, now)
        expect(write?.run).toMatchObject({ status: 'cancelling', undo: 'due', readiness: 'ready', due: now })
        expect(write?.run).toMatchObject({ timeoutAt: null, expiresAt: null })
        expect(write?.append.map(({ kind }) => kind)).toEqual(['cancelling'])
      }
    }
  })
})

describe('a process that lives', () => {
  const apart = { readiness: 'isolated', due: now } as const
  const word = { kind: 'acquit', seq: 1 } as const

  it.each([
    ['is a suspect and no more', { ...apart, crashes: 2 }, 'still pending'],
    ['died apart', { ...apart, crashes: 3 }, 'pending'],
    ['died apart as its undo work was done', { ...apart, status: 'cancelling', undo: 'due', crashes: 3 }, 'cancelling'],
    ['is paused for that', { status: 'paused', readiness: 'idle', due: null, crashes: 5 }, 'pending'],
    ['has another holder', { status: 'running', ...held, crashes: 4 }, 'changed'],
    ['has moved on', { ...apart, crashes: 4, seq: 2 }, 'changed'],
    ['was removed', { crashes: 4, deletedAt: 4 }, 'deleted'],
    ['is over', { status: 'failed', endedAt: 9, crashes: 5 }, 'ended'],
  ] as const)('speaks for a run that %s', (_, changes, expected) => {
    const run = newRun({ seq: 1, ...changes })
    const steering = control(run, word, now)
    expect(summaryOf(steering)).toBe(expected)
    if (steering.write === null) return
    expect(steering.write.run).toMatchObject({ crashes: run.crashes - 1, readiness: 'isolated', session: null })
    expect(steering.write.append.map(({ kind }) => kind)).toEqual(['resumed'])
  })

  it('does not take back what people pause: such a pause is written down beside that for crashes', () => {
    const run = newRun({ status: 'paused', readiness: 'idle', due: null, crashes: 5 })
    const { write } = control(run, requests.pause, now)
    expect([write?.run.status, write?.append[0]?.meta]).toEqual(['paused', { reason: 'operator', note: null }])
  })
})

describe('whatever is asked', () => {
  const legal = (from: RunStatus, to: RunStatus): boolean => from === to || mayMove(from, to)

  it('moves only as the status machine allows, and WC-E8 nothing leaves an end but a retry', () => {
    for (const { run, request } of everything) {
      const { write } = control(run, requests[request], now)
      if (write === null) continue
      expect(legal(run.status, write.run.status), `${run.status} → ${write.run.status}`).toBe(true)
      if (isTerminal(run.status) && write.run.status !== run.status)
        expect([run.status, request]).toEqual(['failed', 'retry'])
    }
  })

  it('an end has one terminal entry, which stands last; anything else has none', () => {
    for (const { run, request } of everything) {
      const { write } = control(run, requests[request], now)
      const kinds = write?.append.map(({ kind }) => kind) ?? []
      const terminal = kinds.filter((kind) => terminalKinds.has(kind))
      const ended = write !== null && isTerminal(write.run.status) && !isTerminal(run.status)
      expect(terminal).toEqual(ended ? [write.run.status] : [])
      if (ended) expect(kinds.at(-1)).toBe(write.run.status)
    }
  })

  it('the row says what was appended, when it ended, and that nobody holds what is not held', () => {
    for (const { run, request } of everything) {
      const { answer, write } = control(run, requests[request], now)
      if (write === null) {
        expect('run' in answer && answer.run).toBe(run)
        continue
      }
      const { run: after, append } = write
      expect('run' in answer && answer.run).toBe(after)
      expect(after.seq).toBe(run.seq + append.length)
      expect(after.updatedAt).toBe(append.length === 0 ? run.updatedAt : now)
      expect(after.endedAt !== null).toBe(isTerminal(after.status))
      expect(after.session === null).toBe(after.readiness !== 'leased')
      expect(after.due === null).toBe(after.readiness !== 'ready')
      expect(after.token).toBe(run.session !== null && after.session === null ? run.token + 1 : run.token)
    }
  })

  it('SW-P1 a deleted run is never ready, and stays deleted', () => {
    for (const { run, request } of everything) {
      const { write } = control(run, requests[request], now)
      if (write === null || write.run.deletedAt === null) continue
      expect(['idle', 'leased']).toContain(write.run.readiness)
      if (run.deletedAt !== null) expect(write.run.deletedAt).toBe(run.deletedAt)
    }
  })

  it('nobody but its holder writes the journal of a leased run, unless it is cancelled now', () => {
    for (const { run, request } of everything) {
      if (run.session === null || request === 'now') continue
      expect(control(run, requests[request], now).write?.append ?? []).toEqual([])
    }
  })
})

describe('a retry', () => {
  const failed = newRun({ status: 'failed', endedAt: 9, readiness: 'idle', due: null, crashes: 3, timeoutAt: 1 })
  const amend = [{ kind: 'amended', name: null, meta: { seq: 2, dropped: true }, data: null }] as const

  it('counts anew, has no bound on its time, and is not over any more', () => {
    const { write } = control(failed, requests.retry, now)
    expect(write?.run).toMatchObject({ crashes: 0, timeoutAt: null, expiresAt: null, endedAt: null, due: now })
  })

  it.each([
    ['deleted', { deletedAt: 4 }, failed.seq],
    ['undone', { undo: 'due' }, failed.seq],
    ['changed', {}, failed.seq - 1],
  ] as const)('is refused: %s', (reason, changes, seq) => {
    const { answer, write } = control({ ...failed, ...changes }, { kind: 'retry', note: null, amend, seq }, now)
    expect(answer).toMatchObject({ outcome: 'refused', reason })
    expect(write).toBeNull()
  })

  it('appends the repairs first', () => {
    const { write } = control(failed, { kind: 'retry', note: 'go', amend, seq: failed.seq }, now)
    expect(write?.append).toEqual([...amend, { kind: 'retried', name: null, meta: { note: 'go' }, data: null }])
  })

  it('HE-U2 waits while another run has its key', () => {
    const { answer, write } = control(failed, requests.retry, now, 'other')
    expect(answer).toEqual({ outcome: 'key-taken', by: 'other', run: failed })
    expect(write).toBeNull()
  })
})

describe('a resumption', () => {
  it('is refused when the journal moved on since it was repaired', () => {
    const paused = newRun({ status: 'paused', readiness: 'idle', due: null })
    const { answer } = control(paused, { ...requests.resume, seq: paused.seq + 1 }, now)
    expect(answer).toMatchObject({ outcome: 'refused', reason: 'changed' })
  })
})
