// One transaction in which something passes between runs: locks, then looks, then lets the rules decide in memory, then
// writes. If they need somebody who is not locked, a transaction of ours is rolled back and begins again with that one, so
// that everybody takes locks in the same order. In a transaction of a user that cannot be: there, and where others keep
// coming in between, what is found late is locked late, and the database breaks a deadlock if it comes to one.
//
// A transaction that passes over what somebody else has locked has not got that, nor runs that a policy refuses. The rules go on without runs that only get
// something, and leave those to a chore. Where they come to what they cannot do without, they are stopped as where something is
// missing: what they were about to decide is set aside.

import { bug, HoldfastError } from '../../core/error.ts'
import type { Run } from '../../core/run.ts'
import { Crowds } from '../crowds.ts'
import type { PostgresBooks } from './books.ts'
import { booksLoading } from './books-loading.ts'
import type { Ender } from './books-statements.ts'
import { booksWriting } from './books-writing.ts'
import type { Dialect } from './dialect.ts'
import type { Execution } from './execution.ts'
import type { Found } from './found.ts'
import type { RefusedOthers } from './refused-others.ts'
import { Guard, settingAside, type Way } from './set-aside.ts'
import { Missing, type Wants } from './wants.ts'

/** What a look of one's own must tell. */
export interface Seen {
  readonly now: number
  /** Rows that it has locked itself. */
  readonly locked?: readonly Run[]
}

/** In whose transaction something takes place, and how that takes its locks. */
export interface Manner {
  /** The transaction is that of a user. @default false */
  readonly within?: boolean
  /** @default 'wait' */
  readonly way?: Way
}

export interface Deal<OwnLook extends Seen, Work extends PostgresBooks, Made, Answer> {
  readonly end: Ender
  readonly wants: Wants
  /** The transaction is that of a user. */
  readonly within: boolean
  /** @default 'wait' */
  readonly way?: Way | undefined
  /** Looks for what only this method needs. It is executed under the locks. */
  look(): Promise<OwnLook>
  /** What the rules of this method read and write: the usual books, or with what its own look has found. */
  lend(found: Found, seen: OwnLook, crowds: Crowds): Work
  /** What has to be written before the rest can be decided; never twice. */
  prepare?(books: Work, seen: OwnLook, guard: Guard): Promise<Made>
  /** Decides all of it, each item under the guard. It may be called again, with other books. */
  decide(books: Work, seen: OwnLook, made: Made | undefined, guard: Guard): Answer
}

export interface Exchanging {
  perform<OwnLook extends Seen, Work extends PostgresBooks, Made, Answer>(
    x: Execution,
    deal: Deal<OwnLook, Work, Made, Answer>,
  ): Promise<Answer>
}

/** After so many times whoever is found late is locked late: it comes to an end, however many come in between. */
const mostTries = 4

/** Each time something is missing, it is there the next time. */
const mostMissing = 100

export function exchanging(dialect: Dialect, refused: Pick<RefusedOthers, 'among'>): Exchanging {
  const loading = booksLoading(dialect)
  const writing = booksWriting(dialect)
  const aside = settingAside(dialect, refused)
  const crowds = new Crowds()

  async function load<OwnLook extends Seen>(
    x: Execution,
    {
      end,
      wants,
      look,
      way = 'wait',
    }: Pick<Deal<OwnLook, PostgresBooks, unknown, unknown>, 'end' | 'wants' | 'look' | 'way'>,
  ): Promise<{ readonly found: Found; readonly seen: OwnLook; readonly guard: Guard }> {
    // Counted with the first look: one topic after the other would be found missing, each with a look of its own.
    for (const [topic, { most, runs }] of wants.subscribing) {
      if (!crowds.hasRoomFor(runs.size, topic, most)) wants.crowds.set(topic, most)
    }
    await loading.candidates(x, end, wants)
    const lockedOut = await aside.lockedOut(x, wants, way)
    for (const id of lockedOut.runs) wants.runs.delete(id)
    for (const name of lockedOut.topics) wants.topics.delete(name)
    const asked = new Set(wants.runs)
    // Sent together, executed one after the other: the looks see what whoever had the locks has committed.
    const [{ runs, topics }, seen, looked] = await Promise.all([
      loading.lock(x, end, wants),
      look(),
      loading.look(x, end, wants, lockedOut.runs),
    ])
    // It is wanted all the same, should all of this begin again.
    for (const id of lockedOut.runs) wants.runs.add(id)
    for (const name of lockedOut.topics) wants.topics.add(name)
    const ownRuns = (seen.locked ?? []).filter(({ id }) => !lockedOut.runs.has(id))
    const own = ownRuns.map((run) => [run.id, run] as const)
    const found = { ...looked, asked, lockedOut: lockedOut.runs, runs: new Map([...runs, ...own]), topics }
    assertLocked(found, lockedOut.runs)
    return { seen, found, guard: new Guard(lockedOut) }
  }

  return {
    async perform(x, deal) {
      const { end, wants } = deal
      let made: Awaited<ReturnType<NonNullable<typeof deal.prepare>>> | undefined
      let isPrepared = false
      if (deal.way === 'pass over') await aside.hurry(x)
      for (;;) {
        try {
          const { found, seen, guard } = await load(x, deal)
          const books = deal.lend(found, seen, crowds)
          if (!isPrepared) made = await deal.prepare?.(books, seen, guard)
          isPrepared = true
          const answer = deal.decide(books, seen, made, guard)
          guard.assertWhole()
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
function assertLocked({ waits, asked, runs }: Found, lockedOut: ReadonlySet<string>): void {
  const late = new Set<string>()
  for (const [key, list] of waits) {
    for (const { runId, missed } of list) {
      const isWanted = missed === null || key.startsWith('late ')
      if (isWanted && !asked.has(runId) && !runs.has(runId) && !lockedOut.has(runId)) late.add(runId)
    }
  }
  if (late.size === 0) return
  throw new Missing((wants) => {
    for (const id of late) wants.runs.add(id)
  })
}

/** The same again, from the start: as if the database had said that others were in the way. */
function again(): HoldfastError {
  const cause = Object.assign(new Error('Another transaction came in between.'), { code: '40001' })
  return new HoldfastError('STORE_UNAVAILABLE', 'Others were in the way too often.', { cause })
}
