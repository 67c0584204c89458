// Runs made by hand, for measurements of a store with no engine around it: what the engine would write of them.

import type { Store } from 'holdfast'

export type NewRun = Parameters<Store['start']>[0][number]
export type Transition = Parameters<Store['commit']>[0][number]

const token = 1

/** A run that is leased from its start, with three steps before it. */
export function threeStepRun(session: string, order: number): NewRun {
  return { ...newRun('bench.three-steps', session, order), lease: { session, token } }
}

/** A run that waits for a worker, with no step before it. */
export function noStepRun(session: string, order: number): NewRun {
  return newRun('bench.no-steps', session, order)
}

function newRun(type: string, session: string, order: number): NewRun {
  return {
    id: runId(order),
    shard: 0,
    type,
    version: 1,
    key: null,
    keyScope: 'workflow',
    idempotencyKey: null,
    parentId: null,
    tags: [],
    metadata: null,
    feed: false,
    priority: 0,
    due: null,
    timeoutMs: null,
    expiresInMs: null,
    lease: null,
    leaseMs: null,
    transition: transitionId(session),
    first: { kind: 'started', name: null, meta: null, data: String(order) },
  }
}

/** What the engine commits when the journal of a run of three steps is at `seq`; null when it has ended. */
export function transitionAfter(session: string, runId: string, seq: number): Transition | null {
  const meta = { attempt: 1, ms: 0 }
  const shared = transition(session, runId, seq)
  if (seq === 1) return { ...shared, append: [{ kind: 'step-succeeded', name: 'price', meta, data: '10099' }] }
  if (seq === 2) return { ...shared, append: [{ kind: 'step-succeeded', name: 'charge', meta, data: 'true' }] }
  if (seq > 3) return null
  const data = '{"parcel":10000,"paid":true}'
  return {
    ...shared,
    status: 'succeeded',
    append: [
      { kind: 'step-succeeded', name: 'ship', meta, data },
      { kind: 'succeeded', name: null, meta: null, data },
    ],
  }
}

/** What the engine commits of a run without steps that was claimed for the first time. */
export function endingOf(session: string, runId: string): Transition {
  return {
    ...transition(session, runId, 1),
    status: 'succeeded',
    append: [{ kind: 'succeeded', name: null, meta: null, data: '10000' }],
  }
}

function transition(session: string, runId: string, seq: number): Transition {
  return {
    id: transitionId(session),
    runId,
    guard: { seq, lease: { session, token } },
    status: null,
    append: [],
    due: null,
    parkIf: null,
    undo: null,
    continues: null,
    takes: [],
  }
}

let transitions = 0

function transitionId(session: string): string {
  transitions += 1
  return `${session}.${transitions.toString(36)}`
}

/** Of the form that the engine's ids have: later ones sort behind earlier ones. */
export function runId(order: number): string {
  const time = Date.now().toString(16).padStart(12, '0')
  const counter = order.toString(16).padStart(7, '0')
  const chance = Math.floor(Math.random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8${counter.slice(0, 3)}-${counter.slice(3)}${chance}`
}
