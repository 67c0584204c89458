// The store inside a transaction that a user has begun. Nothing here raises an error of the database on purpose, because that
// would spoil their transaction: what is in the way is found by statements that cannot fail. Others are told by a NOTIFY of
// the same transaction, so that they hear of it when, and only when, it was committed.

import type { Transition } from '../../core/transition.ts'
import type {
  Committed,
  Delivered,
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
import type { SqlHandle } from '../sql-handle.ts'
import { isLetter, wantsOfSending, type Delivering } from './delivering.ts'
import type { Dialect, Statement } from './dialect.ts'
import type { Execution, Row, Told, Value } from './execution.ts'
import { wantsOf, type Judging } from './judging.ts'
import { assertMarked, markTransaction } from './lent-transaction.ts'
import type { Reading } from './reading.ts'
import { assertCatalogFirst, pathRead } from './search-path.ts'
import { shardOfRun } from './shards.ts'
import { startInOrder, type StartingParts } from './ordered-starting.ts'
import { isAborted, sqlStateOf, translated } from './sql-state.ts'
import type { Steering } from './steering.ts'
import { Wants } from './wants.ts'

export interface WithinParts extends StartingParts {
  readonly dialect: Dialect
  readonly judging: Judging
  readonly delivering: Delivering
  readonly steering: Steering
  readonly reading: Reading
}

/** Tells others with the transaction; null if nobody is told of anything. */
export type TellWithin = ((handle: SqlHandle, hints: readonly Told[]) => Promise<void>) | null

export class PostgresWithin implements TransactionStore {
  private readonly parts: WithinParts
  private readonly handle: SqlHandle
  private readonly tell: TellWithin
  /** Called before the first transition, in a transaction of ours: whoever commits one is done with everything else. */
  private readonly onCommit: (() => void) | null
  /** Settles when it is certain that names are looked for in Postgres first; null while nobody has looked. */
  private path: Promise<void> | null = null

  /** A transaction of ours says what becomes of it with the first transition, and searches what we want; any other is a user's. */
  constructor(parts: WithinParts, handle: SqlHandle, tell: TellWithin, onCommit: (() => void) | null = null) {
    this.parts = parts
    this.handle = handle
    this.tell = tell
    this.onCommit = onCommit
  }

  mark(): Promise<void> {
    return markTransaction(this.handle)
  }

  async assertMarked(isolation?: 'serializable'): Promise<void> {
    assertTheirs(await assertMarked(this.handle, isolation))
    this.path = Promise.resolve()
  }

  /** Nothing is set in a transaction of the user's, so a path that is not safe is refused before anything is sent by it. */
  private assertPath(): Promise<void> {
    if (this.onCommit !== null) return Promise.resolve()
    this.path ??= this.handle.query(`select ${pathRead}`, []).then(([row]) => assertTheirs(row?.['path']))
    return this.path
  }

  /** One after the other: of what they do, only their own transaction knows. */
  start(runs: readonly NewRun[]): Promise<readonly Started[]> {
    const unleased = runs.map((run) => ({ ...run, lease: null }))
    return this.perform((x) => startInOrder(this.parts, x, unleased))
  }

  commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    this.onCommit?.()
    const unknown: Committed = { outcome: 'refused', reason: 'not-found' }
    return this.each(transitions, unknown, (x, shard, one) =>
      this.parts.judging.commit(x, shard, [one], wantsOf([one]), { within: true }),
    )
  }

  deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    return this.perform(async (x) => {
      const answers: Delivered[] = []
      for (const one of messages) answers.push((await this.deliverOne(x, one))[0] as Delivered)
      return answers
    })
  }

  steer(requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
    const unknown: Steered = { outcome: 'not-found' }
    return this.each(requests, unknown, (x, shard, one) =>
      this.parts.steering.steer(x, shard, [one], new Wants(), { within: true }),
    )
  }

  load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]> {
    return this.perform((x) => this.parts.reading.load(x, requests, mostBytes))
  }

  private async deliverOne(x: Execution, one: NewMessage | NewBroadcast): Promise<readonly Delivered[]> {
    const { delivering, dialect } = this.parts
    if (isLetter(one)) {
      const shard = shardOfRun(dialect, one.runId)
      if (shard === undefined) return [{ outcome: 'target-not-found' }]
      const answers = await delivering.put(x, shard, [one])
      if (answers !== null) return answers
    }
    return delivering.exchange(x, [one], wantsOfSending([one]), { within: true })
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
    const x = new HandleExecution(this.handle)
    try {
      await this.assertPath()
      const answer = await work(x)
      if (x.hints.length > 0) await this.tell?.(this.handle, x.hints)
      return answer
    } catch (error) {
      // What is sent together fails together, and who waits for all may hear first of what only followed from the failure.
      throw translated(isAborted(sqlStateOf(error)) ? (x.failure ?? error) : error)
    }
  }
}

function assertTheirs(path: unknown): void {
  assertCatalogFirst(String(path), 'this transaction has')
}

class HandleExecution implements Execution {
  readonly hints: Told[] = []
  /** What failed first. */
  failure: unknown
  private readonly handle: SqlHandle

  constructor(handle: SqlHandle) {
    this.handle = handle
  }

  execute({ text }: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    const answer = this.handle.query(text, values)
    answer.catch((error: unknown) => (this.failure ??= error))
    return answer
  }
}
