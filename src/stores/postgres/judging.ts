// Committing what an update with the fence in its condition cannot do: transitions that are repeated or refused, that begin
// anew, or that reach beyond their run. All of them are locked together with whoever they concern, looked at, and judged
// by the core one after the other: the second finds what the first made of everything.

import { advanced, left } from '../../core/advance.ts'
import { HoldfastError } from '../../core/error.ts'
import { bindChild, conclude, refuseChild, unwatch, watch } from '../../core/exchange.ts'
import { uniqueText } from '../../core/key.ts'
import type { NewRun } from '../../core/new-run.ts'
import { holds, isTerminal, type Run } from '../../core/run.ts'
import { assertLegal, endsLease, isParkedBy, objection, type Transition } from '../../core/transition.ts'
import type { Committed, Started } from '../../store.ts'
import type { PostgresBooks } from './books.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Exchanging, Manner, Seen } from './exchanging.ts'
import type { Execution, Row } from './execution.ts'
import type { Guard } from './set-aside.ts'
import { Wants } from './wants.ts'

export interface Judging {
  /** Commits transitions of one shard inside one transaction. */
  commit(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
    wants: Wants,
    how?: Manner,
  ): Promise<readonly Committed[]>
}

/** Inserts runs that others start. A start that is repeated inserts nothing, and is answered as the first time. */
export type StartChildren = (
  x: Execution,
  runs: readonly NewRun[],
) => Promise<{ readonly started: readonly Started[]; readonly inserted: ReadonlySet<string> }>

interface Look extends Seen {
  /** The first and the last entry of each transition, if they are there, by run and place. */
  readonly entries: ReadonlyMap<string, Row>
  /** Who has which key. */
  readonly rivals: readonly Row[]
  /** Transitions that would park a run for which a message that it wants has come. */
  readonly mailed: ReadonlySet<string>
}

/** The runs that each transition has started, in its order. */
type Children = ReadonlyMap<string, readonly Started[]>

interface Made {
  readonly children: Children
  /** Those of them that were inserted now. */
  readonly inserted: ReadonlySet<string>
  readonly rivals: readonly Row[]
}

