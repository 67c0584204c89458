// One call on its way through its plan. Every statement has a name, and before each, between two rows of
// one, and before the commit, the driver of the store decides when it goes on: that is where others come in between. What
// the database refuses because of others is tried again from the start, with nothing left of the first try; so is what has
// found a run that it should have locked before.

import { defaultPageLimits, type PageLimits } from '../../../src/core/model/chore.ts'
import { HoldfastError } from '../../../src/core/errors/error.ts'
import type { Clock } from '../../../src/core/runtime/ports.ts'
import type { Hint } from '../../../src/store.ts'
import type { StatementName } from '../statement-plan.ts'
import type { Hints } from '../../../src/core/rules/messages/hints.ts'
import type { Database } from './database.ts'
import { isUniqueViolation, SqlError } from './sql-error.ts'
import type { Tables } from './tables.ts'
import type { Transaction } from './transaction.ts'

/**
 * Ways to break the plan, each of which looks harmless and loses or doubles something:
 *
 * `look-and-lock-in-one`   parking counts the messages in the statement that locks the run
 * `woken-by-messages`      a transition without a lease counts the messages instead of asking whether the run was woken
 * `no-lock-on-deliver`     a sender reads the run without taking it
 * `no-lock-on-watch`       a run that begins to wait on another run, or on a topic, looks at it without taking it
 * `no-begin-again`         a run that is found under the locks and is not locked is written to all the same
 * `look-then-insert`       keys are looked up before they are taken, and no primary key stands behind it
 * `insert-and-look-in-one` who has a key is looked up in the statement that takes it
 * `keys-left-behind`       a run that ends or is removed keeps its keys
 * `keys-freed-early`       a run that is written frees its keys, although it lives
 * `no-fence`               a commit does not ask who holds the run
 * `no-recheck-on-claim`    a claim leases what it picked without judging it anew
 * `limit-before-lock`      a claim picks as many as it wants, and then finds some of them locked
 * `dead-by-absence`        a rescue judges a run anew by whether its holder's session is known, instead of by its holder
 * `lock-and-stamp-in-one`  the sequencer of the feed looks in the statement that locks
 * `read-over-gaps`         a reader of the feed goes on behind entries that its machine does not show yet
 * `beat-behind-a-lock`     a beat moves deadlines in the transaction that keeps the session, behind the transaction that has locked a row
 * `rescue-behind-a-lock`   a rescue that has to notify others of an end waits for all of them, and all others wait with it
 * `no-lock-on-unused-topic` a topic that nobody uses is looked at without being locked, and goes
 * `queue-without-its-lock` a run takes from a queue that went and began anew after the run had made sure that it is there
 * `topic-begins-anew`      a topic that begins again after it went begins at its first position
 * `gone-topics-first`      where a topic begins is looked up before it is made, which may wait for the end of the one before
 * `projection-without-lock` a command judges the row of a projection as it was before others wrote it
 * `end-behind-a-watcher`   an end or a broadcast waits for a stranger that has locked a run which it only notifies
 */
export const mutations = [
  'look-and-lock-in-one',
  'woken-by-messages',
  'no-lock-on-deliver',
  'no-lock-on-watch',
  'no-begin-again',
  'look-then-insert',
  'insert-and-look-in-one',
  'keys-left-behind',
  'keys-freed-early',
  'no-fence',
  'no-recheck-on-claim',
  'limit-before-lock',
  'dead-by-absence',
  'lock-and-stamp-in-one',
  'read-over-gaps',
  'beat-behind-a-lock',
  'rescue-behind-a-lock',
  'no-lock-on-unused-topic',
  'queue-without-its-lock',
  'topic-begins-anew',
  'gone-topics-first',
  'projection-without-lock',
  'end-behind-a-watcher',
] as const

export type Mutation = (typeof mutations)[number]

export interface Parts {
  readonly db: Database
  readonly tables: Tables
  readonly clock: Pick<Clock, 'now'>
  readonly schedule: (statement: StatementName) => Promise<void>
  readonly mutations: ReadonlySet<string>
  readonly hints: Hints
  /** How much one transaction may write for others. */
  readonly pages?: PageLimits
}

