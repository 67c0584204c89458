// Each invariant can fail: it is broken here, by itself, and found by its name.

import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/model/entry.ts'
import type { Message } from '../../../src/core/model/message.ts'
import type { Run } from '../../../src/core/model/run.ts'
import {
  checkAll,
  checkFeed,
  checkRun,
  checkStep,
  stateInvariants,
  stepInvariants,
  type Cause,
  type RunState,
} from '../../../src/testing/invariants/index.ts'
import { newRun } from '../core/model/new-run.ts'

const now = 5_000

type Rough = Pick<Entry, 'kind'> & { name?: string | null; meta?: unknown; data?: string | null }

/** A run and its journal: `started`, and then these. */
function state(changes: Partial<Run> = {}, drafts: readonly Rough[] = [], messages: readonly Message[] = []): RunState {
  const entries = [{ kind: 'started', data: '1' } as Rough, ...drafts].map(
    (draft, index) =>
      ({
        name: null,
        meta: null,
        data: null,
        ...draft,
        seq: index + 1,
        at: 1_000 + index,
        transition: `t${index}`,
      }) as Entry,
  )
  const seq = entries.length
  return { run: newRun({ seq, token: 1, inbox: messages.length, ...changes }), entries, messages }
}

const step = (name: string, undo = false, data = '1'): Rough => {
  return { kind: 'step-succeeded', name, meta: undo ? { attempt: 1, ms: 1, undo } : { attempt: 1, ms: 1 }, data }
}
const undone = (name: string): Rough => ({ kind: 'undone', name, meta: { attempt: 1, ms: 1 } })
const failing: Rough = { kind: 'failing', data: '"no"' }
const waiting = (condition: object): Rough => ({
  kind: 'waiting',
  name: 'w',
  meta: { conditions: [{ tag: 'it', ...condition }] },
})
const woken = (trueAt: number, seenAt = trueAt): Rough => ({
  kind: 'woken',
  name: 'w',
  meta: { winner: 'it', trueAt, seenAt },
})
const delay = waiting({ kind: 'delay', ms: 1 })
const signal = waiting({ kind: 'signal', name: 'go' })
const message = (position: number, id = `m${position}`): Message => {
  return { id, runId: 'run', kind: 'signal', name: 'go', data: '1', policy: null, position, at: 1_500 }
}
const ofDeciders = new Set(['due_is_earliest_timer', 'effect_runs_follow_journal'])
const parked = { status: 'waiting', readiness: 'idle', due: null } as const
const leased = { status: 'running', readiness: 'leased', due: null, session: 's', token: 1 } as const
const over = { status: 'failed', readiness: 'idle', due: null, endedAt: 2_000 } as const
const due = { undo: 'due' } as const

function without(given: RunState, seq: number): RunState {
  return { ...given, entries: given.entries.filter((entry) => entry.seq !== seq) }
}

function renamed(given: RunState, transition: string | null): RunState {
  return { ...given, entries: given.entries.map((entry) => ({ ...entry, transition })) }
}

