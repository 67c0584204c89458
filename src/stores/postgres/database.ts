// The way to the database: connections from a pool, statements prepared once on each, transactions sent in as few round
// trips as their answers allow, and what others were in the way of tried again.
//
// Connections that this store opened itself carry its settings from their start. On any other (the user's own pool, or one
// behind a pooler, which gives every transaction another connection) nothing may be left behind, so there every statement
// stands in a transaction that begins with the settings.

import { HoldfastError } from '../../core/error.ts'
import type { StatementName } from '../statement-plan.ts'
import type { Statement } from './dialect.ts'
import type { AloneOptions, Execution, Row, Told, Transactions, Value } from './execution.ts'
import { onLine, type ClientLike, type Line, type PoolLike } from './line.ts'
import { isAborted, isLocked, isStrangeToNames, isTransient, sqlStateOf, translated } from './sql-state.ts'

export type { ClientLike, PoolLike } from './line.ts'

export interface DatabaseOptions {
  readonly pool: PoolLike
  /** Settings for every transaction; null if the connections have them from their start. */
  readonly settings: string | null
  /** Takes back, for one transaction, what would make a user's own statements slow. */
  readonly lentSettings: string
  readonly random: () => number
  /** How long a call tries again what others were in the way of. */
  readonly storageMs: number
  readonly monotonic: () => number
  /** Told of every statement of the plan as it is sent: for tests that compare. */
  readonly onStatement?: ((name: StatementName) => void) | undefined
  /** Told what was committed, to tell others. */
  readonly onHints: (hints: readonly Told[]) => void
}

/** An int8 is a number to us: no time, token or position comes near to 2^53. Everything else is text, number or boolean. */
const parsers = {
  getTypeParser: (oid: number) => (oid === 20 || oid === 21 || oid === 23 ? Number : oid === 16 ? isTrue : asText),
}

function isTrue(text: string): boolean {
  return text === 't'
}

function asText(text: string): string {
  return text
}

/** A plan that is kept was made for the tables of then. It is made anew after a second, then ever less often. */
const plansMs = { first: 1_000, most: 60_000 }

export class Database implements Transactions {
  private readonly options: DatabaseOptions
  private readonly patienceMs: number
  /** When the plans of a connection are made anew, and for how long they stay then. */
  private readonly plans = new WeakMap<ClientLike, { readonly until: number; readonly ms: number }>()
  private namesAllowed = true
  private closed = false

  constructor(options: DatabaseOptions) {
    this.options = options
    this.patienceMs = patienceFor(options.storageMs)
  }

  /** One statement by itself, or several that do not depend on one another; each of ours writes once, and all or nothing. */
  alone<Answer>(
    work: (x: Execution) => Promise<Answer>,
    end: StatementName | null = null,
    { patient = true }: AloneOptions = {},
  ): Promise<Answer> {
    const { settings, onStatement } = this.options
    return this.attempt(async (line) => {
      const x = new LineExecution(line, this)
      if (settings !== null) return this.within(line, x, end, work)
      const answer = await work(x)
      if (end !== null) onStatement?.(end)
      return { x, answer }
    }, patient)
  }

  /** All of the work or nothing. */
  transaction<Answer>(end: StatementName, work: (x: Execution) => Promise<Answer>): Promise<Answer> {
    return this.attempt((line) => this.within(line, new LineExecution(line, this), end, work))
  }

  /** A transaction on a connection that a user writes with. Their plans are made as they would be elsewhere. */
  async lend<Answer>(
    work: (client: ClientLike, x: Execution) => Promise<Answer>,
    patienceMs = this.patienceMs,
  ): Promise<Answer> {
    const lent = async (line: Line): Promise<Settled<Outcome<Answer>>> => {
      const x = new LineExecution(line, this)
      await line.query({ text: 'begin' })
      await line.query({ text: this.options.lentSettings })
      const answer = await work(line.client, x).then(
        (result) => ({ result }),
        // Theirs goes to them as it is, and says nothing of the connection. One that is gone rolls back by itself.
        (error: unknown) => ({ error }),
      )
      if ('error' in answer) await line.query({ text: 'rollback' }).catch(() => undefined)
      else if ((await line.query({ text: 'commit' })).command !== 'COMMIT') {
        throw new HoldfastError('STORE_UNAVAILABLE', 'The transaction was rolled back: a statement in it had failed.')
      }
      return { x, answer }
    }
    const outcome = await this.once(lent, patienceMs)
    if ('error' in outcome) {
      if (isStrangeToNames(sqlStateOf(outcome.error))) this.namesAllowed = false
      throw outcome.error
    }
    return outcome.result
  }

  /** Refuses everything from here on. False if it did so already. */
  close(): boolean {
    const wasOpen = !this.closed
    this.closed = true
    return wasOpen
  }

