// One transaction of the exchange: it locks, then reads, then lets the rules decide in memory, then writes. If the rules need
// a row that is not locked, a transaction of ours is rolled back and begins again with that row, so that every transaction
// takes locks in the same order. In a transaction of a user that is not possible: there, and where other transactions keep
// coming in between, a row that is found late is locked late, and the database breaks a deadlock if there is one.
//
// A transaction that skips locked rows does not have them, nor runs that a policy refuses. The rules go on without runs that
// only receive a message, and leave those to a chore. Where they need such a row, they are stopped as for a missing one: the
// item that they were deciding is set aside.

import { bug, HoldfastError } from '../../../core/errors/error.ts'
import type { Run } from '../../../core/model/run.ts'
import { SubscriberCounts } from '../../subscriber-counts.ts'
import type { PostgresUnitOfWork } from './unit-of-work.ts'
import { createUnitOfWorkLoader } from './load/unit-of-work-loader.ts'
import type { ExchangeMethod } from './load/unit-of-work-statements.ts'
import { createUnitOfWorkWriter } from './unit-of-work-writer.ts'
import type { Dialect } from '../dialect.ts'
import type { Execution } from '../execution.ts'
import type { LockedRows } from './locked-rows.ts'
import type { RefusedOthers } from './refused-others.ts'
import { Guard, createLockFilter, type LockPolicy } from '../commit/locked-items.ts'
import { Missing, type LockRequest } from './lock-request.ts'

/** The results of an additional read. */
export interface Seen {
  readonly now: number
  /** Rows that it has locked itself. */
  readonly locked?: readonly Run[]
}

/** Whose transaction an exchange uses, and how it takes its locks. */
export interface ExchangeOptions {
  /** The transaction is that of a user. @default false */
  readonly inUserTransaction?: boolean
  /** @default 'wait' */
  readonly lockPolicy?: LockPolicy
}

export interface ExchangeTask<OwnLook extends Seen, Work extends PostgresUnitOfWork, Made, Answer> {
  readonly end: ExchangeMethod
  readonly lockRequest: LockRequest
  /** The transaction is that of a user. */
  readonly inUserTransaction: boolean
  /** @default 'wait' */
  readonly lockPolicy?: LockPolicy | undefined
  /** Looks for what only this method needs. It is executed under the locks. */
  look(): Promise<OwnLook>
  /** The unit of work of this method: the usual one, or with the results of its own read. */
  lend(lockedRows: LockedRows, seen: OwnLook, crowds: SubscriberCounts): Work
  /** Writes rows that the decision depends on; never twice. */
  prepare?(unitOfWork: Work, seen: OwnLook, guard: Guard): Promise<Made>
  /** Decides all of it, each item under the guard. It may be called again, with another unit of work. */
  decide(unitOfWork: Work, seen: OwnLook, made: Made | undefined, guard: Guard): Answer
}

export interface ExchangeRunner {
  perform<OwnLook extends Seen, Work extends PostgresUnitOfWork, Made, Answer>(
    x: Execution,
    task: ExchangeTask<OwnLook, Work, Made, Answer>,
  ): Promise<Answer>
}

/** After this many tries, rows that are found late are locked late: this bounds the tries, however many rows come in between. */
const mostTries = 4

/** Each time a row is missing, it is there the next time. */
const mostMissing = 100

