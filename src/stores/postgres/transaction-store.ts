// The store inside a transaction that a user has begun. No statement here raises an error of the database on purpose, because
// that would abort their transaction: obstacles are found by statements that cannot fail. Hints go by a NOTIFY of the same
// transaction, so that other processes receive them when, and only when, it was committed.

import { startWithoutLeases } from '../../core/rules/run-start.ts'
import { withoutLeases, type Transition } from '../../core/model/transition.ts'
import type {
  Committed,
  Delivered,
  Loaded,
  LoadRequest,
  NewBroadcast,
  NewMessage,
  ProjectionAnswer,
  ProjectionCommand,
  RunStart,
  Started,
  ControlResult,
  ControlCommand,
  TransactionStore,
} from '../../store.ts'
import type { SqlHandle, SqlRow } from '../sql-handle.ts'
import { isMessage, lockRequestOfSending, type DeliverQueries } from './exchange/deliver.ts'
import type { Dialect } from './dialect.ts'
import type { Execution, DetailedHint } from './execution.ts'
import { startDecided, type DecidedStartParts } from './start/decided-start.ts'
import { lockRequestOf, type LockedCommitQueries } from './commit/locked-commit.ts'
import { assertMarked, markTransaction } from './connection/lent-transaction.ts'
import type { ProjectionQueries } from './commit/projections.ts'
import type { ReadQueries } from './read/read.ts'
import { assertCatalogFirst, pathRead } from './connection/search-path.ts'
import { shardOfRun } from './schema/shards.ts'
import { isAborted, sqlStateOf, translated, translatedForUser } from './connection/sql-state.ts'
import { HandleExecution, transactionIdOf, transactionIdRead } from './transaction-guard.ts'
import type { ControlQueries } from './exchange/control.ts'
import { LockRequest } from './exchange/lock-request.ts'

export interface TransactionStoreParts extends DecidedStartParts {
  readonly dialect: Dialect
  readonly lockedCommitQueries: LockedCommitQueries
  readonly deliverQueries: DeliverQueries
  readonly controlQueries: ControlQueries
  readonly readQueries: ReadQueries
  readonly projectionQueries: ProjectionQueries
}

/** Sends hints with the transaction; null if none are sent. Answers with the id of the transaction, if it sent something. */
export type NotifyInTransaction =
  ((handle: SqlHandle, hints: readonly DetailedHint[]) => Promise<string | undefined>) | null

export class PostgresTransactionStore implements TransactionStore {
  private readonly parts: TransactionStoreParts
  private readonly handle: SqlHandle
  private readonly notify: NotifyInTransaction
  /** Called before the first transition, in a transaction of ours: nothing comes after it but the end of the transaction. */
  private readonly onCommit: (() => void) | null
  /**
   * The id of the user's transaction, once it is certain that names are looked up in Postgres first; null before the first
   * call.
   */
  private id: Promise<string> | null = null

  /** A transaction of ours decides its outcome with the first transition, and has our search path; any other is a user's. */
  constructor(
    parts: TransactionStoreParts,
    handle: SqlHandle,
    notify: NotifyInTransaction,
    onCommit: (() => void) | null = null,
  ) {
    this.parts = parts
    this.handle = handle
    this.notify = notify
    this.onCommit = onCommit
  }

  mark(): Promise<void> {
    return markTransaction(this.handle)
  }

  async assertMarked(isolation?: 'serializable'): Promise<void> {
    this.id = Promise.resolve(theirIdOf(await assertMarked(this.handle, isolation)))
    await this.id
  }

  recognise(): void {
    // The call that awaits it gets the error.
    this.recognised().catch(() => undefined)
  }

  /** Nothing is set in a transaction of the user's, so a path that is not safe is refused before anything is sent by it. */
  private async recognised(): Promise<string | null> {
    if (this.onCommit !== null) return null
    this.id ??= this.handle.query(`select ${pathRead}, ${transactionIdRead}`, []).then(([row]) => theirIdOf(row))
    try {
      return await this.id
    } catch (error) {
      this.id = null
      throw error
    }
  }

  /** One after the other: only their own transaction sees the effects. */
  start(runs: readonly RunStart[]): Promise<readonly Started[]> {
    const unleased = runs.map(startWithoutLeases)
    return this.perform((x) => startDecided(this.parts, x, unleased, new Map(), { inUserTransaction: true }))
  }

  commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    this.onCommit?.()
    const unknown: Committed = { outcome: 'refused', reason: 'not-found' }
    return this.each(
      transitions.map((one) => withoutLeases(one)),
      unknown,
      (x, shard, one) =>
        this.parts.lockedCommitQueries.commit({
          x,
          shard,
          transitions: [one],
          lockRequest: lockRequestOf([one], true),
          how: { inUserTransaction: true },
        }),
    )
  }

  deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    return this.perform(async (x) => {
      const answers: Delivered[] = []
      for (const one of messages) answers.push((await this.deliverOne(x, one))[0] as Delivered)
      return answers
    })
  }

  control(requests: readonly ControlCommand[]): Promise<readonly ControlResult[]> {
    const unknown: ControlResult = { outcome: 'not-found' }
    return this.each(requests, unknown, (x, shard, one) =>
      this.parts.controlQueries.control(x, shard, [one], new LockRequest(), { inUserTransaction: true }),
    )
  }

  commandProjection(command: ProjectionCommand): Promise<ProjectionAnswer> {
    return this.perform((x) => this.parts.projectionQueries.command(x, command))
  }

  load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]> {
    return this.perform((x) => this.parts.readQueries.load(x, requests, mostBytes))
  }

  private async deliverOne(x: Execution, one: NewMessage | NewBroadcast): Promise<readonly Delivered[]> {
    const { deliverQueries, dialect } = this.parts
    if (isMessage(one)) {
      const shard = shardOfRun(dialect, one.runId)
      if (shard === undefined) return [{ outcome: 'target-not-found' }]
      const answers = await deliverQueries.put(x, shard, [one])
      if (answers !== null) return answers
    }
    return deliverQueries.exchange(x, [one], lockRequestOfSending([one]), { inUserTransaction: true })
  }

  private each<Item extends { readonly runId: string }, Answer>(
    items: readonly Item[],
    unknown: Answer,
    send: (x: Execution, shard: number, item: Item) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    return this.perform(async (x) => {
      const answers: Answer[] = []
      for (const item of items) {
        const shard = shardOfRun(this.parts.dialect, item.runId)
        answers.push(shard === undefined ? unknown : ((await send(x, shard, item))[0] as Answer))
      }
      return answers
    })
  }

  private async perform<Answer>(work: (x: Execution) => Promise<Answer>): Promise<Answer> {
    let x: HandleExecution | null = null
    try {
      x = new HandleExecution(this.handle, await this.recognised())
      const answer = await work(x)
      await x.assertInside(x.hints.length > 0 ? await this.notify?.(this.handle, x.hints) : undefined)
      return answer
    } catch (error) {
      // Statements that are sent together fail together, and a caller of Promise.all may first get an error that only
      // followed from the failure.
      const cause = isAborted(sqlStateOf(error)) ? (x?.failure ?? error) : error
      throw cause === (x?.failure ?? error) && this.onCommit === null ? translatedForUser(cause) : translated(cause)
    }
  }
}

function theirIdOf(row: SqlRow | undefined): string {
  assertCatalogFirst(String(row?.['path']), 'this transaction has')
  return transactionIdOf(row)
}