/** Each breaks one invariant, and perhaps others that follow from it. */
const brokenStates: Readonly<Record<string, readonly RunState[]>> = {
  history_gapless: [without(state({}, [step('a'), step('b')]), 2)],
  seq_counts_entries: [state({ seq: 9 }, [step('a')])],
  history_single_writer: [renamed(state({}, [step('a')]), 'same')],
  history_begins_with_start: [
    without(state({}, [step('a')]), 1),
    renamed(state(), null),
    state({}, [{ kind: 'started' }]),
  ],
  base_is_input: [
    state({ base: 2 }, [step('a')]),
    state({}, [{ kind: 'continued', meta: { type: 'shop.checkout', version: 1 }, data: '2' }]),
    state({ base: 2 }, [{ kind: 'continued', meta: { type: 'other', version: 1 }, data: '2' }]),
    state({ base: 2 }, [
      { kind: 'snapshot', meta: { fingerprint: 'f' }, data: '1' },
      { kind: 'continued', meta: { type: 'shop.checkout', version: 1 }, data: '2' },
    ]),
  ],
  state_is_fold: [
    state(over, [step('a')]),
    state({}, [{ kind: 'failed', data: '1' }]),
    state({}, [{ kind: 'paused' }]),
  ],
  status_fields_match: [
    state({ session: 's' }),
    state({ ...leased, session: null }),
    state({ ...leased, token: 0 }),
    state({ deadline: 9 }),
    state({ controlRequest: { kind: 'pause', reason: 'operator', note: null, at: 1 } }),
    state({ ...leased, controlRequest: { kind: 'cancel', reason: null, at: 1 } }),
    state({ due: null }),
    state({ readiness: 'idle', due: null }),
    state({ deletedAt: 1 }),
    state({ ...over, readiness: 'ready', due: 1 }),
    state({ ...due, timeoutAt: 9 }),
    state({ status: 'cancelling', undo: 'none' }),
    state({ ...over, status: 'succeeded', undo: 'due' }),
    state({ expiresAt: 9_000, token: 1 }),
    state({ endedAt: 9 }),
    state({ ...over, endedAt: null }),
    state({ deleteReason: 'why' }),
  ],
  ready_is_due: [state({ due: now + 1 })],
  ids_nonempty_bounded: [
    state({ id: '' }),
    state({ type: 'a b' }),
    state({ key: 'k'.repeat(401) }),
    state({ tags: ['nul\u0000'] }),
    state({}, [step('')]),
    state({}, [], [message(1, '')]),
    state({}, [], [message(1, 'm'.repeat(701))]),
  ],
  one_outcome: [state({}, [step('a'), step('a')])],
  amends_outcome: [state({}, [{ kind: 'amended', meta: { seq: 1, dropped: true } }])],
  cancel_wins_or_loses_once: [
    state(over, [{ kind: 'cancelled' }, { kind: 'failed', data: '1' }]),
    state({}, [{ kind: 'succeeded', data: '1' }, { kind: 'retried' }]),
  ],
  undo_is_fold: [state({}, [step('a', true)]), state({ undo: 'possible' }, [step('a')])],
  undo_names_step: [
    state(due, [step('a'), failing, undone('a')]),
    state({ undo: 'possible' }, [step('a', true), undone('a')]),
    state({ base: 4 }, [
      step('a', true),
      undone('a'),
      { kind: 'continued', meta: { type: 'shop.checkout', version: 1 } },
    ]),
  ],
  undo_once: [state(due, [step('a', true), failing, undone('a'), undone('a')])],
  undo_in_reverse: [state(due, [step('a', true), step('b', true), failing, undone('a'), undone('b')])],
  mailbox_dense: [
    state({ inbox: 1 }, [], [message(1), message(2)]),
    state({}, [], [message(1), message(1, 'other')]),
    { ...state({ inbox: 2 }, [], [message(1)]), taken: [] },
  ],
  signal_consumed_at_most_once: [
    state({}, [], [message(1), message(2, 'm1')]),
    { ...state({ inbox: 2 }, [], [message(2)]), taken: [{ id: 'm1', position: 1, takenBy: 7 }] },
  ],
  no_lost_wakeup: [
    state(parked, [signal], [message(1)]),
    state({ ...parked, readiness: 'timed', due: now + 1 }, [signal], [message(1)]),
    state(parked, [waiting({ kind: 'run', runId: 'go' })], [{ ...message(1), kind: 'ended' }]),
    state(parked, [waiting({ kind: 'start', runId: 'go' })], [{ ...message(1), kind: 'refused' }]),
    state(parked, [waiting({ kind: 'signal', name: 'go', topic: {} })], [{ ...message(1), kind: 'broadcast' }]),
  ],
  wake_names_cover_waits: [
    state({ ...parked, wakeNames: ['another'] }, [signal]),
    state({ ...parked, wakeNames: [] }, [waiting({ kind: 'run', runId: 'go' })]),
  ],
  waits_for_something: [state(parked, [step('a')])],
  timer_is_set: [state(parked, [delay]), state({ ...parked, readiness: 'timed', due: 1_003 }, [delay])],
  timer_once: [state({}, [delay, woken(1_002), woken(1_002)])],
  timer_never_early: [
    state({}, [delay, woken(1_001)]),
    state({}, [delay, woken(1_002, 1_001)]),
    state({}, [waiting({ kind: 'time', at: 4_000 }), woken(4_000)]),
    state({}, [woken(1)]),
    state({}, [delay, { ...woken(1_002), meta: { winner: 'another', trueAt: 1_002, seenAt: 1_002 } }]),
  ],
}

