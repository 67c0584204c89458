// Which call may change a run, and how: the fence, the token, and the fields and statuses that each call may write.

import { isTerminal, type Run, type RunStatus } from '../../core/model/run.ts'
import { isSuspect } from '../../core/rules/claims/suspect.ts'
import type { Store } from '../../store.ts'
import { appended, changedFields, isChanged, isExchange, type StepInvariant } from './step.ts'

export const epochOnlyGrowsOnClaim: StepInvariant = {
  name: 'epoch_only_grows_on_claim',
  kind: 'T',
  about: 'The token of a run grows by one with each claim, and when a cancellation does not wait for the holder.',
  check({ run: before }, { run: after }, { method }) {
    const grown = after.token - before.token
    const isClaim = method === 'claim' && after.session !== null
    const isCancel = method === 'control' && before.session !== null && after.status === 'cancelled'
    const isDone = changedFields(before, after).length === 0
    const wanted = !isDone && (isClaim || isCancel) ? 1 : 0
    return grown === wanted ? null : `the token went from ${before.token} to ${after.token} with ${method}`
  },
}

export const fence: StepInvariant = {
  name: 'fence',
  kind: 'T',
  about:
    'Commits, releases and heartbeats change only runs that their session holds, under the token that they show, and commits without a lease only runs that wait; in other runs they change only what ends and messages change.',
  check(before, after, { method, session, token }) {
    if (method !== 'commit' && method !== 'release' && method !== 'beat') return null
    if (!isChanged(before, after) || isExchange(before, after, method)) return null
    const { run } = before
    // Without a lease a run that waits may be written, and its place in the journal is the fence.
    const isUnheld = session === null && run.status === 'waiting' && run.session === null && after.run.session === null
    if (method === 'commit' && isUnheld && appended(before, after).length > 0) return null
    const isHeld = run.status === 'running' || run.status === 'cancelling'
    if (!isHeld || run.session !== session)
      return `${session ?? 'no session'} wrote, and ${run.session ?? 'no session'} holds it`
    return token === undefined || token === run.token
      ? null
      : `it was written under ${token}, and the token is ${run.token}`
  },
}

export const leaseNotStolen: StepInvariant = {
  name: 'lease_not_stolen',
  kind: 'T',
  about:
    'A lease ends by its holder, by a cancellation that does not wait, or by a rescue once the session has ended or the ' +
    'deadline has passed.',
  check({ run: before }, { run: after }, { method, now, isAlive }) {
    if (before.session === null) return null
    if (after.session === before.session && after.token === before.token) return null
    if (method === 'commit' || method === 'release') return null
    const message = `${method} took it from ${before.session}`
    if (method === 'control') return after.status === 'cancelled' ? null : message
    if (method !== 'rescue') return message
    const isLate = before.deadline !== null && before.deadline <= now
    return isLate || isAlive === undefined || !isAlive(before.session)
      ? null
      : `${message}, which was alive and in time`
  },
}

export const claimNeverEarly: StepInvariant = {
  name: 'claim_never_early',
  kind: 'T',
  about: 'No run is claimed before it is due, or while it may not be claimed.',
  check({ run: before }, { run: after }, { method, now }) {
    if (method !== 'claim' || after.token === before.token) return null
    const isIsolated = before.readiness === 'isolated'
    if (before.readiness !== 'ready' && before.readiness !== 'timed' && !isIsolated) return `it was ${before.readiness}`
    if (before.deletedAt !== null) return 'it was deleted'
    return before.due !== null && before.due <= now
      ? null
      : `it was due at ${before.due ?? 'no time'}, claimed at ${now}`
  },
}

export const claimInTime: StepInvariant = {
  name: 'claim_in_time',
  kind: 'T',
  about: 'A run past its deadline is not claimed.',
  check({ run: before }, { run: after }, { method, now }) {
    if (method !== 'claim' || after.token === before.token) return null
    const isOver = [before.timeoutAt, before.expiresAt].some((time) => time !== null && time <= now)
    return isOver ? 'its time was over' : null
  },
}

export const crashesAreCounted: StepInvariant = {
  name: 'crashes_are_counted',
  kind: 'T',
  about:
    'A claim counts as a crash until its holder commits; the claim of a suspect counts once it has begun, unless its process lives and takes the crash back.',
  check(before, after, { method }) {
    const { crashes } = after.run
    const went = `crashes went from ${before.run.crashes} to ${crashes} with ${method}`
    if (method === 'claim' && after.run.token !== before.run.token) {
      return crashes === before.run.crashes + (before.run.readiness === 'isolated' ? 0 : 1) ? null : went
    }
    if (method === 'beat') return crashes === before.run.crashes || isSuspect(after.run) ? null : went
    if (method === 'control') {
      // Without a holder, an operator may clear the count, and a live process may take one crash back.
      const less = before.run.crashes - crashes
      const isHeld = before.run.session !== null
      return less === 0 || (!isHeld && (crashes === 0 || (less === 1 && isSuspect(after.run)))) ? null : went
    }
    if (method !== 'commit' || isExchange(before, after, method)) return null
    return appended(before, after).length > 0 && crashes !== 0 ? `crashes are ${crashes}` : null
  },
}

