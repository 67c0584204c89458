// The transition that a decided batch becomes: its entries with large payloads offloaded, and the runs that it starts. It is
// the same whether a worker holds the instance (`lease`) or nobody does (null).

import type { Decided, StartRequest } from '../definition/decider-model.ts'
import type { Definition, Host } from '../definition/definition.ts'
import { bug } from '../errors/error.ts'
import type { Draft } from '../model/entry.ts'
import { sentMessageId } from '../model/message.ts'
import { isRunId } from '../model/run-id.ts'
import type { Lease, Run } from '../model/run.ts'
import type { ChildStart, Outbound, Parking, Transition } from '../model/transition.ts'
import { entryPlace, messagePlaceOf } from '../payload/place.ts'
import { effectStart } from './effect-run.ts'
import { keepPatiently } from '../runtime/fetch.ts'

/** A run, as far as its writer knows it. */
export interface WrittenRun extends Pick<Run, 'id' | 'shard' | 'type' | 'version' | 'priority' | 'feed' | 'keyId'> {
  readonly instanceId: string
}

export interface DecidedOptions {
  readonly host: Pick<Host, 'payloads' | 'ports' | 'receiver' | 'limits' | 'transitionId'>
  readonly run: WrittenRun
  /** The number of the last entry before the batch. */
  readonly seq: number
  readonly lease: Lease | null
  readonly decided: Decided
  /** How a holder leaves the run with it; null if it stays. Without a lease the run waits, or ends. */
  readonly parkIf: Parking | null
  /** It is still wanted. An offload is tried again only as long as it is. */
  readonly isWanted: () => boolean
}

export async function decidedTransition(options: DecidedOptions): Promise<Transition> {
  const { host, run, seq, lease, decided, parkIf } = options
  // Mostly there is nothing to wait for, and then nothing is made that could be waited for: every input comes by here.
  const sent = decided.signals.length === 0 ? decided.append : await withSignals(options)
  const isKept = sent.every(({ data }) => data === null || host.payloads.isKeptAsIs(data))
  const append = isKept ? sent : await keptEntries(options, sent)
  const hasOutbound = decided.effects.length + decided.starts.length > 0
  const { end, due } = decided
  const isLeft = end === null && (lease === null || parkIf !== null)
  const status = end ?? (isLeft ? 'waiting' : null)
  return {
    id: host.transitionId(),
    runId: run.id,
    guard: { seq, lease },
    append,
    status,
    due: isLeft ? due : null,
    parkIf: end === null ? parkIf : null,
    undo: null,
    continues: null,
    takes: decided.takes,
    outbound: hasOutbound ? await outboundOf(options) : null,
    keyId: keyIn(options),
    feed: run.feed,
    base: decided.snapshotAt,
  }
}

/** The entries of signals say where they go. To a run that does not exist nothing is sent. */
async function withSignals({ host, run, seq, decided }: DecidedOptions): Promise<readonly Draft[]> {
  const { append, signals } = decided
  const { payloads, limits } = host
  const entries = [...append]
  for (const { seq: at, to, name, payload } of signals) {
    const receiver = typeof to === 'string' ? to : await host.receiver({ type: typeOf(to.workflow), key: to.key })
    if (receiver === null || !isRunId(receiver)) continue
    const id = sentMessageId(run.id, at)
    const place = messagePlaceOf(payloads.namespace, { kind: 'signal', runId: receiver, name, id })
    const meta = { to: receiver, signal: name, kind: 'signal', policy: null, mostUnread: limits.mailbox } as const
    entries[at - seq - 1] = { kind: 'signal-sent', name, meta, data: payloads.encode(payload, place) }
  }
  return entries
}

function typeOf(workflow: Definition | string): string {
  return typeof workflow === 'string' ? workflow : workflow.type
}

async function keptEntries(
  { host, run, seq, isWanted }: DecidedOptions,
  append: readonly Draft[],
): Promise<readonly Draft[]> {
  const { payloads } = host
  const keep = async (draft: Draft, index: number): Promise<Draft> => {
    const { data } = draft
    if (data === null || payloads.isKeptAsIs(data)) return draft
    const place = entryPlace(payloads.namespace, run.id, seq + 1 + index, draft)
    return { ...draft, data: await keepPatiently(host, data, place, isWanted) }
  }
  return Promise.all(append.map(keep))
}

/** The key that the row of the run has to name from here on; null if it does already. */
function keyIn({ host, run, decided }: DecidedOptions): string | null {
  for (const { data } of decided.append) {
    const key = data === null ? null : host.payloads.keyOf(data)
    if (key !== null && key !== run.keyId) return key
  }
  return null
}

async function outboundOf({ host, run, decided }: DecidedOptions): Promise<Outbound> {
  const { effects, starts } = decided
  const { payloads, ports } = host
  const made: Promise<ChildStart>[] = effects.map(async (request) =>
    effectStart({ instance: run, request, payloads, digest: ports.digest, transition: host.transitionId() }),
  )
  for (const { run: prepared } of starts) made.push(childStart(prepared))
  return { starts: await Promise.all(made), watches: [], unwatches: [] }
}

async function childStart(prepared: StartRequest['run']): Promise<ChildStart> {
  const run = await prepared
  if (run === null) throw bug('A decision starts a run that was not prepared')
  return { run, awaited: false, onParentEnd: 'abandon' }
}
