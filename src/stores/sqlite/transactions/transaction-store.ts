// The store inside a transaction that is already open, on its connection. Each call is a savepoint, so that one that fails
// leaves nothing behind and the transaction usable. Hints gather until the end of the transaction is known.

import { startWithoutLeases } from '../../../core/rules/run-start.ts'
import { withoutLeases, type Transition } from '../../../core/model/transition.ts'
import type {
  Committed,
  Delivered,
  Hint,
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
} from '../../../store.ts'
import { Batch } from '../write/batch.ts'
import type { CallQueue } from '../driver/call-queue.ts'
import { commitOne, startAll } from '../write/commit.ts'
import type { Connection } from '../driver/connection.ts'
import { deliverOne } from '../write/deliver.ts'
import { load } from '../read/read.ts'
import { controlRuns } from '../write/control.ts'
import { commandProjection } from '../write/projections.ts'

export interface TransactionStoreOptions {
  readonly db: Connection
  readonly now: () => number
  /**
   * Where a call waits: for another user's transaction in this process, or for the holder of the lock that this one lacks.
   */
  readonly calls: CallQueue
  /** Called right before each call: throws if the transaction is not open any more. */
  readonly enter: () => void
}

export class SqliteTransactionStore implements TransactionStore {
  readonly hints: Hint[] = []
  private readonly options: TransactionStoreOptions

  constructor(options: TransactionStoreOptions) {
    this.options = options
  }

  start(runs: readonly RunStart[]): Promise<readonly Started[]> {
    return this.write((batch) => startAll(batch, runs.map(startWithoutLeases)))
  }

  commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    return this.write((batch) => transitions.map((one) => commitOne(batch, withoutLeases(one))))
  }

  deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    return this.write((batch) => messages.map((message) => deliverOne(batch, message)))
  }

  control(requests: readonly ControlCommand[]): Promise<readonly ControlResult[]> {
    return this.write((batch) => controlRuns(batch, requests))
  }

  commandProjection(command: ProjectionCommand): Promise<ProjectionAnswer> {
    const { db, now } = this.options
    return this.write(() => commandProjection(db, command, now()))
  }

  async load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]> {
    const { db, calls, enter } = this.options
    return calls.enter(() => {
      enter()
      return db.read(() => load(db, requests, mostBytes))
    })
  }

  private async write<Answer>(work: (batch: Batch) => Answer): Promise<Answer> {
    const { db, now, calls, enter } = this.options
    return calls.enter(() => {
      enter()
      return db.savepoint(() => {
        const batch = new Batch(db, now(), true)
        const answer = work(batch)
        batch.write()
        for (const hint of batch.hints) this.hints.push(hint)
        return answer
      })
    })
  }
}
