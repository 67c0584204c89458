// The invariants of steps on journals and mailboxes: no step changes existing entries or messages.

import type { Entry } from '../../core/model/entry.ts'
import { outcomesOf, sinceBase } from '../../core/invariants/invariant.ts'
import { isTerminal, type Run } from '../../core/model/run.ts'
import { mostBytes, mostEntries, sizeOf } from '../../core/model/transition.ts'
import { appended, changedFields, isChanged, isExchange, isSame, type StepInvariant } from './step.ts'

export const historyAppendOnly: StepInvariant = {
  name: 'history_append_only',
  kind: 'T',
  about: 'No entry of a journal is ever changed or deleted.',
  check(before, after) {
    const at = before.entries.findIndex((entry, index) => !isSameEntry(entry, after.entries[index]))
    return at === -1 ? null : `entry ${at + 1} changed or is gone`
  },
}

function isSameEntry(a: Entry, b: Entry | undefined): boolean {
  if (a === b) return true
  return (
    b !== undefined &&
    a.seq === b.seq &&
    a.kind === b.kind &&
    a.name === b.name &&
    a.at === b.at &&
    a.transition === b.transition &&
    a.data === b.data &&
    isSame(a.meta, b.meta)
  )
}

export const checkpointImmutable: StepInvariant = {
  name: 'checkpoint_immutable',
  kind: 'T',
  about: 'The outcome of a step never changes, unless a repair changes the journal or the run continues as new.',
  check(before, after) {
    if (before.run.base !== after.run.base || appended(before, after).some(({ kind }) => kind === 'amended'))
      return null
    const now = new Map(outcomesOf(sinceBase(after), 'step-succeeded', 'step-failed').map((one) => [one.name, one]))
    for (const { name, kind, data } of outcomesOf(sinceBase(before), 'step-succeeded', 'step-failed')) {
      const found = now.get(name)
      if (found?.kind !== kind || found.data !== data) return `step ${name} has another outcome`
    }
    return null
  },
}

export const terminalIsFinal: StepInvariant = {
  name: 'terminal_is_final',
  kind: 'T',
  about: 'A run that is over does not change, except by its removal, by late messages and, if it failed, by a retry.',
  check(before, after, { method }) {
    if (!isTerminal(before.run.status)) return null
    const added = appended(before, after)
    const isRetried = method === 'control' && before.run.status === 'failed' && added.at(-1)?.kind === 'retried'
    if (isRetried) return before.run.undo === 'due' ? 'it was retried although its steps were undone' : null
    if (added.length > 0) return `${added[0]?.kind} was appended after ${before.run.status}`
    const allowed: readonly (keyof Run)[] = method === 'deliver' ? ['inbox'] : ['deletedAt', 'deleteReason']
    const changed = changedFields(before.run, after.run).filter((one) => !allowed.includes(one))
    return changed.length === 0 ? null : `${changed.join(', ')} changed after ${before.run.status}`
  },
}

export const messagesStay: StepInvariant = {
  name: 'messages_stay',
  kind: 'T',
  about: 'A message is accepted in its turn, leaves its mailbox only with a commit or the end, and never comes back.',
  check(before, after, { method }) {
    const isOver = isTerminal(after.run.status)
    const kept = new Map(after.messages.map((message) => [message.id, message]))
    for (const message of before.messages) {
      const found = kept.get(message.id)
      if (found === undefined && method !== 'commit' && !isOver) return `message ${message.id} is gone`
      if (found !== undefined && !isSame(found, message)) return `message ${message.id} changed`
    }
    const known = new Set(before.messages.map(({ id }) => id))
    const fresh = after.messages.filter(({ id }) => !known.has(id))
    const back = fresh.find(({ position }) => position <= before.run.inbox)
    if (back !== undefined) return `message ${back.id} came back`
    const count = after.run.inbox - before.run.inbox
    // A message to a run that is over is settled at once. One that came with the end itself may be left to a chore.
    if (isOver && count >= 0) {
      const isLeft = fresh.length === 0 || !isTerminal(before.run.status)
      return isLeft ? null : `${fresh.length} messages are left with a run that is over`
    }
    const isDense = fresh.every(({ position }, index) => position === before.run.inbox + index + 1)
    return isDense && fresh.length === count ? null : `${fresh.length} messages came, and the inbox grew by ${count}`
  },
}

export const undoNotForgotten: StepInvariant = {
  name: 'undo_not_forgotten',
  kind: 'T',
  about: 'The `undo` state of a run never goes back, unless the run continues as new.',
  check(before, after) {
    if (before.run.base !== after.run.base) return null
    const grades = ['none', 'possible', 'due']
    const isLess = grades.indexOf(after.run.undo) < grades.indexOf(before.run.undo)
    return isLess ? `undo was ${before.run.undo} and is ${after.run.undo}` : null
  },
}

export const commitMovesOn: StepInvariant = {
  name: 'commit_moves_on',
  kind: 'T',
  about: 'A commit appends an entry, or parks the run again.',
  check(before, after, { method }) {
    if (method !== 'commit' || !isChanged(before, after) || appended(before, after).length > 0) return null
    if (isExchange(before, after, method)) return null
    return after.run.status === 'waiting' || after.run.status === before.run.status ? null : 'nothing was appended'
  },
}

export const transitionBounded: StepInvariant = {
  name: 'transition_bounded',
  kind: 'T',
  about: 'A commit appends at most 500 entries and 4 MiB to a run, unless a single entry is larger.',
  check(before, after, { method }) {
    if (method !== 'commit') return null
    const added = appended(before, after).filter((entry) => entry.kind !== 'damaged')
    if (added.length > mostEntries) return `${added.length} entries were appended at once`
    const bytes = added.reduce((sum, entry) => sum + sizeOf(entry), 0)
    return added.length > 1 && bytes > mostBytes ? `${bytes} bytes were appended at once` : null
  },
}
