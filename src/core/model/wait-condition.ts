// The conditions of a wait, in the one representation that every style and store shares: a list with tags. The first
// condition that came true in store time wins. Store time has milliseconds, and a batch of signals is accepted in one of
// them: ties go by the place in the mailbox, then to the condition declared first. The next holder of the run decides this
// from recorded facts, and journals the winner: this file is that decision, and it is pure.

import { isWellFormed } from './engine-message.ts'
import type { WaitTarget } from './wait-target.ts'
import type { Message, MessageKind } from './message.ts'
import type { TopicRules } from './topic.ts'

export type RecordedCondition =
  /** True at a point in time. */
  | { readonly tag: string; readonly kind: 'time'; readonly at: number }
  /** True some time after the entry that registered it. */
  | { readonly tag: string; readonly kind: 'delay'; readonly ms: number }
  /** True when a signal of that name, or a broadcast of that topic, has arrived. */
  | { readonly tag: string; readonly kind: 'signal'; readonly name: string; readonly topic?: TopicRules }
  /** True when that run has ended, or could not be started. */
  | { readonly tag: string; readonly kind: 'run'; readonly runId: string }
  /** True when that run was started, or could not be. */
  | { readonly tag: string; readonly kind: 'start'; readonly runId: string }

export interface Facts {
  readonly now: number
  /** Store time at which the wait was registered; null if that is not durable yet. */
  readonly registeredAt: number | null
  /** Messages that were not taken, first in first out. */
  readonly messages: readonly Message[]
}

export interface Winner {
  readonly tag: string
  readonly trueAt: number
  /** The message that made it true; null if it was time. */
  readonly message: Message | null
}

/** The point in time at which a condition comes true by itself, or null if only a message can make it true. */
export function dueOf(condition: RecordedCondition, registeredAt: number): number | null {
  if (condition.kind === 'time') return condition.at
  if (condition.kind === 'delay') return registeredAt + condition.ms
  return null
}

/** The earliest point in time at which one of the conditions comes true by itself. */
export function earliestDue(conditions: readonly RecordedCondition[], registeredAt: number): number | null {
  let earliest: number | null = null
  for (const condition of conditions) {
    const due = dueOf(condition, registeredAt)
    if (due !== null && (earliest === null || due < earliest)) earliest = due
  }
  return earliest
}

/** The name of the messages that can make a condition true; null if none can. */
export function messageNameOf(condition: RecordedCondition): string | null {
  if (condition.kind === 'signal') return condition.name
  return condition.kind === 'run' || condition.kind === 'start' ? condition.runId : null
}

/** The run or topic that must be watched for a condition to come true; null if none. */
export function waitTargetOf(condition: RecordedCondition): WaitTarget | null {
  if (condition.kind === 'run') return { kind: 'run', runId: condition.runId }
  if (condition.kind !== 'signal' || condition.topic === undefined) return null
  return { kind: 'topic', ...condition.topic }
}

/** The condition that came true first, or null while none has. */
export function winnerOf(conditions: readonly RecordedCondition[], facts: Facts): Winner | null {
  let winner: Winner | null = null
  for (const condition of conditions) {
    const candidate = judged(condition, facts)
    if (candidate !== null && (winner === null || byArrival(candidate, winner) < 0)) winner = candidate
  }
  return winner
}

/**
 * Sorts by when it came true: by store time, then by the place in the mailbox. A message comes before a time of the same
 * millisecond, or the order would not be transitive: two messages and a time between them could each come before the next.
 * Zero if only the order of declaration decides.
 */
export function byArrival(one: Winner, other: Winner): number {
  if (one.trueAt !== other.trueAt) return one.trueAt - other.trueAt
  const [first, second] = [one.message?.position ?? Infinity, other.message?.position ?? Infinity]
  return first === second ? 0 : first - second
}

function judged(condition: RecordedCondition, facts: Facts): Winner | null {
  const { tag } = condition
  const name = messageNameOf(condition)
  if (name === null) {
    // A relative time counts from a commit that is not yet made.
    const due =
      condition.kind === 'delay' && facts.registeredAt === null ? null : dueOf(condition, facts.registeredAt ?? 0)
    return due !== null && due <= facts.now ? { tag, trueAt: due, message: null } : null
  }
  const message = firstOf(facts.messages, name, condition, condition.kind === 'signal' ? facts.registeredAt : 0)
  if (message !== undefined) return { tag, trueAt: message.at, message }
  if (condition.kind !== 'start' || facts.registeredAt === null) return null
  return { tag, trueAt: facts.registeredAt, message: null }
}

/** Whether the condition accepts messages of that kind: both the name and the kind of a row may be forged. */
export function isAnsweredBy(condition: RecordedCondition, kind: MessageKind): boolean {
  switch (condition.kind) {
    case 'signal':
      if (kind === 'refused') return condition.topic !== undefined
      // Only the wait of a completion token can be failed.
      if (kind === 'failure') return condition.topic === undefined
      return kind === 'signal' || kind === 'topic-signal' || kind === 'broadcast'
    case 'run':
    case 'start':
      return kind === 'ended' || kind === 'refused'
    default:
      return false
  }
}

/** The end of a wait, as an entry records it. */
interface RecordedWinner {
  readonly winner: string
  readonly by?: Pick<Message, 'kind' | 'name'> & { readonly crowded?: unknown }
}

/** Whether the recorded end of a wait fits one of these conditions. */
export function isWinnerOf(conditions: readonly RecordedCondition[], { winner, by }: RecordedWinner): boolean {
  const met = conditions.filter(({ tag }) => tag === winner)
  return met.some((condition) => {
    if (by === undefined) return condition.kind !== 'signal' && condition.kind !== 'run'
    if (messageNameOf(condition) !== by.name || !isAnsweredBy(condition, by.kind)) return false
    return by.kind !== 'refused' || (condition.kind === 'signal') === (by.crowded !== undefined)
  })
}

/**
 * Messages to this run come before broadcasts; each first in, first out. A message for another wait is left to that wait; a
 * forged message is passed on, and its reader refuses it.
 */
function firstOf(
  messages: readonly Message[],
  name: string,
  condition: RecordedCondition,
  registeredAt: number | null,
): Message | undefined {
  let passedOn: Message | undefined
  for (const message of messages) {
    if (message.name !== name) continue
    const isAnswer = isAnsweredBy(condition, message.kind) && !isStale(message, registeredAt)
    if (!isAnswer && isWellFormed(message)) continue
    if (message.kind !== 'broadcast') return message
    passedOn ??= message
  }
  return passedOn
}

/**
 * The refusal of a topic arrives with the commit that registered the wait. If something else ended that wait, the refusal is
 * ignored: it does not apply to a wait that was registered later.
 */
function isStale({ kind, at }: Message, registeredAt: number | null): boolean {
  return kind === 'refused' && (registeredAt === null || at < registeredAt)
}
