// The invariants of a run's mailbox and of its waits: no wake-up is lost.

import { dueOf, earliestDue, messageNameOf } from '../model/wait-condition.ts'
import {
  firstTwice,
  isKind,
  outcomesOf,
  sinceBase,
  type EntryOf,
  type RunInvariant,
  type RunState,
} from './invariant.ts'

export const mailboxDense: RunInvariant = {
  name: 'mailbox_dense',
  kind: 'S',
  about: 'The messages that a run ever received have the positions 1, 2, 3 … up to its `inbox`.',
  check({ run, messages, taken }) {
    const positions = [...messages, ...(taken ?? [])].map(({ position }) => position)
    const isOutside = positions.some((position) => position < 1 || position > run.inbox)
    if (isOutside || new Set(positions).size !== positions.length) return `${positions.join(', ')} of ${run.inbox}`
    const isMissing = taken !== undefined && positions.length !== run.inbox
    return isMissing ? `there are ${positions.length} of ${run.inbox}` : null
  },
}

export const signalConsumedAtMostOnce: RunInvariant = {
  name: 'signal_consumed_at_most_once',
  kind: 'S',
  about: 'A message exists once, and at most one entry of its run takes it out of the mailbox.',
  check({ run, messages, taken = [] }) {
    const twice = firstTwice([...messages, ...taken].map(({ id }) => id))
    if (twice !== undefined) return `message ${twice} is there twice`
    const misplaced = taken.find(({ takenBy }) => takenBy < 1 || takenBy > run.seq)
    return misplaced === undefined
      ? null
      : `message ${misplaced.id} was taken by entry ${misplaced.takenBy}, which does not exist`
  },
}

/** Waits without an end. */
function openWaits(state: RunState): readonly EntryOf<'waiting'>[] {
  const since = sinceBase(state)
  const over = new Set(outcomesOf(since, 'woken').map(({ name }) => name))
  return since.filter((entry): entry is EntryOf<'waiting'> => isKind(entry, 'waiting') && !over.has(entry.name))
}

/** The open waits that the body surely awaits: after a repair it may take another path. */
function awaitedWaits(state: RunState): readonly EntryOf<'waiting'>[] {
  const repaired = state.entries.findLast(({ kind }) => kind === 'amended')?.seq ?? 0
  return openWaits(state).filter(({ seq, meta }) => seq > repaired && meta.unawaited !== true)
}

/** Whether it waits, and is not due before `time`. */
function sleepsBeyond({ run }: RunState, time: number): boolean {
  const { status, deletedAt, due } = run
  return status === 'waiting' && deletedAt === null && (due === null || due > time)
}

export const noLostWakeup: RunInvariant = {
  name: 'no_lost_wakeup',
  kind: 'S',
  about: 'No run waits for a message that is already in its mailbox.',
  check(state, now) {
    const { messages } = state
    if (messages.length === 0 || !sleepsBeyond(state, now)) return null
    const names = new Set(messages.map(({ name }) => name))
    for (const { name, meta } of awaitedWaits(state)) {
      for (const condition of meta.conditions) {
        const wanted = messageNameOf(condition)
        if (wanted !== null && names.has(wanted)) return `${name} waits for ${wanted}`
      }
    }
    return null
  },
}

export const wakeNamesCoverWaits: RunInvariant = {
  name: 'wake_names_cover_waits',
  kind: 'S',
  about: 'Every message that an open wait of a waiting run asks for would wake it.',
  check(state) {
    const { status, deletedAt, wakeNames } = state.run
    if (status !== 'waiting' || deletedAt !== null || wakeNames === null) return null
    for (const { name, meta } of awaitedWaits(state)) {
      for (const condition of meta.conditions) {
        const awaited = messageNameOf(condition)
        if (awaited !== null && !wakeNames.includes(awaited))
          return `${name} waits for ${awaited}, which does not wake it`
      }
    }
    return null
  },
}

export const timerIsSet: RunInvariant = {
  name: 'timer_is_set',
  kind: 'S',
  about: 'A run that waits is due by the time of the wait that it registered last.',
  check(state) {
    const last = awaitedWaits(state).at(-1)
    if (last === undefined) return null
    const due = earliestDue(last.meta.conditions, last.at)
    return due === null || !sleepsBeyond(state, due)
      ? null
      : `${last.name} is over at ${due}, and the run is due at ${state.run.due ?? 'no time'}`
  },
}

export const waitsForSomething: RunInvariant = {
  name: 'waits_for_something',
  kind: 'S',
  about: 'A run that waits without being due has registered a wait that is not over, or decides inputs.',
  check(state) {
    const { status, due, deletedAt } = state.run
    if (status !== 'waiting' || due !== null || deletedAt !== null) return null
    if (state.entries.some(({ kind }) => kind === 'input' || kind === 'snapshot')) return null
    return openWaits(state).length > 0 ? null : 'it waits for nothing'
  },
}

export const timerOnce: RunInvariant = {
  name: 'timer_once',
  kind: 'S',
  about: 'A wait ends once, unless a repair dropped its end.',
  check(state) {
    const twice = firstTwice(outcomesOf(sinceBase(state), 'woken').map(({ name }) => name))
    return twice === undefined ? null : `${twice} is over twice`
  },
}

export const timerNeverEarly: RunInvariant = {
  name: 'timer_never_early',
  kind: 'S',
  about: 'A wait does not end before its condition is true, and a time condition is not true before its time.',
  check(state) {
    const since = sinceBase(state)
    for (const entry of since) {
      if (!isKind(entry, 'woken')) continue
      const { winner, trueAt, seenAt } = entry.meta
      const wait = since.find((one) => isKind(one, 'waiting') && one.name === entry.name && one.seq < entry.seq)
      if (wait === undefined || !isKind(wait, 'waiting')) return `${entry.name} is over and was never registered`
      const condition = wait.meta.conditions.find(({ tag }) => tag === winner)
      if (condition === undefined) return `${entry.name} was ended by ${winner}, which it does not wait for`
      const due = dueOf(condition, wait.at)
      if (due !== null && trueAt < due) return `${entry.name} came true ${due - trueAt} ms early`
      if (seenAt < trueAt) return `${entry.name} was seen ${trueAt - seenAt} ms before it came true`
      if (entry.at < trueAt) return `${entry.name} was committed ${trueAt - entry.at} ms before it came true`
    }
    return null
  },
}
