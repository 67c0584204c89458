// A connection while we have it from its pool. Whoever has it hears alone when it breaks, and what nobody hears ends the
// process. A network may also go away without a word: then nothing is ever answered, and no timeout of the database helps,
// for it believes that nobody asks. So a connection on which no answer comes for as long as the database itself may take
// is torn down, and all that waits for it fails as if it had broken.

import { HoldfastError } from '../../core/error.ts'
import type { Row, Value } from './execution.ts'
import { isLost, sqlStateOf } from './sql-state.ts'

/** What we use of a client of `pg`. */
export interface ClientLike {
  /** True if statements may be sent without waiting for the answers of those before. */
  readonly pipeline?: boolean
  query(config: QueryConfig): Promise<QueryResult>
  /** Gives it back; with an error, it is not used again. */
  release(error?: Error | boolean): void
  on?(event: 'error', heard: (error: Error) => void): unknown
  off?(event: 'error', heard: (error: Error) => void): unknown
  /** What it is connected by. */
  readonly connection?: { readonly stream?: { destroy(error?: Error): unknown } }
}

interface QueryResult {
  readonly rows: readonly Row[]
  readonly command: string
}

/** What we use of a `Pool` of `pg`. */
export interface PoolLike {
  connect(): Promise<ClientLike>
  end(): Promise<void>
}

interface QueryConfig {
  readonly text: string
  readonly values?: readonly Value[]
  readonly name?: string
  readonly types?: { getTypeParser(oid: number, format?: string): (text: string) => unknown }
}

export class Line {
  readonly client: ClientLike
  private readonly patienceMs: number
  private unanswered = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(client: ClientLike, patienceMs: number) {
    this.client = client
    this.patienceMs = patienceMs
  }

  /** True if statements may be sent without waiting for the answers of those before. */
  get pipeline(): boolean {
    return this.client.pipeline === true
  }

  async query(config: QueryConfig): Promise<QueryResult> {
    this.unanswered += 1
    this.timer ??= setTimeout(this.tearDown, this.patienceMs)
    try {
      return await this.client.query(config)
    } finally {
      this.unanswered -= 1
      if (this.unanswered > 0) this.timer?.refresh()
      else this.rest()
    }
  }

  private rest(): void {
    clearTimeout(this.timer)
    this.timer = undefined
  }

  /** The driver would say farewell first, and wait for what is under way. */
  private readonly tearDown = (): void => {
    const silent = new Error(`nothing was answered for ${this.patienceMs} ms`)
    this.client.connection?.stream?.destroy(silent)
  }
}

/** Does something with a connection from a pool. One that may be in the middle of something is not used again. */
export async function onLine<Answer>(
  pool: PoolLike,
  patienceMs: number,
  work: (line: Line) => Promise<Answer>,
): Promise<Answer> {
  const client = await pool.connect()
  client.on?.('error', ignore)
  let broken: Error | undefined
  try {
    return await work(new Line(client, patienceMs))
  } catch (error) {
    // Without a state it is not the database that answered, and who knows what the connection is in the middle of.
    const state = sqlStateOf(error)
    if (isLost(state) || (state === undefined && !(error instanceof HoldfastError))) broken = error as Error
    throw error
  } finally {
    client.release(broken)
    client.off?.('error', ignore)
  }
}

/** What is under way fails with the same error. */
function ignore(): void {}
