// Decides which open waits are over, and journals that, in the order in which they came true. A message leaves the mailbox
// with the entry that tells of it, and what it brought is written anew for that entry. What the losers of a decided race watched is watched no more, unless another open wait
// watches the same; what lies in the mailbox for them stays there for the next wait.

import { watchedKey, type Attachment } from '../core/attachments.ts'
import { damagedRow } from '../core/codec.ts'
import type { Host } from '../core/definition.ts'
import type { WokenBy, WokenMeta } from '../core/entry.ts'
import type { HoldfastError } from '../core/error.ts'
import { targetOf, type Watched } from '../core/watched.ts'
import { crowdedIn, endedIn, refusedIn } from '../core/engine-message.ts'
import type { Message } from '../core/message.ts'
import { endPlace, messagePlace, type Place } from '../core/place.ts'
import { byArrival, isAnsweredBy, mailOf, watchedBy, winnerOf, type Condition, type Winner } from '../core/wait.ts'
import type { Writer } from '../core/writer.ts'
import type { WaitCall } from './call.ts'
import type { Dependants } from './dependants.ts'
import type { RecordedPlace } from './history.ts'
import type { Mailbox } from './mailbox.ts'
import type { Resting } from './resting.ts'
import type { Settler } from './settler.ts'
import type { StepRunner } from './step-runner.ts'

interface Owner {
  hasProgressed: boolean
  readonly host: Host
  readonly runId: string
  readonly resting: Resting
  readonly mailbox: Mailbox
  readonly dependants: Dependants
  readonly settler: Settler
  readonly steps: StepRunner
  readonly writer: Writer
  /** What a message brought cannot be read: it stays in the mailbox. */
  unreadable(error: unknown, at: RecordedPlace | null): void
}

interface Candidate {
  readonly call: WaitCall
  readonly winner: Winner | null
}

interface Decided extends Candidate {
  readonly winner: Winner
}

/** Tells whether nothing can be decided yet, because what the open waits want has to be read first. It is read then. */
export function mustLook({ resting, mailbox }: Pick<Owner, 'resting' | 'mailbox'>): boolean {
  if (!resting.wantsMail || mailbox.isAllKnown) return false
  const { names } = resting
  if (mailbox.isCurrent(names)) return false
  mailbox.read(names)
  return true
}