const soundStates: readonly RunState[] = [
  state(),
  state(leased),
  state(over, [{ kind: 'failed', data: '1' }]),
  state({}, [{ kind: 'failed', data: '1' }, { kind: 'retried' }]),
  state(parked, [signal]),
  state({ ...parked, wakeNames: ['another', 'go'] }, [signal]),
  state({ ...parked, readiness: 'timed', due: 1_002, wakeNames: [] }, [delay]),
  state({}, [], [message(1, 'm'.repeat(500))]),
  state(parked, [waiting({ kind: 'run', runId: 'another' })], [message(1)]),
  state(parked, [signal], [{ ...message(1), name: 'another' }]),
  state({ ...parked, readiness: 'ready', due: 1_000 }, [signal], [message(1)]),
  state({}, [delay, woken(1_002)]),
  state({}, [step('a'), { kind: 'amended', meta: { seq: 2, dropped: true } }, step('a')]),
  state(due, [step('a', true), step('b', true), failing, undone('b'), undone('a')]),
]

const keyed = (id: string, changes: Partial<Run>): RunState => state({ id, ...changes })

describe('a state', () => {
  it.each(soundStates.map((sound, index) => [index, sound] as const))(
    'that is sound breaks nothing (%i)',
    (_, sound) => {
      expect(checkAll([sound], now)).toEqual([])
    },
  )

  it.each(Object.entries(brokenStates))('that breaks %s is found by that name', (name, states) => {
    for (const broken of states) expect(checkRun(broken, now).map((found) => found.name)).toContain(name)
  })

  it('in which two runs share a key is found, unless one has ended, is deleted or has another scope', () => {
    const key = { key: 'k' }
    const found = (one: Partial<Run>, other: Partial<Run>): string[] =>
      checkAll([keyed('a', one), keyed('b', other)], now).map(({ name, runId }) => `${name} ${runId}`)
    expect(found(key, key)).toEqual(['one_key_one_live_run a', 'one_key_one_live_run b'])
    expect(found(key, { ...key, keyScope: 'none' })).toEqual([])
    const once = { idempotencyKey: 'once' }
    expect(found(once, once)).toEqual(['idempotency_key a', 'idempotency_key b'])
    expect(found(once, { ...once, type: 'other' })).toEqual([])
  })

  it('whose feed has a gap, misses an entry or lists it twice is found', () => {
    const one = state({ feed: true }, [step('a')])
    const feed = one.entries.map((entry, index) => ({ position: index + 1, runId: 'run', entry }))
    const names = (listed: typeof feed): string[] => checkFeed(listed, [one]).map(({ name }) => name)
    expect(names(feed)).toEqual([])
    expect(names(feed.map((change) => ({ ...change, position: change.position * 2 })))).toEqual(['feed_dense'])
    expect(names(feed.slice(0, 1))).toEqual(['feed_complete'])
    expect(names([...feed, { ...feed[0], position: 3 } as (typeof feed)[0]])).toEqual(['feed_complete'])
  })

  it('has no invariant that was never broken', () => {
    const fleet = ['one_key_one_live_run', 'idempotency_key', 'feed_dense', 'feed_complete', 'sent_delivered']
    const together = [...fleet, 'end_notified', 'queue_not_stuck', 'late_catch_up', 'leftovers_settled']
    const names = stateInvariants.map(({ name }) => name).filter((name) => !ofDeciders.has(name))
    expect([...Object.keys(brokenStates), ...together].toSorted()).toEqual(names.toSorted())
  })
})

