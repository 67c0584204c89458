// The store inside a transaction that is already open, on the connection that it is open on. Each call is a savepoint, so
// that one that fails leaves nothing behind and the transaction usable. Hints gather until somebody knows that it is over.

import type { Transition } from '../../core/transition.ts'
import type {
  Committed,
  Delivered,
  Hint,
  Loaded,
  LoadRequest,
  NewBroadcast,
  NewMessage,
  NewRun,
  Started,
  Steered,
  SteerRequest,
  TransactionStore,
} from '../../store.ts'
import { Batch } from './batch.ts'
import { SqliteBooks } from './books.ts'
import type { CallQueue } from './call-queue.ts'
import { commitOne } from './committing.ts'
import type { Connection } from './connection.ts'
import { deliverOne } from './delivering.ts'
import { load } from './reading.ts'
import { startRuns } from './starting.ts'
import { steerRuns } from './steering.ts'

export interface WithinOptions {
  readonly db: Connection
  readonly now: () => number
  /** Where a call waits: for another user's transaction in this process, or for who holds the lock that this one lacks. */
  readonly calls: CallQueue
  /** Called right before each call: throws if the transaction is not open any more. */
  readonly enter: () => void
}

export class SqliteWithin implements TransactionStore {
  readonly hints: Hint[] = []
  private readonly options: WithinOptions

  constructor(options: WithinOptions) {
    this.options = options
  }

  start(runs: readonly NewRun[]): Promise<readonly Started[]> {
    return this.write((batch) => startRuns(new SqliteBooks(batch), runs))
  }

  commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    return this.write((batch) => transitions.map((one) => commitOne(batch, one)))
  }

  deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    return this.write((batch) => messages.map((message) => deliverOne(batch, message)))
  }

  steer(requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
    return this.write((batch) => steerRuns(batch, requests))
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
