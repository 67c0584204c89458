// Commits transitions that an update with the fence in its condition cannot do: those that are repeated or refused, that
// begin anew, or that reach beyond their run. All of them are locked together with the runs that they concern, read, and
// judged by the core one after the other: each sees the effects of those before it.

import { advanced, left } from '../../../core/rules/advance.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import { uniqueText } from '../../../core/model/key.ts'
import type { NewRun, Started } from '../../../core/model/new-run.ts'
import {
  commit,
  judge,
  type Committed,
  type EntryMark,
  type Keyed,
  type StartingWork,
} from '../../../core/rules/commit.ts'
import { follow, type Followed } from '../../../core/rules/start.ts'
import { judgeSettled } from '../../../core/rules/judge.ts'
import { isTerminal, type Run } from '../../../core/model/run.ts'
import { outgoingIn } from '../../../core/rules/messages/send.ts'
import { sends, type Transition } from '../../../core/model/transition.ts'
import type { SubscriberCounts } from '../../subscriber-counts.ts'
import { PostgresUnitOfWork } from '../exchange/unit-of-work.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { ExchangeRunner, ExchangeOptions, Seen } from '../exchange/exchange.ts'
import type { Execution, Row } from '../execution.ts'
import type { LockedRows } from '../exchange/locked-rows.ts'
import type { Guard } from './locked-items.ts'
import { LockRequest } from '../exchange/lock-request.ts'

export interface LockedCommitQueries {
  /** Commits transitions. */
  commit(given: LockedCommit): Promise<readonly Committed[]>
  /** What follows from the first inputs of runs that were created: by this transaction, or by an earlier try. */
  follow(given: LockedCommit): Promise<readonly Followed[]>
}

/** Transitions of one shard inside one transaction. */
export interface LockedCommit {
  readonly x: Execution
  readonly shard: number
  readonly transitions: readonly Transition[]
  readonly lockRequest: LockRequest
  readonly how?: ExchangeOptions
}

/** Inserts runs that others start. A start that is repeated inserts nothing, and is answered as the first time. */
export type StartChildren = (
  x: Execution,
  runs: readonly NewRun[],
) => Promise<{ readonly started: readonly Started[]; readonly inserted: ReadonlySet<string> }>

interface Look extends Seen {
  /** The first and the last entry of each transition, if they are there, by run and place. */
  readonly entries: ReadonlyMap<string, EntryMark>
  /** Transitions that would park a run for which a message that it wants has come. */
  readonly messageArrived: ReadonlySet<string>
}

interface Made {
  /** The runs that each transition has started, in its order. */
  readonly children: ReadonlyMap<string, readonly Started[]>
  /** Those of them that were inserted now. */
  readonly inserted: ReadonlySet<string>
  /** The holders of keys. */
  readonly rivals: readonly Row[]
}

const nothingMade: Made = { children: new Map(), inserted: new Set(), rivals: [] }

/**
 * The unit of work of transitions: with the rows that were read for them, and with their children, which are inserted before
 * they are judged.
 */
class PostgresCommitWork extends PostgresUnitOfWork implements StartingWork {
  private readonly seen: Look
  made = nothingMade

  readonly sendsLater: boolean

  constructor(found: LockedRows, seen: Look, crowds: SubscriberCounts, inUserTransaction: boolean) {
    super(found, seen.now, crowds)
    this.seen = seen
    this.sendsLater = inUserTransaction
  }

  entryAt(runId: string, seq: number): EntryMark | undefined {
    return this.seen.entries.get(`${runId} ${seq}`)
  }

  keyHolder(run: Keyed): string | null {
    const key = uniqueText(run)
    const rival = this.made.rivals.find((row) => row['key'] === key && row['run_id'] !== run.id)
    return (rival?.['run_id'] as string | undefined) ?? null
  }

  /** Of any name: whether there is one at all was looked up. */
  hasMessageAfter({ id, runId }: Transition, after: number, names: readonly string[] | null): boolean {
    return this.seen.messageArrived.has(id) || this.hasPut(runId, after, names)
  }

  advance(run: Run, transition: Transition): Run {
    const moved = advanced(run, transition, this.now)
    this.write(run, { run: moved, append: transition.append }, transition.id)
    return moved
  }

  startChildren({ id }: Transition): readonly Started[] {
    const started = this.made.children.get(id) ?? []
    for (const { created, run } of started) if (created) this.admit(run, this.made.inserted.has(run.id))
    return started
  }