const many = (count: number, data = '1'): readonly Rough[] =>
  Array.from({ length: count }, (_, index) => step(`s${index}`, false, data))
/** More than 2 MiB of UTF-8 in fewer characters. */
const wide = `"${'漢'.repeat(700_000)}"`
const heavy = `"${'x'.repeat(2 * 1024 * 1024)}"`

type Pair = readonly [before: RunState, after: RunState, cause: Partial<Cause>]

const held = state({ ...leased, crashes: 1 })
const ended = state(over, [{ kind: 'failed', data: '1' }])
const changed = (given: RunState, changes: Partial<Run>): RunState => ({ ...given, run: { ...given.run, ...changes } })
const claimed = { ...leased, token: 2, crashes: 1 }
const alive = { isAlive: () => true }
/** What the end of its parent makes of a run that nobody holds. */
const cancelling = { status: 'cancelling', undo: 'due', readiness: 'ready', due: now, updatedAt: now } as const
const controlRequests = { status: 'cancelling', controlRequest: { kind: 'cancel', reason: null, at: now } } as const

const brokenSteps: Readonly<Record<string, readonly Pair[]>> = {
  history_append_only: [
    [state({}, [step('a')]), state({}, [step('a', false, '2')]), { method: 'commit' }],
    [state({}, [step('a')]), state(), { method: 'commit' }],
  ],
  checkpoint_immutable: [
    [state(leased, [step('a')]), state(leased, [step('a', false, '2')]), { method: 'commit' }],
    [state(leased, [step('a')]), state(leased, [step('a'), step('a', false, '2')]), { method: 'commit' }],
  ],
  terminal_is_final: [
    [ended, changed(ended, { status: 'pending' }), { method: 'control' }],
    [ended, state(over, [{ kind: 'failed', data: '1' }, step('late')]), { method: 'commit' }],
    [ended, changed(ended, { inbox: 1 }), { method: 'commit' }],
    [changed(ended, due), state(due, [{ kind: 'failed', data: '1' }, { kind: 'retried' }]), { method: 'control' }],
  ],
  messages_stay: [
    [state({}, [], [message(1)]), state({ inbox: 1 }), { method: 'rescue' }],
    [state({ inbox: 1 }), state({ inbox: 1 }, [], [message(1)]), { method: 'deliver' }],
    [state({}, [], [message(1)]), state({}, [], [{ ...message(1), data: '2' }]), { method: 'deliver' }],
    [state(), state({ inbox: 2 }, [], [message(2)]), { method: 'deliver' }],
    [ended, { ...changed(ended, { inbox: 1 }), messages: [message(1)] }, { method: 'deliver' }],
  ],
  undo_not_forgotten: [[state({ undo: 'possible' }), state({ undo: 'none' }), { method: 'commit' }]],
  commit_moves_on: [[held, changed(held, { status: 'pending' }), { method: 'commit' }]],
  transition_bounded: [
    [held, state(leased, many(501)), { method: 'commit', session: 's', token: 1 }],
    [held, state(leased, many(2, heavy)), { method: 'commit', session: 's', token: 1 }],
    [held, state(leased, many(2, wide)), { method: 'commit', session: 's', token: 1 }],
  ],
  epoch_only_grows_on_claim: [
    [state(), state({ token: 2 }), { method: 'rescue' }],
    [state(), state({ ...leased, token: 3 }), { method: 'claim' }],
    [state(), state({ ...leased, token: 1 }), { method: 'claim' }],
    [held, changed(held, { token: 0 }), { method: 'commit' }],
  ],
  fence: [
    [held, state(leased, [step('a')]), { method: 'commit', session: 'zombie' }],
    [held, state(leased, [step('a')]), { method: 'commit', session: 's', token: 0 }],
    [held, state({}), { method: 'release', session: 'zombie' }],
    [held, changed(held, { deadline: 9 }), { method: 'beat', session: 'zombie' }],
    [state(), state({}, [step('a')]), { method: 'commit', session: 's' }],
    [state(parked), changed(state(parked), { readiness: 'ready', due: 1 }), { method: 'commit' }],
    [state(), changed(state({}, [{ kind: 'cancelling' }]), { ...cancelling, priority: 3 }), { method: 'commit' }],
    [state(), changed(state({}, [step('a')]), cancelling), { method: 'release' }],
  ],
  lease_not_stolen: [
    [held, changed(held, { session: 'thief', token: 2 }), { method: 'claim' }],
    [held, state({}, [{ kind: 'crashed' }]), { method: 'rescue', ...alive }],
    [changed(held, { deadline: now + 1 }), state({}, [{ kind: 'crashed' }]), { method: 'rescue', ...alive }],
    [held, state({}), { method: 'control' }],
  ],
  claim_never_early: [
    [state({ readiness: 'timed', due: now + 1 }), state(claimed), { method: 'claim' }],
    [state(parked), state(claimed), { method: 'claim' }],
    [state({ deletedAt: 1 }), state(claimed), { method: 'claim' }],
  ],
  claim_in_time: [[state({ timeoutAt: now }), state({ ...claimed, timeoutAt: now }), { method: 'claim' }]],
  crashes_are_counted: [
    [state(), state({ ...claimed, crashes: 0 }), { method: 'claim' }],
    [held, state({ ...leased, crashes: 1 }, [step('a')]), { method: 'commit', session: 's' }],
    [state({ crashes: 4 }), state({ crashes: 2 }), { method: 'control' }],
    [state({ crashes: 2 }), state({ crashes: 1 }), { method: 'control' }],
    [state({ ...leased, crashes: 4 }), state({ ...leased, crashes: 3 }), { method: 'control' }],
  ],
  status_machine: [
    [state(), state(leased), { method: 'deliver' }],
    [state(), state(parked), { method: 'claim' }],
    [ended, state(), { method: 'rescue' }],
    [state(), changed(state(), cancelling), { method: 'deliver' }],
  ],
  call_writes_its_fields: [
    [state(), state({ key: 'other' }), { method: 'control' }],
    [state(), state({ priority: 3 }), { method: 'deliver' }],
    [state(), state({ crashes: 3 }), { method: 'load' }],
    [held, changed(held, { type: 'other' }), { method: 'commit', session: 's' }],
  ],
  ends_once: [
    [held, state(over, [{ kind: 'cancelled' }, { kind: 'failed', data: '1' }]), { method: 'commit', session: 's' }],
    [held, state(over), { method: 'rescue' }],
  ],
}

