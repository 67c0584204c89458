// Decides which open waits are over, and journals that, in the order in which they came true. A message leaves the mailbox
// with the entry that takes it, and its payload is encoded anew for that entry. Targets that only the losers of a decided
// race watched are no longer watched; messages in the mailbox for them stay there for the next wait.

import { waitTargetKey, type Attachment } from '../../core/runtime/attachments.ts'
import { damagedRow } from '../../core/payload/codec.ts'
import type { WokenBy, WokenMeta } from '../../core/model/entry.ts'
import type { HoldfastError } from '../../core/errors/error.ts'
import { targetOf, type WaitTarget } from '../../core/model/wait-target.ts'
import { crowdedIn, endedIn, refusedIn } from '../../core/model/engine-message.ts'
import type { Message } from '../../core/model/message.ts'
import { endPlace, messagePlace, type Place } from '../../core/payload/place.ts'
import {
  byArrival,
  isAnsweredBy,
  messageNameOf,
  waitTargetOf,
  winnerOf,
  type RecordedCondition,
  type Winner,
} from '../../core/model/wait-condition.ts'
import type { WaitCall } from '../frame/body-call.ts'
import type { StepRunner } from '../steps/step-runner.ts'
import type { Waits } from './waits.ts'
import { quotedText } from '../../core/text/printable.ts'

interface Candidate {
  readonly call: WaitCall
  readonly winner: Winner | null
}

interface Decided extends Candidate {
  readonly winner: Winner
}

/**
 * Whether nothing can be decided yet, because messages that the open waits want have to be read first. Begins to read
 * them.
 */
export function mustLook({ idle, mailbox }: Waits): boolean {
  if (!idle.awaitsMessages || mailbox.isAllKnown) return false
  const { names } = idle
  if (mailbox.isCurrent(names)) return false
  mailbox.read(names)
  return true
}

/** Journals the waits that are over and begins the steps whose delay is. */
export function wakeDue(waits: Waits, steps: StepRunner): void {
  const { state, idle, mailbox } = waits
  const now = state.host.now()
  const next = idle.nextDue()
  if (!idle.isStarting && !mailbox.hasSome && (next === null || next > now)) return
  const due = idle.takeSteps(now)
  const winnerFor = (call: WaitCall): Winner | null =>
    winnerOf(call.conditions, { now, registeredAt: call.registeredAt, messages: mailbox.under(call.messageNames) })
  const candidate = (call: WaitCall): Candidate => ({ call, winner: winnerFor(call) })
  let open = inOrder(idle.candidates(now, mailbox.names).map(candidate))
  for (let at = 0; at < open.length; at += 1) {
    const { call, winner } = open[at] as Decided
    const brought = winner.message === null ? nothing : receive(waits, call, winner.tag, winner.message)
    if (brought === 'unreadable') return
    // Later messages must come later in the journal, too.
    if (brought === 'on its way') break
    idle.delete(call)
    if (winner.message !== null) mailbox.take(winner.message)
    wake(waits, call, { winner, brought, now })
    if (winner.message === null || !idle.isAwaited(winner.message.name)) continue
    // The message that another wait would have won with is gone: that wait may come true later now, or not at all.
    open = inOrder(open.slice(at + 1).map((one) => candidate(one.call)))
    at = -1
  }
  for (const call of due) steps.begin(call)
}

/** Those that are over, in the order in which they came true; equal ones in the order of the calls. */
function inOrder(open: readonly Candidate[]): Decided[] {
  return open.filter(isDecided).sort((one, other) => byArrival(one.winner, other.winner))
}

function isDecided(candidate: Candidate): candidate is Decided {
  return candidate.winner !== null
}

function wake(
  waits: Waits,
  call: WaitCall,
  { winner, brought, now }: { readonly winner: Winner; readonly brought: Brought; readonly now: number },
): void {
  const { state, settler } = waits
  const { tag, trueAt, message } = winner
  const { by, data, isKept } = brought
  const seenAt = Math.max(now, trueAt)
  const meta: WokenMeta = { winner: tag, trueAt, seenAt, ...(by === null ? {} : { by }) }
  state.writer.append({ kind: 'woken', name: call.name, meta, data }, withdrawal(waits, call, message), isKept)
  if (by?.ended !== undefined || by?.refused !== undefined) waits.ended(by.name)
  settler.enqueue(call, { failed: false, value: { meta, data, isKept }, seq: state.writer.seq })
}

interface Brought {
  readonly by: WokenBy | null
  readonly data: string | null
  /** The data is as the journal keeps it. */
  readonly isKept: boolean
}

const nothing: Brought = { by: null, data: null, isKept: false }

/**
 * The payload of a message, encoded anew for the entry that is about to be appended: its sender encoded it for another place.
 * A payload that is stored elsewhere is fetched first; one that cannot be read stays in the mailbox.
 */