export function createExchangeRunner(dialect: Dialect, refused: Pick<RefusedOthers, 'among'>): ExchangeRunner {
  const loader = createUnitOfWorkLoader(dialect)
  const writer = createUnitOfWorkWriter(dialect)
  const aside = createLockFilter(dialect, refused)
  const crowds = new SubscriberCounts()

  async function load<OwnLook extends Seen>(
    x: Execution,
    {
      end,
      lockRequest,
      look,
      lockPolicy = 'wait',
    }: Pick<ExchangeTask<OwnLook, PostgresUnitOfWork, unknown, unknown>, 'end' | 'lockRequest' | 'look' | 'lockPolicy'>,
  ): Promise<{ readonly lockedRows: LockedRows; readonly seen: OwnLook; readonly guard: Guard }> {
    // Counted with the first look: one topic after the other would be found missing, each with a look of its own.
    for (const [topic, { most, runs }] of lockRequest.subscribing) {
      if (!crowds.hasRoomFor(runs.size, topic, most)) lockRequest.crowds.set(topic, most)
    }
    await loader.candidates(x, end, lockRequest)
    const lockedOut = await aside.lockedOut(x, lockRequest, lockPolicy)
    for (const id of lockedOut.runs) lockRequest.runs.delete(id)
    for (const name of lockedOut.topics) lockRequest.topics.delete(name)
    const requested = new Set(lockRequest.runs)
    const named = [...lockRequest.topics]
    // Sent together, executed one after the other: the reads see the commits of the earlier lock holders.
    const [{ runs, topics, retained }, seen, looked] = await Promise.all([
      loader.lock(x, end, lockRequest),
      look(),
      loader.look(x, end, lockRequest, lockedOut.runs),
    ])
    // It is wanted all the same, should all of this begin again.
    for (const id of lockedOut.runs) lockRequest.runs.add(id)
    for (const name of lockedOut.topics) lockRequest.topics.add(name)
    assertTopics(named, topics)
    const ownRuns = (seen.locked ?? []).filter(({ id }) => !lockedOut.runs.has(id))
    const own = ownRuns.map((run) => [run.id, run] as const)
    const lockedRows = {
      ...looked,
      requested,
      lockedOut: lockedOut.runs,
      lockedOutTopics: lockedOut.topics,
      runs: new Map([...runs, ...own]),
      topics,
      retained,
    }
    assertLocked(lockedRows, lockedOut.runs)
    return { seen, lockedRows, guard: new Guard(lockedOut) }
  }

  return {
    async perform(x, task) {
      const { end, lockRequest } = task
      let made: Awaited<ReturnType<NonNullable<typeof task.prepare>>> | undefined
      let isPrepared = false
      if (task.lockPolicy === 'pass over') await aside.hurry(x)
      for (;;) {
        try {
          const { lockedRows, seen, guard } = await load(x, task)
          const unitOfWork = task.lend(lockedRows, seen, crowds)
          if (!isPrepared) made = await task.prepare?.(unitOfWork, seen, guard)
          isPrepared = true
          const answer = task.decide(unitOfWork, seen, made, guard)
          guard.assertWhole()
          await writer.write(x, end, unitOfWork)
          return answer
        } catch (error) {
          if (!(error instanceof Missing)) throw error
          error.add(lockRequest)
          lockRequest.tries += 1
          if (lockRequest.tries > mostMissing) throw bug('An exchange never has all that it needs', { end })
          if (!task.inUserTransaction && lockRequest.tries <= mostTries) throw again()
        }
      }
    },
  }
}

/**
 * A topic may go after this transaction has made sure that it is there, and begin anew before it is read: what it keeps then is
 * not read under its lock, and another run may take the same.
 */
function assertTopics(named: readonly string[], locked: LockedRows['topics']): void {
  const gone = named.filter((name) => !locked.has(name))
  if (gone.length === 0) return
  throw new Missing((lockRequest) => {
    for (const name of gone) lockRequest.topics.add(name)
  })
}

/** All waiting runs are locked, at once: not one after the other as the rules come to them. */
function assertLocked({ waits, requested, runs }: LockedRows, lockedOut: ReadonlySet<string>): void {
  const late = new Set<string>()
  for (const [key, list] of waits) {
    for (const { runId, missed } of list) {
      const isCandidate = missed === null || key.startsWith('late ')
      if (isCandidate && !requested.has(runId) && !runs.has(runId) && !lockedOut.has(runId)) late.add(runId)
    }
  }
  if (late.size === 0) return
  throw new Missing((lockRequest) => {
    for (const id of late) lockRequest.runs.add(id)
  })
}

/** The same again, from the start: as after a conflict that the database reports. */
function again(): HoldfastError {
  const cause = Object.assign(new Error('Another transaction came in between.'), { code: '40001' })
  return new HoldfastError('STORE_UNAVAILABLE', 'Others were in the way too often.', { cause })
}