const soundSteps: readonly Pair[] = [
  [held, state(leased, many(500)), { method: 'commit', session: 's', token: 1 }],
  [held, state(leased, many(1, heavy + heavy)), { method: 'commit', session: 's', token: 1 }],
  [state(), state(claimed), { method: 'claim', session: 's' }],
  [held, state(leased, [step('a')]), { method: 'commit', session: 's', token: 1 }],
  [held, state(over, [{ kind: 'failed', data: '1' }]), { method: 'commit', session: 's' }],
  [held, state({ crashes: 1 }, [{ kind: 'crashed' }]), { method: 'rescue', isAlive: () => false }],
  [changed(held, { deadline: now }), state({ crashes: 1 }, [{ kind: 'crashed' }]), { method: 'rescue', ...alive }],
  [ended, state({ updatedAt: now }, [{ kind: 'failed', data: '1' }, { kind: 'retried' }]), { method: 'control' }],
  [ended, changed(ended, { deletedAt: now, deleteReason: 'old' }), { method: 'control' }],
  [state({ crashes: 4 }), state({ crashes: 3 }), { method: 'control' }],
  [state({ crashes: 4 }), state({ crashes: 0 }), { method: 'control' }],
  [state(), state({ inbox: 1 }, [], [message(1)]), { method: 'deliver' }],
  // What another run's commit does to this one.
  [state(), state({ watched: true }), { method: 'commit', session: 'other' }],
  [held, { ...changed(held, { inbox: 1 }), messages: [message(1)] }, { method: 'commit', session: 'other' }],
  [state(parked), state({ ...parked, readiness: 'ready', due: now, inbox: 1 }, [], [message(1)]), { method: 'rescue' }],
  [state({ crashes: 1 }), state({ ...cancelling, crashes: 1 }, [{ kind: 'cancelling' }]), { method: 'commit' }],
  [held, changed(held, controlRequests), { method: 'commit', session: 'other' }],
  [held, changed(held, controlRequests), { method: 'release', session: 'other' }],
  // What was left over goes with the end, and what comes later never lies there.
  [state({}, [], [message(1)]), state({ ...over, inbox: 1 }, [{ kind: 'failed', data: '1' }]), { method: 'rescue' }],
  [ended, changed(ended, { inbox: 1 }), { method: 'deliver' }],
  [state(leased, [], [message(1)]), state({ ...leased, inbox: 1 }, [step('a')]), { method: 'commit', session: 's' }],
]

