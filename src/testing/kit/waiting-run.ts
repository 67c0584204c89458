// The conditions for which a run waits, read from its row and its journal, and in words: for a test in which nothing
// happens.

import { formatMs } from '../../core/definition/duration.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import type { Entry } from '../../core/model/entry.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import type { Run, RunStatus } from '../../core/model/run.ts'
import {
  derivedSecret,
  isHashOfSecret,
  completionPrefix,
  completionTokenText,
} from '../../core/completion/completion-token.ts'
import { dueOf, type RecordedCondition } from '../../core/model/wait-condition.ts'
import { unreadText, type UnreadName } from '../../client/read/unread.ts'
import { loadEntries } from '../../engine/store/journal-pages.ts'
import type { Store, StoreAdmin } from '../../store.ts'
import { systemDigest } from '../../system.ts'

/** A run that has not ended. */
export interface WaitingRun {
  readonly id: string
  readonly type: string
  readonly status: RunStatus
  /** Any of these moves it on. */
  readonly waitsFor: readonly WaitCondition[]
}

export type WaitCondition =
  | { readonly kind: 'signal' | 'topic'; readonly name: string }
  /** `holdfast.complete(token, value)` completes it. */
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'time'; readonly at: Date }
  /** The next attempt of a step, or of the body if `name` is null; `error` is the message of the last one. */
  | { readonly kind: 'retry'; readonly name: string | null; readonly at: Date; readonly error: string }
  | { readonly kind: 'run'; readonly id: string }
  /** The function of a step that is under way. */
  | { readonly kind: 'step'; readonly name: string }
  /** It is paused: `reason` says why, and for a drift what differs. */
  | { readonly kind: 'resume'; readonly reason: string }

/** Facts about runs that are not in the store. */
export interface Onlooker {
  readonly store: Store & StoreAdmin
  readonly payloads: Payloads
  readonly tokenKey: string
  readonly now: number
  /** The steps of a run whose functions are under way. */
  stepsOf(runId: string): readonly string[]
}

const atOnce = 200
const live = ['pending', 'running', 'waiting', 'paused', 'cancelling'] as const

/** All runs that have not ended; runs of the same millisecond have no order. */
export async function unended(store: StoreAdmin): Promise<readonly Run[]> {
  const runs: Run[] = []
  for (;;) {
    const after = runs.at(-1)?.id
    const page = await store.find({ statuses: live }, { limit: atOnce, ...(after === undefined ? {} : { after }) })
    runs.push(...page)
    if (page.length < atOnce) return runs.toReversed()
  }
}

/** Whether only an outside call can move the run. */
export function isUpToOthers({ status, due, timeoutAt }: Run): boolean {
  return status === 'paused' || (status === 'waiting' && due === null && timeoutAt === null)
}

export async function describeWaiting(run: Run, onlooker: Onlooker): Promise<WaitingRun> {
  const { id, type, status } = run
  return { id, type, status, waitsFor: await waitsOf(run, onlooker) }
}

async function waitsOf(run: Run, onlooker: Onlooker): Promise<readonly WaitCondition[]> {
  const { id, status, due } = run
  const entries = await loadEntries(onlooker.store, id, run.base - 1)
  if (status === 'paused') return [{ kind: 'resume', reason: pauseReason(entries) }]
  const steps = onlooker.stepsOf(id).map((name): WaitCondition => ({ kind: 'step', name }))
  if (steps.length > 0) return steps
  const open = new Map<string, Extract<Entry, { kind: 'waiting' }>>()
  for (const entry of entries) {
    if (entry.kind === 'waiting') open.set(entry.name, entry)
    if (entry.kind === 'woken') open.delete(entry.name)
  }
  const waits = [...open.values()].flatMap(({ meta, at }) =>
    meta.conditions.map((condition) => waitedFor(condition, { run, at, entries, onlooker })),
  )
  const all = [...(await retriesOf(run, entries, onlooker)), ...waits]
  if (all.length > 0) return all
  return [{ kind: 'time', at: new Date(due ?? onlooker.now) }]
}

type Failed = Extract<Entry, { kind: 'attempt-failed' | 'undo-attempt-failed' }>

/** The attempts that are to come: nothing of the same name was recorded since the last one failed. */
async function retriesOf(
  { id }: Run,
  entries: readonly Entry[],
  { payloads }: Onlooker,
): Promise<readonly WaitCondition[]> {
  const failed = new Map<string | null, Failed>()
  for (const entry of entries) {
    // Whatever a body records, it has begun anew by then.
    failed.delete(null)
    failed.delete(entry.name)
    if (entry.kind === 'attempt-failed' || entry.kind === 'undo-attempt-failed') failed.set(entry.name, entry)
  }
  const retries = [...failed.values()].map(async ({ seq, kind, name, at, meta, data }): Promise<WaitCondition> => {
    const error = payloads.decode(await payloads.fetch(data), payloads.place(id, seq, kind, name))
    return { kind: 'retry', name, at: new Date(at + meta.delayMs), error: messageOf(error) }
  })
  return Promise.all(retries)
}