/** Journals the waits that are over and begins the steps whose delay is. */
export function wakeDue(owner: Owner): void {
  const { host, resting, mailbox, steps } = owner
  const now = host.now()
  const next = resting.nextDue()
  if (!resting.isStarting && !mailbox.hasSome && (next === null || next > now)) return
  const due = resting.takeSteps(now)
  const judge = (call: WaitCall): Winner | null =>
    winnerOf(call.conditions, { now, registeredAt: call.registeredAt, messages: mailbox.under(call.mail) })
  const judged = (call: WaitCall): Candidate => ({ call, winner: judge(call) })
  let open = inOrder(resting.candidates(now, mailbox.names).map(judged))
  for (let at = 0; at < open.length; at += 1) {
    const { call, winner } = open[at] as Decided
    const brought = winner.message === null ? nothing : receive(owner, call, winner.tag, winner.message)
    if (brought === 'unreadable') return
    // What came later comes later in the journal, too.
    if (brought === 'on its way') break
    resting.delete(call)
    if (winner.message !== null) mailbox.take(winner.message)
    wake(owner, call, { winner, brought, now })
    if (winner.message === null || !resting.isWanted(winner.message.name)) continue
    // What another wait would have won with is gone: it may come later now, or not at all.
    open = inOrder(open.slice(at + 1).map((one) => judged(one.call)))
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
  owner: Owner,
  call: WaitCall,
  { winner, brought, now }: { readonly winner: Winner; readonly brought: Brought; readonly now: number },
): void {
  const { writer, settler, dependants } = owner
  const { tag, trueAt, message } = winner
  const { by, data, isKept } = brought
  const seenAt = Math.max(now, trueAt)
  const meta: WokenMeta = { winner: tag, trueAt, seenAt, ...(by === null ? {} : { by }) }
  owner.hasProgressed = true
  writer.append({ kind: 'woken', name: call.name, meta, data }, withdrawal(owner, call, message), isKept)
  if (by?.ended !== undefined || by?.refused !== undefined) dependants.ended(by.name)
  settler.ripen(call, { failed: false, value: { meta, data, isKept }, seq: writer.seq })
}

interface Brought {
  readonly by: WokenBy | null
  readonly data: string | null
  /** The data is as the journal keeps it. */
  readonly isKept: boolean
}

const nothing: Brought = { by: null, data: null, isKept: false }

/**
 * What a message brings, written anew for the entry that is about to be appended: its sender wrote it for another place. What
 * lies elsewhere is fetched first; what cannot be read stays in the mailbox.
 */
function receive(owner: Owner, call: WaitCall, tag: string, message: Message): Brought | 'on its way' | 'unreadable' {
  const { payloads } = owner.host
  try {
    const condition = call.conditions.find((one) => one.tag === tag && mailOf(one) === message.name)
    const { by, data, from } = broughtBy(payloads.namespace, condition, message)
    if (data === null || payloads.isMovable(data)) return { by, data, isKept: true }
    const text = owner.mailbox.textOf(message, data)
    if (text === null) return 'on its way'
    const to = payloads.place(owner.runId, owner.writer.seq + 1, 'woken', call.name)
    return { by, data: payloads.received(text, from, to), isKept: false }
  } catch (error) {
    owner.unreadable(error, { seq: owner.writer.seq + 1, name: call.name })
    return 'unreadable'
  }
}

interface Sent {
  readonly by: WokenBy
  readonly data: string | null
  /** Where its sender wrote the data. */
  readonly from: Place
}

/** What the message says, if it is one that the condition asks for, and as its sender or the engine can have written it. */
function broughtBy(namespace: string, condition: Condition | undefined, message: Message): Sent {
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
function refusalOf(condition: Condition, message: Message, from: Place): Pick<WokenBy, 'refused' | 'crowded'> {
  const [refused, crowded] = [refusedIn(message), crowdedIn(message)]
  if (condition.kind !== 'signal' && refused !== null) return { refused }
  if (condition.kind === 'signal' && crowded !== null) return { crowded }
  throw malformed(message, from)
}

function malformed({ id, kind }: Message, from: Place): HoldfastError {
  const why = `it is of kind ${JSON.stringify(kind)}, and not what the engine or anybody can have sent to the wait that takes it`
  return damagedRow(from, `message ${JSON.stringify(id)}`, why)
}

/** What goes with the end of a wait: the message leaves, and what only this wait watched is watched no more. */
function withdrawal({ resting, dependants }: Owner, call: WaitCall, message: Message | null): Attachment | null {
  const watches: Watched[] = []
  const unwatches: Watched[] = []
  for (const watched of watchedIn(call.conditions)) {
    const name = targetOf(watched)
    const isShared = isWatchedIn(resting.wantingOf(name), watched)
    // A registration that is not durable may not have been sent, and then it need not be.
    const isUsedUp = message?.name === name && call.registeredAt !== null && usesUp(message, watched)
    if (isUsedUp && isShared) watches.push(watched)
    const isOutlasted = watched.kind === 'run' && dependants.has(name)
    if (!isUsedUp && !isShared && !isOutlasted) unwatches.push(watched)
  }
  if (message === null && unwatches.length === 0) return null
  return { takes: message?.id ?? null, watches, unwatches }
}

/** Who is told of an end, gets the one thing that a queue had, or was refused, waits there no more. */
function usesUp({ kind }: Message, watched: Watched): boolean {
  if (watched.kind === 'run') return kind !== 'signal'
  return kind === 'refused' || (kind === 'broadcast' && watched.delivery === 'one')
}

/** What has to be watched for these to come true, each once. */
export function watchedIn(conditions: Iterable<Condition>): Iterable<Watched> {
  const found = new Map<string, Watched>()
  for (const condition of conditions) {
    const watched = watchedBy(condition)
    if (watched !== null) found.set(watchedKey(watched), watched)
  }
  return found.values()
}

function isWatchedIn(calls: Iterable<WaitCall>, watched: Watched): boolean {
  const key = watchedKey(watched)
  for (const { conditions } of calls) {
    for (const condition of conditions) {
      if (mailOf(condition) === null) continue
      const other = watchedBy(condition)
      if (other !== null && watchedKey(other) === key) return true
    }
  }
  return false
}
