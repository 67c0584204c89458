// Decides which open waits are over, and journals that, in the order in which they came true. A message leaves the mailbox
// with the entry that tells of it. What the losers of a decided race watched is watched no more, unless another open wait
// watches the same; what lies in the mailbox for them stays there for the next wait.

import { watchedKey, type Attachment } from '../core/attachments.ts'
import type { Host } from '../core/definition.ts'
import type { WokenBy, WokenMeta } from '../core/entry.ts'
import { targetOf, type Watched } from '../core/watched.ts'
import { placeOf, type Ended, type Message, type Refused } from '../core/message.ts'
import { mailOf, watchedBy, winnerOf, type Condition, type Winner } from '../core/wait.ts'
import type { Writer } from '../core/writer.ts'
import type { WaitCall } from './call.ts'
import type { Dependants } from './dependants.ts'
import type { Mailbox } from './mailbox.ts'
import type { Resting } from './resting.ts'
import type { Settler } from './settler.ts'
import type { StepRunner } from './step-runner.ts'

interface Owner {
  readonly host: Host
  readonly resting: Resting
  readonly mailbox: Mailbox
  readonly dependants: Dependants
  readonly settler: Settler
  readonly steps: StepRunner
  readonly writer: Writer
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
    resting.delete(call)
    if (winner.message !== null) mailbox.take(winner.message)
    wake(owner, call, winner, now)
    if (winner.message === null || !resting.isWanted(winner.message.name)) continue
    // What another wait would have won with is gone: it may come later now, or not at all.
    open = inOrder(open.slice(at + 1).map((one) => judged(one.call)))
    at = -1
  }
  for (const call of due) steps.begin(call)
}

/** Those that are over, in the order in which they came true; equal ones in the order of the calls. */
function inOrder(open: readonly Candidate[]): Decided[] {
  return open.filter(isDecided).sort((one, other) => one.winner.trueAt - other.winner.trueAt)
}

function isDecided(candidate: Candidate): candidate is Decided {
  return candidate.winner !== null
}

function wake(owner: Owner, call: WaitCall, { tag, trueAt, message }: Winner, now: number): void {
  const { writer, settler, dependants } = owner
  const { by, data } = message === null ? nothing : broughtBy(message)
  const seenAt = Math.max(now, trueAt)
  const meta: WokenMeta = { winner: tag, trueAt, seenAt, ...(by === null ? {} : { by }) }
  writer.append({ kind: 'woken', name: call.name, meta, data }, withdrawal(owner, call, message))
  if (by?.ended !== undefined || by?.refused !== undefined) dependants.ended(by.name)
  settler.ripen(call, { failed: false, value: { meta, data }, seq: writer.seq })
}

const nothing = { by: null, data: null }

function broughtBy(message: Message): { readonly by: WokenBy; readonly data: string | null } {
  const { id, kind, name, data } = message
  const by: WokenBy = { id, kind, name, place: placeOf(message) }
  if (kind === 'refused') return { by: { ...by, refused: JSON.parse(data) as Refused }, data: null }
  if (kind !== 'ended') return { by, data }
  const ended = JSON.parse(data) as Ended
  if (ended.status === 'not-found') return { by: { ...by, ended: { status: ended.status, reason: null } }, data: null }
  return { by: { ...by, ended: { status: ended.status, reason: ended.reason } }, data: ended.data }
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

/** Who is told of an end, or gets the one thing that a queue had, waits there no more. */
function usesUp({ kind }: Message, watched: Watched): boolean {
  return watched.kind === 'run' ? kind !== 'signal' : kind === 'broadcast' && watched.delivery === 'queue'
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