interface Registered {
  readonly run: Run
  /** When the wait was registered. */
  readonly at: number
  readonly entries: readonly Entry[]
  readonly onlooker: Onlooker
}

function waitedFor(condition: RecordedCondition, registered: Registered): WaitCondition {
  const due = dueOf(condition, registered.at)
  if (due !== null) return { kind: 'time', at: new Date(due) }
  if (condition.kind === 'run' || condition.kind === 'start') return { kind: 'run', id: condition.runId }
  const { name, topic } = condition as Extract<RecordedCondition, { kind: 'signal' }>
  if (name.startsWith(completionPrefix))
    return { kind: 'token', token: completionTokenOf(Number(name.slice(completionPrefix.length)), registered) }
  return { kind: topic === undefined ? 'signal' : 'topic', name }
}

function completionTokenOf(seq: number, { run, entries, onlooker }: Registered): string {
  const { payloads, tokenKey } = onlooker
  const issued = entries.find((entry) => entry.seq === seq)
  if (issued?.kind !== 'issued') return ''
  const kept = payloads.decode(issued.data, payloads.place(run.id, seq, 'issued', issued.name)) as string
  const secret = isHashOfSecret(kept)
    ? derivedSecret(systemDigest, tokenKey, { runId: run.id, seq, name: issued.name })
    : kept
  return completionTokenText({ runId: run.id, seq, secret })
}

function pauseReason(entries: readonly Entry[]): string {
  const last = entries.findLast((entry) => entry.kind === 'paused')
  if (last?.kind !== 'paused') return 'it is paused'
  const { meta } = last
  return 'message' in meta ? meta.message : `${meta.reason}${meta.note === null ? '' : `: ${meta.note}`}`
}

/** In words: `signal "approved"`. */
export function inWords(waited: WaitCondition, now: number): string {
  switch (waited.kind) {
    case 'signal':
    case 'topic':
      return `${waited.kind} "${waited.name}"`
    case 'token':
      return 'a completion token'
    case 'time':
      return `time: ${pointInTime(waited.at, now)}`
    case 'retry': {
      const what = waited.name === null ? 'the body' : `step "${waited.name}"`
      return `the next attempt of ${what}, which failed with "${waited.error}": ${pointInTime(waited.at, now)}`
    }
    case 'run':
      return `the end of run ${waited.id}`
    case 'step':
      return `step "${waited.name}", whose function has not returned`
    case 'resume':
      return `a resume (${waited.reason})`
  }
}

function pointInTime(at: Date, now: number): string {
  return `${at.toISOString()}, in ${formatMs(Math.max(0, at.getTime() - now))}`
}

/** The call of a test with which it ends such a wait. */
const moves: Readonly<Record<WaitCondition['kind'], string>> = {
  time: "let time pass: t.advance('1h'), or t.drain({ time: true })",
  retry: "let time pass: t.advance('1h'), or t.drain({ time: true })",
  step: "let time pass: t.advance('1h'), or t.drain({ time: true })",
  signal: 'send the signal: t.signal(run, name, payload)',
  topic: 'send to the topic: t.broadcast(topic, payload)',
  token: 'complete the token: t.complete(token, value)',
  resume: 'let it go on: t.resume(run)',
  run: 'let that run end',
}

/** Why the result of a run is awaited in vain; null if it has ended. */
export function awaitedInVain(
  runId: string,
  all: readonly WaitingRun[],
  { now, unread }: { readonly now: number; readonly unread: readonly UnreadName[] },
): HoldfastError | null {
  const run = all.find(({ id }) => id === runId)
  if (run === undefined) return null
  const waits = run.waitsFor.map((waited) => inWords(waited, now)).join(', or ')
  const advice = [...new Set(run.waitsFor.map(({ kind }) => moves[kind]))].join('; or ')
  const others = all.filter(({ id }) => run.waitsFor.some((waited) => waited.kind === 'run' && waited.id === id))
  const awaited = run.waitsFor.flatMap((waited) => (waited.kind === 'signal' ? [waited.name] : []))
  const theirs = others.map(
    ({ id, type, waitsFor }) =>
      ` Run ${id} of "${type}" waits for ${waitsFor.map((waited) => inWords(waited, now)).join(', or ')}.`,
  )
  return new HoldfastError(
    'RESULT_TIMEOUT',
    `The test awaits the result of run ${runId} of "${run.type}", and nothing moves that run: it waits for ${waits}.` +
      `${theirs.join('')}${unreadText(unread, awaited)} Before you await the result, ${advice}.`,
    { details: { runId, waitsFor: run.waitsFor } },
  )
}
