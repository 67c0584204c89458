// The invariants of the row of a run by itself: its status constrains every other field.

import { longestKey } from '../model/key.ts'
import { isPrintable } from '../text/printable.ts'
import { isTerminal, type Run } from '../model/run.ts'
import { isSuspect } from '../rules/claims/suspect.ts'
import type { RunInvariant } from './invariant.ts'

export const statusFieldsMatch: RunInvariant = {
  name: 'status_fields_match',
  kind: 'S',
  about:
    'Lease, readiness, due time, end, control request, bounds and undo of a run fit its status; a deleted run without a holder is idle.',
  check({ run }) {
    return wrongLease(run) ?? wrongReadiness(run) ?? wrongBounds(run) ?? wrongEnd(run)
  },
}

function wrongLease({ status, readiness, session, token, deadline, controlRequest }: Run): string | null {
  const isHeld = session !== null
  if (isHeld !== (readiness === 'leased')) return `it is ${readiness} and held by ${session ?? 'no session'}`
  if (isHeld && status !== 'running' && status !== 'cancelling') return `it is held, and it is ${status}`
  if (isHeld && token < 1) return `it is held with token ${token}`
  if (!isHeld && status === 'running') return 'it is running without a holder'
  if (!isHeld && deadline !== null) return 'it has a deadline without a holder'
  if (controlRequest === null) return null
  const isFit =
    (status === 'running' && controlRequest.kind === 'pause') ||
    (status === 'cancelling' && controlRequest.kind === 'cancel')
  return isFit ? null : `it is ${status}, with a control request to ${controlRequest.kind}`
}

function wrongReadiness({ status, readiness, session, due, deletedAt, crashes }: Run): string | null {
  const isDue = readiness === 'ready' || readiness === 'timed' || readiness === 'isolated'
  if (readiness !== 'blocked' && isDue !== (due !== null)) return `it is ${readiness} and due at ${due ?? 'no time'}`
  const mayBeApart = (status === 'pending' || status === 'cancelling') && isSuspect({ crashes })
  if (readiness === 'isolated' && !mayBeApart) return `it is ${status} and isolated after ${crashes} crashes`
  if (session !== null || readiness === 'idle') {
    const mustMove = (status === 'pending' || status === 'cancelling') && session === null && deletedAt === null
    return mustMove ? `it is ${status} and idle: no worker will ever claim it` : null
  }
  if (deletedAt !== null) return `it is deleted and ${readiness}`
  return status === 'paused' || isTerminal(status) ? `it is ${status} and ${readiness}` : null
}

function wrongBounds({ status, session, undo, token, timeoutAt, expiresAt, endedAt }: Run): string | null {
  const isUndoing = status === 'cancelling' || (undo === 'due' && endedAt === null)
  if (isUndoing && (timeoutAt !== null || expiresAt !== null)) return 'undo work has a bound on its time'
  if (status === 'cancelling' && session === null && undo === 'none') return 'it is cancelling with nothing to undo'
  if (status === 'succeeded' && undo === 'due') return 'it succeeded with undo work due'
  if (expiresAt === null) return null
  if (token > 0) return 'it was begun, and may still expire'
  return status === 'pending' || status === 'paused' ? null : `it is ${status} and may still expire`
}

function wrongEnd({ status, endedAt, deletedAt, deleteReason }: Run): string | null {
  if (isTerminal(status) !== (endedAt !== null)) return `it is ${status} and ended at ${endedAt ?? 'no time'}`
  return deletedAt === null && deleteReason !== null ? 'it is not deleted, but there is a reason for that' : null
}

export const readyIsDue: RunInvariant = {
  name: 'ready_is_due',
  kind: 'S',
  about: 'A run that is ready to be claimed is due.',
  check({ run: { readiness, due } }, now) {
    return readiness === 'ready' && due !== null && due > now ? `it is ready ${due - now} ms too early` : null
  },
}

const longestId = 200
/** The id of a message that a topic passes on contains the name of the topic, and may do so more than once. */
const longestMessageId = 700

export const idsNonemptyBounded: RunInvariant = {
  name: 'ids_nonempty_bounded',
  kind: 'S',
  about:
    `Ids, types, keys and names are texts that are not empty; ids, types and tags have at most ${longestId} characters, ` +
    `keys ${longestKey}, ids of messages ${longestMessageId}.`,
  check({ run, entries, messages }) {
    const { id, type, key, idempotencyKey, parentId, session, tags } = run
    if (isWrong(id) || isWrong(type) || type.includes(' ')) return 'its id or type'
    if (isWrong(key, longestKey) || isWrong(idempotencyKey, longestKey)) return 'one of its keys'
    if (isWrong(parentId) || isWrong(session) || tags.some((tag) => isWrong(tag))) return 'its parent, session or tags'
    const entry = entries.find(({ name, transition }) => name === '' || isWrong(transition))
    if (entry !== undefined) return `the name or transition of entry ${entry.seq}`
    const message = messages.find((one) => isWrong(one.id, longestMessageId) || one.name === '')
    return message === undefined ? null : `the id or name of message ${message.position}`
  },
}

function isWrong(text: string | null, longest = longestId): boolean {
  return text !== null && (text === '' || text.length > longest || !isPrintable(text))
}