const nothingMade: Made = { children: new Map(), inserted: new Set(), rivals: [] }

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

  // Apart from the lock, as every look is: who sends has the lock of the run before it puts anything into the mailbox.
  const mail = statement(
    'commit.look',
    `
    select distinct asked.t
    from json_to_recordset($2::text::json) as asked (t text, r uuid, after integer, name text, takes json)
    cross join lateral (
      select 1 from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = asked.r and message.name = asked.name
        and message.taken_by is null and message.position > asked.after
        and message.id not in (select json_array_elements_text(asked.takes))
      limit 1) as message`,
  )

  async function lookForMail(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
  ): Promise<ReadonlySet<string>> {
    const asked = transitions.flatMap(({ id: t, runId: r, parkIf, takes }) =>
      (parkIf?.wants ?? []).map((name) => ({ t, r, after: parkIf?.inbox ?? 0, name, takes })),
    )
    if (asked.length === 0) return new Set()
    const rows = await x.execute(mail, [shard, JSON.stringify(asked)])
    return new Set(rows.map((row) => row['t'] as string))
  }

  async function look(x: Execution, shard: number, transitions: readonly Transition[]): Promise<Look> {
    const asked = transitions.flatMap(({ runId: r, guard, append }) => [
      { r, s: guard.seq + 1 },
      { r, s: guard.seq + append.length },
    ])
    const [seen, mailed] = await Promise.all([
      x.execute(places, [shard, JSON.stringify(asked)]),
      lookForMail(x, shard, transitions),
    ])
    const entries = new Map(seen.slice(1).map((row) => [`${row['run_id'] as string} ${Number(row['seq'])}`, row]))
    return { now: Number(seen[0]?.['now']), entries, rivals: [], mailed }
  }

  /** Inserts the children of those that are in order as far as can be seen; and tells who has the keys that some want. */
  async function prepare(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
    books: PostgresBooks,
    seen: Look,
    guard: Guard,
  ): Promise<Made> {
    const keys = transitions.flatMap(
      (one, index) => guard.decide(index, () => keyAfter(one, books.run(one.runId), seen.now)) ?? [],
    )
    // No child is started for one that is set aside.
    guard.assertWhole()
    const rivals = keys.length === 0 ? [] : await x.execute(holders, [shard, JSON.stringify(keys)])
    const starting = transitions.filter(
      (one) => (one.reach?.starts.length ?? 0) > 0 && judge(books.run(one.runId), one, { ...seen, rivals }) === null,
    )
    const children = new Map<string, readonly Started[]>()
    if (starting.length === 0) return { children, inserted: new Set(), rivals }
    const { started, inserted } = await startChildren(
      x,
      starting.flatMap(({ reach }) => (reach?.starts ?? []).map(({ run }) => run)),
    )
    let from = 0
    for (const { id, reach } of starting) {
      const till = from + (reach?.starts.length ?? 0)
      children.set(id, started.slice(from, till))
      from = till
    }
    return { children, inserted, rivals }
  }

  return {
    commit: (x, shard, transitions, wants, { within = false, way } = {}) =>
      exchange.perform(x, {
        end: 'commit',
        wants,
        within,
        way,
        look: () => look(x, shard, transitions),
        prepare: (books, seen, guard) => prepare(x, shard, transitions, books, seen, guard),
        decide: (books, seen, made, guard) => {
          const { children, inserted, rivals } = made ?? nothingMade
          const decide = (one: Transition): Committed => {
            const refusal = judge(books.run(one.runId), one, { ...seen, rivals })
            if (refusal === null)
              return commitOne(books, one, seen.mailed, { started: children.get(one.id) ?? [], inserted })
            // Its children are there already. It is not as it seemed, because of another one of the same batch.
            if (children.has(one.id)) throw oneByOne()
            return refusal
          }
          return transitions.map((one, index) => {
            // Who begins to wait on a topic has its lock, also where the rules need not look at it.
            for (const watched of one.reach?.watches ?? []) {
              if (watched.kind === 'topic') guard.concerns(index, watched.name)
            }
            return guard.decide(index, () => decide(one)) as Committed
          })
        },
      }),
  }
}

/** What transitions may touch. */
export function wantsOf(transitions: readonly Transition[]): Wants {
  const wants = new Wants()
  for (const { runId, status, reach } of transitions) {
    wants.concern(runId)
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
  const reason = objection(run, transition, seen.now)
  if (reason === 'cancelling') return { outcome: 'refused', reason, wish: run.wish }
  if (reason !== null) return { outcome: 'refused', reason }
  const isTaken = isKeyTaken(transition, advanced(run, transition, seen.now), seen.rivals)
  return isTaken ? { outcome: 'refused', reason: 'key-taken' } : null
}

/** Commits a transition that is in order. */
function commitOne(
  books: PostgresBooks,
  transition: Transition,
  mailed: ReadonlySet<string>,
  { started, inserted }: Awaited<ReturnType<StartChildren>>,
): Committed {
  const { id, runId, guard, append, takes, reach } = transition
  const present = (): Run => books.run(runId) as Run
  const before = present()
  books.write(before, { run: advanced(before, transition, books.now), append }, id)
  books.take(runId, takes, guard.seq + 1)
  for (const watched of reach?.unwatches ?? []) unwatch(books, present(), watched)
  for (const watched of reach?.watches ?? []) watch(books, present(), watched)
  for (const [index, { run, ...bond }] of (reach?.starts ?? []).entries()) {
    const { created, taken, run: found } = started[index] as Started
    if (created) {
      books.admit(found, inserted.has(found.id))
      bindChild(books, present(), found, bond)
    } else refuseChild(books, present(), run.id, { taken: taken ?? 'id', by: found.id })
  }
  // Whoever waits on something that is over by now has mail already.
  const hasMail = (after: number, names: readonly string[]): boolean =>
    mailed.has(id) || books.hasPut(runId, after, names)
  const released = endsLease(present(), transition, hasMail)
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
  // A late copy of a merged transition, whose first part was committed by itself meanwhile: nobody waits for this answer.
  if (last === undefined) return { outcome: 'refused', reason: 'stale' }
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