  present(run: Run): Run {
    return this.run(run.id) ?? run
  }

  leave(_before: Run, kept: Run, transition: Transition, isReleased: boolean): Run {
    if (!isReleased) return kept
    const run = left(kept, transition, this.now)
    this.set(run)
    return run
  }
}

export function createLockedCommitQueries(
  { schema, now }: Dialect,
  exchange: ExchangeRunner,
  startChildren: StartChildren,
): LockedCommitQueries {
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
    select held.key, held.run_id
      from (select distinct value as key from json_array_elements_text($2::text::json)) as requested cross join lateral (
        select * from ${schema}.keys
        where shard = $1::smallint and key = requested.key and type = ''::text offset 0) as held`,
  )

  // Apart from the lock, as every read is: a sender has the lock of the run before it puts a message into the mailbox.
  const messages = statement(
    'commit.look',
    `
    select distinct requested.t
    from json_to_recordset($2::text::json) as requested (t text, r uuid, after integer, name text, takes json)
    cross join lateral (
      select 1 from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = requested.r and message.name = requested.name
        and message.taken_by is null and message.position > requested.after
        and message.id not in (select json_array_elements_text(requested.takes))
      limit 1) as message`,
  )

  // Without a lease nobody has read the mailbox.
  const unread = statement(
    'commit.look',
    `
    select requested.t
    from json_to_recordset($2::text::json) as requested (t text, r uuid) cross join lateral (
      select 1 from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = requested.r and message.taken_by is null
      order by message.position limit 1) as message`,
  )

  async function lookForMessages(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
  ): Promise<ReadonlySet<string>> {
    const requested = transitions.flatMap(({ id: t, runId: r, parkIf, takes }) =>
      (parkIf?.wakeNames ?? []).map((name) => ({ t, r, after: parkIf?.inbox ?? 0, name, takes })),
    )
    const unheld = transitions.flatMap(({ id: t, runId: r, guard, status }) =>
      guard.lease === null && status === 'waiting' ? [{ t, r }] : [],
    )
    const rows = await Promise.all([
      requested.length === 0 ? [] : x.execute(messages, [shard, JSON.stringify(requested)]),
      unheld.length === 0 ? [] : x.execute(unread, [shard, JSON.stringify(unheld)]),
    ])
    return new Set(rows.flat().map((row) => row['t'] as string))
  }

  async function look(x: Execution, shard: number, transitions: readonly Transition[]): Promise<Look> {
    const requested = transitions.flatMap(({ runId: r, guard, append }) => [
      { r, s: guard.seq + 1 },
      { r, s: guard.seq + append.length },
    ])
    const [seen, messageArrived] = await Promise.all([
      x.execute(places, [shard, JSON.stringify(requested)]),
      lookForMessages(x, shard, transitions),
    ])
    const entries = new Map(
      seen.slice(1).map((row) => {
        const mark = { transition: row['transition_id'] as string | null, at: Number(row['at']) }
        return [`${row['run_id'] as string} ${Number(row['seq'])}`, mark]
      }),
    )
    return { now: Number(seen[0]?.['now']), entries, messageArrived }
  }

  /** Inserts the children of transitions that look valid so far; and finds the holders of the keys that some want. */
  async function prepare(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
    unitOfWork: PostgresCommitWork,
    guard: Guard,
  ): Promise<Made> {
    const keys = transitions.flatMap(
      (one, index) => guard.decide(index, () => keyAfter(one, unitOfWork.run(one.runId))) ?? [],
    )
    // No child is started for one that is set aside.
    guard.assertWhole()
    const rivals = keys.length === 0 ? [] : await x.execute(holders, [shard, JSON.stringify(keys)])
    unitOfWork.made = { ...nothingMade, rivals }
    const starting = transitions
      .filter((one) => partsOf(one).some(hasStarts) && judge(unitOfWork, unitOfWork.run(one.runId), one) === null)
      .flatMap((one) => [one, ...settledBy(unitOfWork, one)])
      .filter(hasStarts)
    if (starting.length === 0) return unitOfWork.made
    const children = new Map<string, readonly Started[]>()
    const { started, inserted } = await startChildren(
      x,
      starting.flatMap(({ outbound }) => (outbound?.starts ?? []).map(({ run }) => run)),
    )
    let from = 0
    for (const { id, outbound } of starting) {
      const till = from + (outbound?.starts.length ?? 0)
      children.set(id, started.slice(from, till))
      from = till
    }
    return { children, inserted, rivals }
  }

  /** Decides about transitions of one shard, one after the other: each sees the effects of those before it. */
  function decideAll<Answer>(
    { x, shard, transitions, lockRequest, how: { inUserTransaction = false, lockPolicy } = {} }: LockedCommit,
    decide: (unitOfWork: PostgresCommitWork, transition: Transition) => Answer,
  ): Promise<readonly Answer[]> {
    return exchange.perform(x, {
      end: 'commit',
      lockRequest,
      inUserTransaction,
      lockPolicy,
      look: () => look(x, shard, transitions.flatMap(partsOf)),
      lend: (found, seen, crowds) => new PostgresCommitWork(found, seen, crowds, inUserTransaction),
      prepare: (unitOfWork, _seen, guard) => prepare(x, shard, transitions, unitOfWork, guard),
      decide: (unitOfWork, _seen, made, guard) => {
        unitOfWork.made = made ?? nothingMade
        return transitions.map((one, index) => {
          // A run that begins to wait on a topic has the topic's lock, also where the rules need not read it.
          for (const watched of one.outbound?.watches ?? []) {
            if (watched.kind === 'topic') guard.concerns(index, watched.name)
          }
          return guard.decide(index, () => decide(unitOfWork, one)) as Answer
        })
      },
    })
  }

  return {
    commit: (given) => decideAll(given, commitOne),
    follow: (given) => decideAll(given, follow),
  }
}

function commitOne(unitOfWork: PostgresCommitWork, one: Transition): Committed {
  const run = unitOfWork.run(one.runId)
  const refusal = judge(unitOfWork, run, one)
  const answer = refusal ?? commit(unitOfWork, run as Run, one)
  // Its children are there already. It is not as it seemed, because of another one of the same batch.
  if (refusal !== null && unitOfWork.made.children.has(one.id)) throw oneByOne()
  assertSettled(unitOfWork, one, answer)
  return answer
}

/** The rows that transitions may touch. */
export function lockRequestOf(transitions: readonly Transition[], inUserTransaction = false): LockRequest {
  const lockRequest = new LockRequest()
  for (const transition of transitions) {
    lockRequest.concern(transition.runId)
    for (const part of partsOf(transition)) {
      const { runId, guard, append, status, outbound } = part
      // The run of a settled one is not waited for: it gets a message then.
      lockRequest.runs.add(runId)
      if (sends(part)) lockRequest.send(runId, outgoingIn(runId, guard.seq, append), inUserTransaction)
      if (status !== null && isTerminal(status)) lockRequest.ends.add(runId)
      for (const watched of outbound?.watches ?? []) lockRequest.watch(runId, watched)
      // A repetition names the children that are leased still.
      for (const { run } of outbound?.starts ?? []) if (run.lease !== null) lockRequest.runs.add(run.id)
    }
  }
  return lockRequest
}

/** A transition, and the one that it settles. */
function partsOf(transition: Transition): readonly Transition[] {
  const { settles = null } = transition
  return settles === null ? [transition] : [transition, settles]
}

function hasStarts({ outbound }: Transition): boolean {
  return (outbound?.starts.length ?? 0) > 0
}

/** What a transition that takes effect settles, if that takes effect, too. */
function settledBy(unitOfWork: PostgresCommitWork, { settles = null }: Transition): readonly Transition[] {
  return settles !== null && judgeSettled(unitOfWork, settles) === null ? [settles] : []
}

/** The children of what is settled are there already as well. */
function assertSettled({ made }: PostgresCommitWork, { settles = null }: Transition, answer: Committed): void {
  const isSettled = answer.outcome === 'committed' && answer.settled?.outcome === 'committed'
  if (settles !== null && !isSettled && made.children.has(settles.id)) throw oneByOne()
}

/** The key that the run would have if it began anew as another. */
function keyAfter({ continues }: Transition, run: Run | undefined): readonly string[] {
  if (continues === null || run === undefined) return []
  const key = uniqueText({ ...run, ...continues })
  return key === null ? [] : [key]
}

/** As if a unique index had refused the whole: each gets a transaction of its own then. */
function oneByOne(): HoldfastError {
  const cause = Object.assign(new Error('Two of a batch are in the way of one another.'), { code: '23505' })
  return new HoldfastError('STORE_UNAVAILABLE', 'Two transitions of a batch are in the way of one another.', { cause })
}
