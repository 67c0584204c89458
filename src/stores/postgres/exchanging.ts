// One transaction in which something passes between runs: locks, then looks, then lets the rules decide in memory, then
// writes. If they need somebody who is not locked, a transaction of ours is rolled back and begins again with that one, so
// that everybody takes locks in the same order. In a transaction of a user that cannot be: there, and where others keep
// coming in between, what is found late is locked late, and the database breaks a deadlock if it comes to one.

import { bug, HoldfastError } from '../../core/error.ts'
import type { Run } from '../../core/run.ts'
import { PostgresBooks, type Found } from './books.ts'
import { booksLoading } from './books-loading.ts'
import type { Ender } from './books-statements.ts'
import { booksWriting } from './books-writing.ts'
import type { Dialect } from './dialect.ts'
import type { Execution } from './execution.ts'
import { Missing, type Wants } from './wants.ts'

/** What a look of one's own must tell. */
export interface Seen {
  readonly now: number
  /** Rows that it has locked itself. */
  readonly locked?: readonly Run[]
}

export interface Deal<OwnLook extends Seen, Made, Answer> {
  readonly end: Ender
  readonly wants: Wants
  /** The transaction is that of a user. */
  readonly within: boolean
  /** Looks for what only this method needs. It is executed under the locks. */
  look(): Promise<OwnLook>
  /** What has to be written before the rest can be decided; never twice. */
  prepare?(books: PostgresBooks, seen: OwnLook): Promise<Made>
  /** Decides all of it. It may be called again, with other books. */
  decide(books: PostgresBooks, seen: OwnLook, made: Made | undefined): Answer
}

export interface Exchanging {
  perform<OwnLook extends Seen, Made, Answer>(x: Execution, deal: Deal<OwnLook, Made, Answer>): Promise<Answer>
}

/** After so many times whoever is found late is locked late: it comes to an end, however many come in between. */
const mostTries = 4

/** Each time something is missing, it is there the next time. */
const mostMissing = 100

export function exchanging(dialect: Dialect): Exchanging {
  const loading = booksLoading(dialect)
  const writing = booksWriting(dialect)

  async function load<OwnLook extends Seen>(
    x: Execution,
    { end, wants, look }: Pick<Deal<OwnLook, unknown, unknown>, 'end' | 'wants' | 'look'>,
  ): Promise<{ readonly found: Found; readonly seen: OwnLook }> {
    await loading.candidates(x, end, wants)
    const asked = new Set(wants.runs)
    // Sent together, executed one after the other: the looks see what whoever had the locks has committed.
    const [{ runs, topics }, seen, looked] = await Promise.all([
      loading.lock(x, end, wants),
      look(),
      loading.look(x, end, wants),
    ])
    const own = (seen.locked ?? []).map((run) => [run.id, run] as const)
    return { seen, found: { ...looked, asked, runs: new Map([...runs, ...own]), topics } }
  }

  return {
    async perform(x, deal) {
      const { end, wants } = deal
      let made: Awaited<ReturnType<NonNullable<typeof deal.prepare>>> | undefined
      let isPrepared = false
      for (;;) {
        const { found, seen } = await load(x, deal)
        const books = new PostgresBooks(found, seen.now)
        try {
          assertLocked(found)
          if (!isPrepared) made = await deal.prepare?.(books, seen)
          isPrepared = true
          const answer = deal.decide(books, seen, made)
          await writing.write(x, end, books)
          return answer
        } catch (error) {
          if (!(error instanceof Missing)) throw error
          error.add(wants)
          wants.tries += 1
          if (wants.tries > mostMissing) throw bug('An exchange never has all that it needs', { end })
          if (!deal.within && wants.tries <= mostTries) throw again()
        }
      }
    },
  }
}

/** All who wait are locked, at once: not one after the other as the rules come to them. */
function assertLocked({ waits, asked, runs }: Found): void {
  const late = new Set<string>()
  for (const list of waits.values()) {
    for (const { runId } of list) if (!asked.has(runId) && !runs.has(runId)) late.add(runId)
  }
  if (late.size === 0) return
  throw new Missing((wants) => {
    for (const id of late) wants.runs.add(id)
  })
}

/** The same again, from the start: as if the database had said that others were in the way. */
function again(): HoldfastError {
  const cause = Object.assign(new Error('Somebody has come in between.'), { code: '40001' })
  return new HoldfastError('STORE_UNAVAILABLE', 'Others were in the way too often.', { cause })
}