function receive(waits: Waits, call: WaitCall, tag: string, message: Message): Brought | 'on its way' | 'unreadable' {
  const { state, mailbox } = waits
  const { payloads } = state.host
  try {
    const condition = call.conditions.find((one) => one.tag === tag && messageNameOf(one) === message.name)
    const { by, data, from } = broughtBy(payloads.namespace, condition, message)
    if (data === null || payloads.isMovable(data)) return { by, data, isKept: true }
    const text = mailbox.textOf(message, data)
    if (text === null) return 'on its way'
    const to = payloads.place(state.runId, state.writer.seq + 1, 'woken', call.name)
    return { by, data: payloads.received(text, from, to), isKept: false }
  } catch (error) {
    state.frame.unreadable(error, { seq: state.writer.seq + 1, name: call.name })
    return 'unreadable'
  }
}

interface Sent {
  readonly by: WokenBy
  readonly data: string | null
  /** Where its sender wrote the data. */
  readonly from: Place
}

/** The content of a message, if the condition asks for it, and if its sender or the engine can have written it. */
function broughtBy(namespace: string, condition: RecordedCondition | undefined, message: Message): Sent {
  const { id, kind, name, data } = message
  const by: WokenBy = { id, kind, name }
  const from = messagePlace(namespace, message)
  if (condition === undefined || !isAnsweredBy(condition, kind)) throw malformed(message, from)
  if (kind === 'refused') return { by: { ...by, ...refusalOf(condition, message, from) }, data: null, from }
  if (kind !== 'ended') return { by, data, from }
  const ended = endedIn(message)
  if (ended === null) throw malformed(message, from)
  const { status } = ended
  if (status === 'not-found') return { by: { ...by, ended: { status, reason: null } }, data: null, from }
  return {
    by: { ...by, ended: { status, reason: ended.reason } },
    data: ended.data,
    from: endPlace(namespace, name, ended),
  }
}

/** A child that could not be started, or a topic that has no room. */
function refusalOf(condition: RecordedCondition, message: Message, from: Place): Pick<WokenBy, 'refused' | 'crowded'> {
  const [refused, crowded] = [refusedIn(message), crowdedIn(message)]
  if (condition.kind !== 'signal' && refused !== null) return { refused }
  if (condition.kind === 'signal' && crowded !== null) return { crowded }
  throw malformed(message, from)
}

function malformed({ id, kind }: Message, from: Place): HoldfastError {
  const why = `it is of kind ${quotedText(kind)}, which neither the engine nor a client can have sent to the wait that takes it`
  return damagedRow(from, `message ${quotedText(id)}`, why)
}

/**
 * The effects that go with the end of a wait: the message leaves, and targets that only this wait watched are no longer
 * watched.
 */
function withdrawal({ idle, outlasted }: Waits, call: WaitCall, message: Message | null): Attachment | null {
  const watches: WaitTarget[] = []
  const unwatches: WaitTarget[] = []
  for (const watched of waitTargetsIn(call.conditions)) {
    const name = targetOf(watched)
    const isShared = isWatchedIn(idle.wantingOf(name), watched)
    // A registration that is not durable may not have been sent, and then it need not be.
    const isUsedUp = message?.name === name && call.registeredAt !== null && usesUp(message, watched)
    if (isUsedUp && isShared) watches.push(watched)
    const isOutlasted = watched.kind === 'run' && outlasted.has(name)
    if (!isUsedUp && !isShared && !isOutlasted) unwatches.push(watched)
  }
  if (message === null && unwatches.length === 0) return null
  return { takes: message?.id ?? null, watches, unwatches }
}

/** A run that was notified of an end, got the one message of a queue, or was refused, no longer waits there. */
function usesUp({ kind }: Message, watched: WaitTarget): boolean {
  if (watched.kind === 'run') return kind !== 'signal'
  return kind === 'refused' || (kind === 'broadcast' && watched.delivery === 'one')
}

/** The targets that must be watched for these to come true, each once. */
export function waitTargetsIn(conditions: Iterable<RecordedCondition>): Iterable<WaitTarget> {
  const found = new Map<string, WaitTarget>()
  for (const condition of conditions) {
    const watched = waitTargetOf(condition)
    if (watched !== null) found.set(waitTargetKey(watched), watched)
  }
  return found.values()
}

function isWatchedIn(calls: Iterable<WaitCall>, watched: WaitTarget): boolean {
  const key = waitTargetKey(watched)
  for (const { conditions } of calls) {
    for (const condition of conditions) {
      if (messageNameOf(condition) === null) continue
      const other = waitTargetOf(condition)
      if (other !== null && waitTargetKey(other) === key) return true
    }
  }
  return false
}
