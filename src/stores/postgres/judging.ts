// Committing what an update with the fence in its condition cannot do: transitions that are repeated or refused, that begin
// anew, or that reach beyond their run. All of them are locked together with whoever they concern, looked at, and judged
// by the core one after the other: the second finds what the first made of everything.

import { advanced, left } from '../../core/advance.ts'
import { bug, HoldfastError } from '../../core/error.ts'
import { bindChild, conclude, refuseChild, unwatch, watch } from '../../core/exchange.ts'
import { uniqueText } from '../../core/key.ts'
import type { NewRun } from '../../core/new-run.ts'
import { holds, isTerminal, type Run } from '../../core/run.ts'
import { assertLegal, isParkedBy, receive, type Transition } from '../../core/transition.ts'
import type { Committed, Started } from '../../store.ts'
import type { PostgresBooks } from './books.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Exchanging, Seen } from './exchanging.ts'
import type { Execution, Row } from './execution.ts'
import { Wants } from './wants.ts'

export interface Judging {
  /** Commits transitions of one shard inside one transaction. */
  commit(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
    wants: Wants,
    within?: boolean,
  ): Promise<readonly Committed[]>
}

/** Inserts runs that others start, in this order. */
export type StartChildren = (x: Execution, runs: readonly NewRun[]) => Promise<readonly Started[]>

interface Look extends Seen {
  /** The first and the last entry of each transition, if they are there, by run and place. */
  readonly entries: ReadonlyMap<string, Row>
  /** Who has which key. */
  readonly rivals: readonly Row[]
}

/** The runs that each transition has started, in its order. */
type Children = ReadonlyMap<string, readonly Started[]>

interface Made {
  readonly children: Children
  readonly rivals: readonly Row[]
}

const nothingMade: Made = { children: new Map(), rivals: [] }

export function judging({ schema, now }: Dialect, exchange: Exchanging, startChildren: StartChildren): Judging {
  const places = statement(
    'commit.look',
    `
    select ${now} as now, null as run_id, null::integer as seq, null as transition_id, null::bigint as at
    union all
    select null, run_id::text, entry.seq, transition_id, at
    from json_to_recordset($2::text::json) as place (r uuid, s integer) cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = r and entry.seq = s offset 0) as entry`,
  )
  const holders = statement(
    'commit.look',
    `
    select run.id, run.unique_key
      from (select distinct value as key from json_array_elements_text($2::text::json)) as asked cross join lateral (
        select * from ${schema}.runs
        where shard = $1::smallint and unique_key = asked.key and ended_at is null and deleted_at is null offset 0) as run`,
  )

  async function look(x: Execution, shard: number, transitions: readonly Transition[]): Promise<Look> {
    const asked = transitions.flatMap(({ runId: r, guard, append }) => [
      { r, s: guard.seq + 1 },
      { r, s: guard.seq + append.length },
    ])
    const seen = await x.execute(places, [shard, JSON.stringify(asked)])
    const entries = new Map(seen.slice(1).map((row) => [`${row['run_id'] as string} ${Number(row['seq'])}`, row]))
    return { now: Number(seen[0]?.['now']), entries, rivals: [] }
  }

  /** Inserts the children of those that are in order as far as can be seen; and tells who has the keys that some want. */
  async function prepare(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
    books: PostgresBooks,
    seen: Look,
  ): Promise<Made> {
    const keys = transitions.flatMap((transition) => keyAfter(transition, books.run(transition.runId), seen.now))
    const rivals = keys.length === 0 ? [] : await x.execute(holders, [shard, JSON.stringify(keys)])
    const starting = transitions.filter(
      (one) => (one.reach?.starts.length ?? 0) > 0 && judge(books.run(one.runId), one, { ...seen, rivals }) === null,
    )
    const children = new Map<string, readonly Started[]>()
    if (starting.length === 0) return { children, rivals }
    const started = await startChildren(
      x,
      starting.flatMap(({ reach }) => (reach?.starts ?? []).map(({ run }) => run)),
    )
    let from = 0
    for (const { id, reach } of starting) {
      const till = from + (reach?.starts.length ?? 0)
      children.set(id, started.slice(from, till))
      from = till
    }
    return { children, rivals }
  }

  return {
    commit: (x, shard, transitions, wants, within = false) =>
      exchange.perform(x, {
        end: 'commit',
        wants,
        within,
        look: () => look(x, shard, transitions),
        prepare: (books, seen) => prepare(x, shard, transitions, books, seen),
        decide: (books, seen, made) => {
          const { children, rivals } = made ?? nothingMade
          return transitions.map((one) => {
            const refusal = judge(books.run(one.runId), one, { ...seen, rivals })
            if (refusal === null) return commitOne(books, one, children.get(one.id))
            // Its children are there already. It is not as it seemed, because of another one of the same batch.
            if (children.has(one.id)) throw oneByOne()
            return refusal
          })
        },
      }),
  }
}

