// The conditions for which a run waits, read from its row and its journal, and in words: for a test in which nothing
// happens.

import { formatMs } from '../../core/definition/duration.ts'
import type { Entry } from '../../core/model/entry.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import type { Run, RunStatus } from '../../core/model/run.ts'
import { derivedSecret, isHashOfSecret, tokenPrefix, tokenText } from '../../core/model/token.ts'
import { dueOf, type RecordedCondition } from '../../core/model/wait-condition.ts'
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
  if (waits.length > 0) return waits
  return [{ kind: 'time', at: new Date(due ?? onlooker.now) }]
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
  if (name.startsWith(tokenPrefix))
    return { kind: 'token', token: readToken(Number(name.slice(tokenPrefix.length)), registered) }
  return { kind: topic === undefined ? 'signal' : 'topic', name }
}

function readToken(seq: number, { run, entries, onlooker }: Registered): string {
  const { payloads, tokenKey } = onlooker
  const issued = entries.find((entry) => entry.seq === seq)
  if (issued?.kind !== 'issued') return ''
  const kept = payloads.decode(issued.data, payloads.place(run.id, seq, 'issued', issued.name)) as string
  const secret = isHashOfSecret(kept)
    ? derivedSecret(systemDigest, tokenKey, { runId: run.id, seq, name: issued.name })
    : kept
  return tokenText({ runId: run.id, seq, secret })
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
      return 'the completion of a token'
    case 'time':
      return `time: ${waited.at.toISOString()}, in ${formatMs(Math.max(0, waited.at.getTime() - now))}`
    case 'run':
      return `the end of run ${waited.id}`
    case 'step':
      return `step "${waited.name}", whose function has not returned`
    case 'resume':
      return `a resume (${waited.reason})`
  }
}