type Moves = Readonly<Partial<Record<RunStatus, readonly RunStatus[]>>>

const nothing: Moves = {}

/** The moves of children that are cancelled when their parent ends. */
const bound: Moves = {
  pending: ['cancelling'],
  waiting: ['cancelling'],
  paused: ['cancelling'],
  running: ['cancelling'],
}

/** The statuses that a call may set, besides leaving the status unchanged. */
const movesBy: Readonly<Record<keyof Store, Moves>> = {
  claim: { pending: ['running'], waiting: ['running'] },
  commit: {
    running: ['waiting', 'pending', 'paused', 'succeeded', 'failed', 'cancelled'],
    waiting: ['succeeded', 'failed'],
    cancelling: ['cancelled'],
  },
  control: {
    pending: ['paused', 'cancelling', 'cancelled'],
    waiting: ['paused', 'cancelling', 'cancelled'],
    running: ['cancelling', 'cancelled'],
    paused: ['pending', 'cancelling', 'cancelled'],
    cancelling: ['cancelled'],
    failed: ['pending'],
  },
  rescue: {
    running: ['pending', 'paused', 'failed'],
    pending: ['failed'],
    waiting: ['pending', 'failed'],
    cancelling: ['cancelled'],
  },
  release: { running: ['pending', 'paused'], cancelling: ['cancelled'] },
  start: nothing,
  deliver: nothing,
  doChores: nothing,
  beat: nothing,
  load: nothing,
  get: nothing,
  changes: nothing,
  listen: nothing,
  migrate: nothing,
  close: nothing,
  capabilities: nothing,
}

/** Calls that end runs, or continue an end, and so cancel their children. */
const ending: ReadonlySet<keyof Store> = new Set(['commit', 'control', 'rescue', 'release', 'doChores'])

/** A child that is cancelled with its parent may reach its own end in the same call. */
function isBoundTo(from: RunStatus, to: RunStatus, method: keyof Store): boolean {
  const first = bound[from] ?? []
  return first.includes(to) || (first.includes('cancelling') && movesBy[method].cancelling?.includes(to) === true)
}

export const statusMachine: StepInvariant = {
  name: 'status_machine',
  kind: 'T',
  about: 'A run changes its status only along the status machine, and only by a call that may do it.',
  check({ run: before }, { run: after }, { method }) {
    if (before.status === after.status || movesBy[method][before.status]?.includes(after.status) === true) return null
    if (ending.has(method) && isBoundTo(before.status, after.status, method)) return null
    return `${method} led it from ${before.status} to ${after.status}`
  },
}

const lease = ['status', 'readiness', 'due', 'session', 'deadline', 'crashes'] as const
const others = ['inbox', 'watched'] as const
/** The further fields that change in a child that is cancelled because its parent has ended. */
const cancelling = ['status', 'seq', 'controlRequest', 'undo', 'timeoutAt', 'expiresAt', 'updatedAt'] as const
const writing = [
  ...lease,
  ...others,
  'seq',
  'controlRequest',
  'undo',
  'timeoutAt',
  'expiresAt',
  'updatedAt',
  'endedAt',
] as const

/** The fields of the row that a call may change. */
const fieldsBy: Readonly<Record<keyof Store, readonly (keyof Run)[]>> = {
  claim: [...lease, 'token', 'expiresAt', 'wakeNames'],
  commit: [...writing, 'type', 'version', 'base', 'wakeNames'],
  control: [...writing, 'token', 'deletedAt', 'deleteReason'],
  rescue: writing,
  release: writing,
  deliver: ['inbox', 'readiness', 'due'],
  doChores: ['inbox', 'readiness', 'due', ...cancelling],
  beat: ['deadline', 'crashes'],
  start: [],
  load: [],
  get: [],
  changes: [],
  listen: [],
  migrate: [],
  close: [],
  capabilities: [],
}

export const callWritesItsFields: StepInvariant = {
  name: 'call_writes_its_fields',
  kind: 'T',
  about: 'A call changes only the fields that it may write; the id and the keys of a run never change.',
  check(before, after, { method }) {
    const wrong = changedFields(before.run, after.run).filter((field) => !fieldsBy[method].includes(field))
    if (wrong.length > 0) return `${method} changed ${wrong.join(', ')}`
    const { type, version, base } = before.run
    const isSame = type === after.run.type && version === after.run.version
    return isSame || base !== after.run.base ? null : 'it became another type without continuing as new'
  },
}

export const endedByEntry: StepInvariant = {
  name: 'ends_once',
  kind: 'T',
  about: 'The call that ends a run appends its end, once and last.',
  check(before, after) {
    if (!isTerminal(after.run.status) || isTerminal(before.run.status)) return null
    const ends = appended(before, after).filter(({ kind }) => isTerminal(kind as RunStatus))
    const isLast = after.entries.at(-1) === ends[0]
    return ends.length === 1 && isLast && ends[0]?.kind === after.run.status ? null : `it ended ${ends.length} times`
  },
}