  assertOpen(): void {
    if (this.closed) throw new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
  }

  /** Sends a statement on a connection. */
  send(line: Line, { text, name, plan }: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    const { onStatement } = this.options
    if (onStatement !== undefined) for (const planned of plan) onStatement(planned)
    const config = { text, values, types: parsers }
    const sent = line.query(this.namesAllowed ? { ...config, name } : config)
    return sent.then(({ rows }) => rows)
  }

  private async within<Answer>(
    line: Line,
    x: LineExecution,
    end: StatementName | null,
    work: (x: Execution) => Promise<Answer>,
  ): Promise<Settled<Answer>> {
    const { settings, onStatement } = this.options
    try {
      for (const text of settings === null ? ['begin'] : ['begin', settings]) {
        const sent = line.query({ text })
        // What comes after it fails as well, and tells of it.
        if (line.pipeline) void x.note(sent)
        else await sent
      }
      const answer = await work(x)
      if (end !== null) onStatement?.(end)
      const { command } = await line.query({ text: 'commit' })
      if (command === 'COMMIT') return { x, answer }
      throw new HoldfastError('BUG', `A transaction that nobody had objected to was ended with ${command}.`)
    } catch (error) {
      // A connection that is gone rolls back by itself.
      await line.query({ text: 'rollback' }).catch(() => undefined)
      throw isAborted(sqlStateOf(error)) ? (x.failure ?? error) : error
    }
  }

  /** Tries again what others were in the way of, as long as the storage timeout allows. */
  private async attempt<Answer>(work: (line: Line) => Promise<Settled<Answer>>, patient = true): Promise<Answer> {
    const { monotonic, storageMs, random } = this.options
    const from = monotonic()
    for (let tries = 0; ; tries += 1) {
      try {
        return await this.once(work)
      } catch (error) {
        const state = sqlStateOf((error as { readonly cause?: unknown }).cause)
        const isWorthIt = isTransient(state) || isStrangeToNames(state)
        if (!isWorthIt || (!patient && isLocked(state)) || monotonic() - from > storageMs) throw error
        if (tries > 0) await pause(random() * Math.min(2 ** tries, 100))
      }
    }
  }

  private async once<Answer>(
    work: (line: Line) => Promise<Settled<Answer>>,
    patienceMs = this.patienceMs,
  ): Promise<Answer> {
    this.assertOpen()
    try {
      const { x, answer } = await onLine(this.options.pool, patienceMs, async (line) => {
        const renewed = this.renewPlans(line)
        if (!line.pipeline) await renewed
        return work(line)
      })
      if (x.hints.length > 0) this.options.onHints(x.hints)
      return answer
    } catch (error) {
      if (isStrangeToNames(sqlStateOf(error))) this.namesAllowed = false
      throw translated(error)
    }
  }

  /** Goes out before the work, which need not wait for it. Statistics that come later renew plans, too, but much later. */
  private async renewPlans(line: Line): Promise<void> {
    const now = this.options.monotonic()
    const known = this.plans.get(line.client)
    if (known !== undefined && now < known.until) return
    const ms = Math.min((known?.ms ?? plansMs.first / 2) * 2, plansMs.most)
    this.plans.set(line.client, { until: now + ms, ms })
    // A database that keeps no plans knows no such statement.
    if (known !== undefined) await line.query({ text: 'discard plans' }).catch(() => undefined)
  }
}

/** The database gives up what takes it longer than the storage timeout, and says so. This is for when it cannot. */
export function patienceFor(storageMs: number): number {
  return storageMs + 1_000
}

/** What came of something that may fail for reasons of its own. */
type Outcome<Answer> = { readonly result: Answer } | { readonly error: unknown }

interface Settled<Answer> {
  readonly x: Execution
  readonly answer: Answer
}

class LineExecution implements Execution {
  readonly hints: Told[] = []
  private readonly line: Line
  private readonly database: Database
  private last: Promise<unknown> = Promise.resolve()
  /** What failed first. What is sent together fails together, and who waits for all hears of any. */
  failure: unknown

  constructor(line: Line, database: Database) {
    this.line = line
    this.database = database
  }

  execute(statement: Statement, values: readonly Value[]): Promise<readonly Row[]> {
    if (this.line.pipeline) return this.note(this.database.send(this.line, statement, values))
    // A library that takes one statement at a time gets one at a time.
    const answer = this.note(this.last.then(() => this.database.send(this.line, statement, values)))
    this.last = answer.catch(() => undefined)
    return answer
  }

  /** Remembers how it fails, if nothing failed before. */
  note<Answer>(sent: Promise<Answer>): Promise<Answer> {
    sent.catch((error: unknown) => (this.failure ??= error))
    return sent
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
