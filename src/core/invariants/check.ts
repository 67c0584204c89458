// All state invariants, and how they are checked.

import { dueIsEarliestTimer, effectRunsFollowJournal } from './deciders.ts'
import { exchangeInvariants as ofExchange, type ExchangeState } from './exchange.ts'
import { feedInvariants, type FeedItem } from './feed.ts'
import { idempotencyKey, oneKeyOneLiveRun } from './fleet.ts'
import type { FleetInvariant, RunInvariant, RunState, Violation } from './invariant.ts'
import {
  amendsOutcome,
  baseIsInput,
  cancelWinsOrLosesOnce,
  historyBeginsWithStart,
  historyGapless,
  historySingleWriter,
  oneOutcome,
  seqCountsEntries,
  stateIsFold,
  undoInReverse,
  undoIsFold,
  undoNamesStep,
  undoOnce,
} from './journal.ts'
import {
  mailboxDense,
  noLostWakeup,
  signalConsumedAtMostOnce,
  timerIsSet,
  timerNeverEarly,
  timerOnce,
  waitsForSomething,
  wakeNamesCoverWaits,
} from './mailbox.ts'
import { idsNonemptyBounded, readyIsDue, statusFieldsMatch } from './row.ts'

const runInvariants: readonly RunInvariant[] = [
  historyGapless,
  seqCountsEntries,
  historySingleWriter,
  historyBeginsWithStart,
  baseIsInput,
  stateIsFold,
  statusFieldsMatch,
  readyIsDue,
  idsNonemptyBounded,
  oneOutcome,
  amendsOutcome,
  cancelWinsOrLosesOnce,
  undoIsFold,
  undoNamesStep,
  undoOnce,
  undoInReverse,
  mailboxDense,
  signalConsumedAtMostOnce,
  noLostWakeup,
  wakeNamesCoverWaits,
  waitsForSomething,
  timerIsSet,
  timerOnce,
  timerNeverEarly,
  dueIsEarliestTimer,
]

const fleetInvariants: readonly FleetInvariant[] = [oneKeyOneLiveRun, idempotencyKey]

const exchangeInvariants = [...ofExchange, effectRunsFollowJournal]

/** The violations in one committed run. */
export function checkRun(state: RunState, now: number): readonly Violation[] {
  const violations: Violation[] = []
  for (const { name, check } of runInvariants) {
    const message = check(state, now)
    if (message !== null) violations.push({ name, runId: state.run.id, message })
  }
  return violations
}

/** The violations in these runs, each by itself and all together. */
export function checkAll(states: readonly RunState[], now: number): readonly Violation[] {
  const alone = states.flatMap((state) => checkRun(state, now))
  const together = fleetInvariants.flatMap(({ name, check }) => check(states).map((found) => ({ name, ...found })))
  return [...alone, ...together]
}

/** The violations in waits, broadcasts, chores and effects. The runs must be all that the store holds. */
export function checkExchange(state: ExchangeState, states: readonly RunState[], now: number): readonly Violation[] {
  return exchangeInvariants.flatMap(({ name, check }) => check(state, states, now).map((found) => ({ name, ...found })))
}

/** The violations in the whole feed of a store that holds these runs. */
export function checkFeed(feed: readonly FeedItem[], states: readonly RunState[]): readonly Violation[] {
  return feedInvariants.flatMap(({ name, check }) => check(feed, states).map((found) => ({ name, ...found })))
}

export const stateInvariants = [...runInvariants, ...fleetInvariants, ...exchangeInvariants, ...feedInvariants]

/** The most offenders that a report names for each invariant. */
export const mostOffenders = 20

/** Each state invariant by name, with the runs that violate it. */
export function report(
  violations: readonly Violation[],
): readonly { readonly name: string; readonly offenders: readonly string[] }[] {
  return stateInvariants.map(({ name }) => {
    const found = violations.filter((one) => one.name === name).map(({ runId }) => runId ?? '')
    return { name, offenders: [...new Set(found)].toSorted().slice(0, mostOffenders) }
  })
}