const causeOf = (cause: Partial<Cause>): Cause => ({ method: 'get', session: null, now, ...cause })

describe('a step', () => {
  it.each(soundSteps.map((pair, index) => [index, pair] as const))('that is sound breaks nothing (%i)', (_, pair) => {
    const [before, after, cause] = pair
    expect(checkStep(before, after, causeOf(cause))).toEqual([])
  })

  it.each(Object.entries(brokenSteps))('that breaks %s is found by that name', (name, pairs) => {
    for (const [before, after, cause] of pairs) {
      expect(checkStep(before, after, causeOf(cause)).map((found) => found.name)).toContain(name)
    }
  })

  it('that makes a run is a start, and leases it to nobody else', () => {
    const names = (after: RunState, cause: Partial<Cause>): string[] =>
      checkStep(null, after, causeOf(cause)).map(({ name }) => name)
    expect(names(state({ token: 0 }), { method: 'start' })).toEqual([])
    expect(names(state(leased), { method: 'start', session: 's' })).toEqual([])
    expect(names(state({ token: 0 }, [], [message(1)]), { method: 'start' })).toEqual([])
    expect(names(state({ token: 0, inbox: 1 }), { method: 'start' })).toEqual(['born_by_start'])
    expect(names(state({ token: 0 }), { method: 'commit' })).toEqual([])
    const atOnce = state({ ...cancelling, token: 0 }, [{ kind: 'cancelling' }])
    expect(names(atOnce, { method: 'commit' })).toEqual([])
    expect(names(atOnce, { method: 'start' })).toEqual(['born_by_start'])
    expect(names(state(leased), { method: 'commit', session: 's' })).toEqual(['born_by_start'])
    expect(names(state({ token: 0 }), { method: 'rescue' })).toEqual(['born_by_start'])
    expect(names(state(leased), { method: 'start', session: 'other' })).toEqual(['born_by_start'])
    expect(names(state({ token: 0 }, [step('a')]), { method: 'start' })).toEqual(['born_by_start'])
    expect(names(state({ ...leased, parentId: 'parent' }), { method: 'commit' })).toEqual([])
    expect(names(state({ ...parked, token: 0 }, [step('a')]), { method: 'start' })).toEqual([])
    expect(names(state({ ...parked, token: 0 }), { method: 'start' })).toEqual(['born_by_start'])
  })

  it('has no invariant that was never broken', () => {
    expect(Object.keys(brokenSteps).toSorted()).toEqual(stepInvariants.map(({ name }) => name).toSorted())
  })
})
