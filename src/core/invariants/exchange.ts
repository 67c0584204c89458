// The invariants of waits on runs and topics: a waiting run has been notified of everything that already happened. A message
// wakes a waiting run, so a wait that outlives its condition is a lost wake-up.

import { isFrom, type Chore, sendTarget } from '../model/chore.ts'
import { outgoingOf } from '../rules/messages/send.ts'
import type { WaitRow } from '../rules/messages/unit-of-work.ts'
import { isTerminal } from '../model/run.ts'
import type { Broadcast } from '../model/topic.ts'
import type { RunState, Violation } from './invariant.ts'

/** The waits, broadcasts and chores of a store. */
export interface ExchangeState {
  readonly waits: readonly WaitRow[]
  readonly broadcasts: readonly Broadcast[]
  readonly chores: readonly Chore[]
}

export interface ExchangeInvariant {
  readonly name: string
  readonly kind: 'S'
  readonly about: string
  readonly check: (state: ExchangeState, states: readonly RunState[], now: number) => readonly Omit<Violation, 'name'>[]
}

const endNotified: ExchangeInvariant = {
  name: 'end_notified',
  kind: 'S',
  about: 'No run waits for the end of an ended run, unless a chore has yet to notify it.',
  check({ waits, chores }, states) {
    const ended = new Set(states.filter(({ run }) => isTerminal(run.status)).map(({ run }) => run.id))
    const left = new Map(chores.filter(({ kind }) => kind === 'end').map((chore) => [chore.target, chore]))
    const isLeft = (wait: WaitRow): boolean => {
      const chore = left.get(wait.target)
      // The next pass of the chore reaches a run that this one skipped.
      return chore !== undefined && (chore.position === 1 || isFrom(wait, chore.after))
    }
    return waits
      .filter((wait) => wait.kind === 'run' && ended.has(wait.target) && !isLeft(wait))
      .map(({ runId, target }) => ({ runId, message: `it waits for ${target}, which has ended` }))
  },
}

const queueNotStuck: ExchangeInvariant = {
  name: 'queue_not_stuck',
  kind: 'S',
  about: 'No run waits on a queue that keeps a message, unless a chore has yet to deliver it.',
  check({ waits, broadcasts, chores }, states, now) {
    const isKept = ({ delivery, takenBy, expiresAt }: Broadcast): boolean =>
      delivery === 'one' && takenBy === null && (expiresAt === null || expiresAt > now)
    const open = new Set(broadcasts.filter(isKept).map(({ topic }) => topic))
    for (const { kind, target } of chores) if (kind === 'late') open.delete(target)
    const isLive = ({ run }: RunState): boolean => !isTerminal(run.status) && run.deletedAt === null
    const live = new Set(states.filter(isLive).map(({ run }) => run.id))
    return waits
      .filter(({ kind, delivery, target }) => kind === 'topic' && delivery === 'one' && open.has(target))
      .filter(({ runId }) => live.has(runId))
      .map(({ runId, target }) => ({ runId, message: `it waits on ${target}, which keeps something` }))
  },
}

const lateCatchUp: ExchangeInvariant = {
  name: 'late_catch_up',
  kind: 'S',
  about: 'For every run that has missed a broadcast there is a chore that delivers it.',
  check({ waits, chores }) {
    const owed = new Set(chores.filter(({ kind }) => kind === 'late').map(({ target }) => target))
    return waits
      .filter(({ target, missed }) => missed !== null && !owed.has(target))
      .map(({ runId, target, missed }) => ({
        runId,
        message: `no chore will give it broadcast ${missed} of ${target}`,
      }))
  },
}

const leftoversSettled: ExchangeInvariant = {
  name: 'leftovers_settled',
  kind: 'S',
  about: 'The unread messages of an ended run are settled, or there is a chore for them.',
  check({ chores }, states) {
    const left = new Map(
      chores.filter(({ kind }) => kind === 'messages').map((chore) => [chore.target, chore.position]),
    )
    return states
      .filter(({ run }) => isTerminal(run.status))
      .flatMap(({ run, messages }) => {
        const after = left.get(run.id) ?? Number.POSITIVE_INFINITY
        const lost = messages.find(({ position }) => position <= after)
        return lost === undefined ? [] : [{ runId: run.id, message: `no chore will settle its message ${lost.id}` }]
      })
  },
}

const sentDelivered: ExchangeInvariant = {
  name: 'sent_delivered',
  kind: 'S',
  about: 'A signal that a run has sent to a live run is in its mailbox, unless a chore has yet to deliver it.',
  check({ chores }, states) {
    const owed = new Map(chores.filter(({ kind }) => kind === 'send').map(({ target, position }) => [target, position]))
    const arrived = new Map(states.flatMap((state) => mailboxOf(state)))
    return states.flatMap(({ run, entries }) => {
      const lost = entries.find((entry) => {
        const outgoing = outgoingOf(run.id, entry.seq, entry)
        const there = outgoing === null ? undefined : arrived.get(outgoing.to.name)
        if (outgoing === null || there === undefined || there.since >= entry.at) return false
        const from = owed.get(sendTarget(run.id, outgoing.to)) ?? Number.POSITIVE_INFINITY
        return !there.ids.has(outgoing.message.id) && entry.seq < from
      })
      return lost === undefined
        ? []
        : [{ runId: run.id, message: `the signal of its entry ${lost.seq} did not arrive` }]
    })
  },
}

/** The ids of all messages of a run, if it has lived without a break since it was started. */
function mailboxOf({ run, entries, messages, taken }: RunState): [string, Arrived][] {
  const hasEnded = isTerminal(run.status) || run.deletedAt !== null || entries.some(({ kind }) => kind === 'retried')
  if (hasEnded || taken === undefined) return []
  return [[run.id, { since: run.createdAt, ids: new Set([...messages, ...taken].map(({ id }) => id)) }]]
}

interface Arrived {
  readonly since: number
  readonly ids: ReadonlySet<string>
}

export const exchangeInvariants: readonly ExchangeInvariant[] = [
  endNotified,
  queueNotStuck,
  lateCatchUp,
  leftoversSettled,
  sentDelivered,
]