/** More tries than this are not bad luck. */
const mostTries = 100

/** A run is to be reached that is not locked: the transaction begins again, and looks for all of them first. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken'
  /** The run that is to be locked the next time, if it is one. */
  readonly runId: string | null

  constructor(message: string, runId: string | null = null) {
    super(message)
    this.runId = runId
  }
}

export class Execution {
  readonly tables: Tables
  readonly hints: Hint[] = []
  /** An earlier try has found others whom it had not locked. */
  readonly isOvertaken: boolean
  /** Runs among them: a look without locks need not come to them, because it does not know who cannot be had. */
  readonly met: ReadonlySet<string>
  private readonly parts: Parts
  private readonly tx: Transaction

  constructor(parts: Parts, tx: Transaction, isOvertaken = false, met: ReadonlySet<string> = new Set()) {
    this.met = met
    this.parts = parts
    this.tables = parts.tables
    this.tx = tx
    this.isOvertaken = isOvertaken
  }

  /** Store time. What depends on it is read when the rows are locked, so that no run's time runs backwards. */
  now(): number {
    return this.parts.clock.now()
  }

  get pages(): PageLimits {
    return this.parts.pages ?? defaultPageLimits
  }

  /** The next number of the feed. */
  nextNumber(): number {
    return this.parts.db.nextNumber()
  }

  is(mutation: Mutation): boolean {
    return this.parts.mutations.has(mutation)
  }

  /** Executes one statement. */
  async run<Answer>(
    name: StatementName,
    statement: (tx: Transaction) => Answer | Promise<Answer>,
  ): Promise<Awaited<Answer>> {
    const { parts, tx } = this
    tx.between = () => parts.schedule(name)
    await parts.schedule(name)
    return await statement(tx)
  }
}

/** Statements that see, each on its own, what was committed before it. */
export async function reading<Answer>(parts: Parts, work: (x: Execution) => Promise<Answer>): Promise<Answer> {
  const tx = parts.db.begin('read')
  try {
    return await work(new Execution(parts, tx))
  } finally {
    tx.rollBack()
  }
}

/** All of the work or nothing, ended by the statement of that name. Tried again when others were in the way. */
export async function transaction<Answer>(
  parts: Parts,
  end: StatementName,
  work: (x: Execution) => Promise<Answer>,
  isFinal: (error: SqlError) => boolean = () => false,
): Promise<Answer> {
  let cause: unknown
  let isOvertaken = false
  const met = new Set<string>()
  for (let tries = 0; tries < mostTries; tries += 1) {
    const tx = parts.db.begin(end)
    const x = new Execution(parts, tx, isOvertaken, met)
    try {
      const answer = await work(x)
      await parts.schedule(end)
      for (const machine of tx.machines()) {
        tx.publish(machine)
        await parts.schedule(end)
      }
      tx.commit()
      for (const hint of x.hints) parts.hints.give(hint)
      return answer
    } catch (error) {
      tx.rollBack()
      isOvertaken ||= error instanceof Overtaken
      if (error instanceof Overtaken && error.runId !== null) met.add(error.runId)
      if (!(error instanceof Overtaken) && (!(error instanceof SqlError) || isFinal(error))) throw error
      cause = error
    }
  }
  throw new HoldfastError('STORE_UNAVAILABLE', `The database refused this ${mostTries} times.`, { cause })
}

/**
 * One transaction for many. If a unique index refuses the whole, each gets its own, so that only the one is refused which
 * is in the way; that one alone is tried again, and its look will show who was before it.
 */
export async function batch<Item, Answer>(
  parts: Parts,
  end: StatementName,
  items: readonly Item[],
  work: (x: Execution, items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<readonly Answer[]> {
  if (items.length === 0) return []
  try {
    return await transaction(
      parts,
      end,
      (x) => work(x, items),
      (error) => items.length > 1 && isUniqueViolation(error),
    )
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
  }
  const answers: Answer[] = []
  for (const item of items) answers.push(...(await batch(parts, end, [item], work)))
  return answers
}