/** What transitions may touch. */
export function wantsOf(transitions: readonly Transition[]): Wants {
  const wants = new Wants()
  for (const { runId, status, reach } of transitions) {
    wants.runs.add(runId)
    if (status !== null && isTerminal(status)) wants.ends.add(runId)
    for (const watched of reach?.watches ?? []) wants.watch(runId, watched)
  }
  return wants
}

/** The answer to a transition that is repeated or refused; null if it is in order. */
function judge(run: Run | undefined, transition: Transition, seen: Look): Committed | null {
  const { id, guard, append } = transition
  if (run === undefined) return { outcome: 'refused', reason: 'not-found' }
  if (append.length > 0 && run.seq > guard.seq) {
    const first = seen.entries.get(`${run.id} ${guard.seq + 1}`)
    if (first?.['transition_id'] === id) return repeated(run, transition, seen.entries)
  }
  if (!holds(run, guard.lease)) {
    return isParkedBy(run, transition)
      ? { outcome: 'committed', seq: run.seq, at: run.updatedAt, inbox: run.inbox, released: true, wish: null }
      : { outcome: 'refused', reason: 'lease-lost' }
  }
  if (run.seq !== guard.seq) return { outcome: 'refused', reason: 'stale' }
  assertLegal(run.status, transition)
  if (receive(run, transition) === 'refused') return { outcome: 'refused', reason: 'cancelling', wish: run.wish }
  const isTaken = isKeyTaken(transition, advanced(run, transition, seen.now), seen.rivals)
  return isTaken ? { outcome: 'refused', reason: 'key-taken' } : null
}

/** Commits a transition that is in order. */
function commitOne(books: PostgresBooks, transition: Transition, children: readonly Started[] = []): Committed {
  const { id, runId, guard, append, takes, reach } = transition
  const present = (): Run => books.run(runId) as Run
  const before = present()
  books.write(before, { run: advanced(before, transition, books.now), append }, id)
  books.take(runId, takes, guard.seq + 1)
  for (const watched of reach?.unwatches ?? []) unwatch(books, present(), watched)
  for (const watched of reach?.watches ?? []) watch(books, present(), watched)
  for (const [index, { run, ...bond }] of (reach?.starts ?? []).entries()) {
    const { created, taken, run: found } = children[index] as Started
    if (created) {
      books.admit(found)
      bindChild(books, present(), found, bond)
    } else refuseChild(books, present(), run.id, { taken: taken ?? 'id', by: found.id })
  }
  // Whoever waits on something that is over by now has mail already.
  const released = receive(present(), transition) === 'released'
  if (released) books.set(left(present(), transition, books.now))
  if (released && isTerminal(present().status)) conclude(books, present())
  const { seq, inbox, wish } = present()
  return { outcome: 'committed', seq, at: books.now, inbox, released, wish: released ? null : wish }
}

/** The key that the run would have if it began anew as another. */
function keyAfter(transition: Transition, run: Run | undefined, now: number): readonly string[] {
  if (transition.continues === null || run === undefined) return []
  const key = uniqueText(advanced(run, transition, now))
  return key === null ? [] : [key]
}

/** The unique index decides; this only tells before it would have to. */
function isKeyTaken({ continues }: Transition, run: Run, rivals: readonly Row[]): boolean {
  if (continues === null || run.deletedAt !== null) return false
  const key = uniqueText(run)
  return key !== null && rivals.some((row) => row['unique_key'] === key && row['id'] !== run.id)
}

/** The answer to a transition that was committed before, when its first answer was lost. */
function repeated(run: Run, { guard, append, status }: Transition, entries: ReadonlyMap<string, Row>): Committed {
  const seq = guard.seq + append.length
  const last = entries.get(`${run.id} ${seq}`)
  if (last === undefined) throw bug('A transition was committed in part', { runId: run.id })
  const held = holds(run, guard.lease)
  const wish = held ? run.wish : null
  const released = status !== null && !held
  return { outcome: 'committed', seq, at: Number(last['at']), inbox: run.inbox, released, wish }
}

/** As if a unique index had refused the whole: each gets a transaction of its own then. */
function oneByOne(): HoldfastError {
  const cause = Object.assign(new Error('Two of a batch are in the way of one another.'), { code: '23505' })
  return new HoldfastError('STORE_UNAVAILABLE', 'Two transitions of a batch are in the way of one another.', { cause })
}
