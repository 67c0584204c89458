// Locks and reads the rows that the rules of the exchange may touch. Additional rows to lock are found first, without locks;
// then runs are locked in the order of their ids, then topics in that of their names, each shard after the one before; and
// only reads after that are relied upon. With several shards each statement names one.

import { defaultPageLimits, type Chore } from '../../../../core/model/chore.ts'
import type { WaitRow } from '../../../../core/rules/messages/unit-of-work.ts'
import { shardFor } from '../../../../core/model/run-id.ts'
import { broadcastMessageId, type Message } from '../../../../core/model/message.ts'
import type { Run } from '../../../../core/model/run.ts'
import type { Broadcast } from '../../../../core/model/topic.ts'
import { atOnce, type AtOnce } from '../at-once.ts'
import { loadingStatements, type ExchangeMethod } from './unit-of-work-statements.ts'
import type { Dialect, Statement } from '../../dialect.ts'
import type { Execution, Row } from '../../execution.ts'
import type { LockedRows } from '../locked-rows.ts'
import { broadcastOf, choreOf, entryOf, messageOf, runOf, timeOf, waitOf } from '../../schema/rows.ts'
import { shardOfChore, shardOfRun } from '../../schema/shards.ts'
import type { LockRequest } from '../lock-request.ts'
import { pageOf, requestOf } from './sent-page.ts'
import { lookTopicUse, type Placed } from './topic-use.ts'

export interface Locked {
  readonly runs: ReadonlyMap<string, Run>
  readonly topics: ReadonlyMap<string, number>
  readonly retained: ReadonlyMap<string, number | null>
}

export interface UnitOfWorkLoader {
  /** Adds the other rows to lock to the request, as far as they can be seen without locks. */
  candidates(x: Execution, end: ExchangeMethod, lockRequest: LockRequest): Promise<void>
  /** Sends the locks at once: statements that are sent after this call are executed under them. */
  lock(x: Execution, end: ExchangeMethod, lockRequest: LockRequest): Promise<Locked>
  look(
    x: Execution,
    end: ExchangeMethod,
    lockRequest: LockRequest,
    lockedOut: ReadonlySet<string>,
  ): Promise<Omit<LockedRows, 'requested' | 'lockedOut' | 'lockedOutTopics' | keyof Locked>>
}

export function createUnitOfWorkLoader(dialect: Dialect): UnitOfWorkLoader {
  const statements = loadingStatements(dialect)
  const shardOfTopic = (name: string): number => shardFor(name, dialect.shards)

  /** Asks every shard for its own, in the order of the shards, and answers all rows. */
  function ask(x: Execution, query: Statement, requested: readonly Placed[]): Promise<readonly Row[]> {
    const byShard = new Map<number, (object | string)[]>()
    for (const { shard, json } of requested) {
      const some = byShard.get(shard)
      if (some === undefined) byShard.set(shard, [json])
      else some.push(json)
    }
    const sent = [...byShard].sort(([a], [b]) => a - b)
    return Promise.all(sent.map(([shard, json]) => x.execute(query, [shard, JSON.stringify(json)]))).then((rows) =>
      rows.flat(),
    )
  }

  /** Runs that can exist, each with its shard. */
  function placed(ids: Iterable<string>): readonly Placed[] {
    return Array.from(ids).flatMap((id) => {
      const shard = shardOfRun(dialect, id)
      return shard === undefined ? [] : [{ shard, json: id }]
    })
  }

  function placedWaiters(lockRequest: LockRequest, more: number): readonly Placed[] {
    return Array.from(lockRequest.waiters.values(), ({ topic, delivery, most, after }) => {
      const { openedAt: at, runId: run } = after ?? beforeAll
      return { shard: shardOfTopic(topic), json: { topic, delivery, most: most + more, at, run } }
    })
  }

  /**
   * How much is read of each mailbox, and of the runs that wait on a run: a page of a chore, or the part that goes with an
   * end.
   */
  function placedEnds(lockRequest: LockRequest, most: AtOnce): readonly Placed[] {
    const after = lockRequest.chore?.kind === 'messages' ? lockRequest.chore.position : 0
    const from = lockRequest.chore?.kind === 'end' ? lockRequest.chore.after : null
    const { openedAt: at, runId: run } = from ?? beforeAll
    const { messages, waits } = most
    return placed(lockRequest.ends).map(({ shard, json: id }) => ({
      shard,
      json: { id, after, messages, at, run, waits },
    }))
  }

  /** One more than are dealt with, so that it is known whether there are more. */
  function oneMore(lockRequest: LockRequest): AtOnce {
    const { messages, waits } = atOnce(lockRequest)
    return { messages: messages + 1, waits: waits + 1 }
  }

  async function lookBacklogs(x: Execution, end: ExchangeMethod, lockRequest: LockRequest) {
    // A topic that keeps nothing needs no read: subscribers get only later broadcasts.
    const requested = [...lockRequest.backlogs.values()].filter(
      ({ delivery, retainMs }) => delivery === 'one' || retainMs > 0,
    )
    const rows = await ask(
      x,
      statements[end].backlogs,
      requested.map(({ topic, delivery, most, retainMs }) => ({
        shard: shardOfTopic(topic),
        json: { topic, delivery, most: delivery === 'one' ? most + 1 : null, retain: retainMs },
      })),
    )
    const backlogs = new Map<string, Broadcast[]>(Array.from(lockRequest.backlogs.keys(), (key) => [key, []]))
    for (const row of rows.map(broadcastOf)) backlogs.get(`${row.delivery} ${row.topic}`)?.push(row)
    const cut = new Set<string>()
    const received: { readonly runId: string; readonly id: string }[] = []
    for (const [key, { delivery, most, readers }] of lockRequest.backlogs) {
      const backlog = backlogs.get(key) as Broadcast[]
      if (delivery === 'one' && backlog.length > most) {
        backlog.length = most
        cut.add(key)
      }
      if (delivery === 'one') continue
      for (const runId of readers) {
        for (const kept of backlog) received.push({ runId, id: broadcastMessageId(kept) })
      }
    }
    return { backlogs, cut, received }
  }

  async function lookMessages(x: Execution, end: ExchangeMethod, requested: readonly { runId: string; id: string }[]) {
    const known = new Map(requested.map(({ runId, id }) => [`${runId} ${id}`, false]))
    const rows = await ask(
      x,
      statements[end].messages,
      requested.flatMap((json) => {
        const shard = shardOfRun(dialect, json.runId)
        return shard === undefined ? [] : [{ shard, json }]
      }),
    )
    for (const row of rows) known.set(`${row['run_id'] as string} ${row['id'] as string}`, true)
    return known
  }

  async function lookWaits(x: Execution, end: ExchangeMethod, lockRequest: LockRequest) {
    const { waits: mostOnRun } = atOnce(lockRequest)
    // A page of unread messages does not concern the waiting runs.
    const ends = mostOnRun === 0 ? [] : [...lockRequest.ends]
    const [onRuns, onTopics] = await Promise.all([
      ask(x, statements[end].waitsOnRuns, ends.length === 0 ? [] : placedEnds(lockRequest, oneMore(lockRequest))),
      ask(x, statements[end].waitsOnTopics, placedWaiters(lockRequest, 1)),
    ])
    const waits = new Map<string, WaitRow[]>()
    for (const id of ends) waits.set(`run ${id}`, [])
    for (const key of lockRequest.waiters.keys()) waits.set(key, [])
    for (const wait of onRuns.map(waitOf)) waits.get(`run ${wait.target}`)?.push(wait)
    for (const wait of onTopics.map(waitOf)) waits.get(`${wait.delivery ?? ''} ${wait.target}`)?.push(wait)
    const cutWaits = new Set<string>()
    const cut = (key: string, most: number): void => {
      const list = waits.get(key) as WaitRow[]
      if (list.length <= most) return
      list.length = most
      cutWaits.add(key)
    }
    for (const id of ends) cut(`run ${id}`, mostOnRun)
    for (const [key, { most }] of lockRequest.waiters) cut(key, most)
    return { waits, cutWaits }
  }

  async function lookUnread(x: Execution, end: ExchangeMethod, lockRequest: LockRequest) {
    const { messages: most } = atOnce(lockRequest)
    const cutUnread = new Set<string>()
    // Waiting runs are notified without reading the mailbox.
    const unread = new Map<string, Message[]>(most === 0 ? [] : Array.from(lockRequest.ends, (id) => [id, []]))
    const requested = most === 0 ? [] : placedEnds(lockRequest, oneMore(lockRequest))
    for (const message of (await ask(x, statements[end].unread, requested)).map(messageOf)) {
      const list = unread.get(message.runId) ?? []
      if (list.length < most) list.push(message)
      else cutUnread.add(message.runId)
    }
    return { unread, cutUnread }
  }

  /** The chores of topics to which a broadcast is sent, or of which a chore is being done, and the one of a run. */
  async function lookChores(x: Execution, end: ExchangeMethod, lockRequest: LockRequest) {
    const { chore: own } = lockRequest
    const isOfTopic = own?.kind === 'topic' || own?.kind === 'late'
    const concerned = [...(isOfTopic ? [own.target] : []), ...(lockRequest.use === null ? [] : [lockRequest.use])]
    const topics = new Set([...lockRequest.broadcastIds.keys(), ...concerned])
    const ofTopics: Pick<Chore, 'kind' | 'target'>[] = [...topics].flatMap((target) => [
      { kind: 'topic', target },
      { kind: 'late', target },
    ])
    const requested = [...ofTopics, ...lockRequest.chores.values()]
    if (own !== null && !isOfTopic) requested.push(own)
    const chores = new Map<string, Chore | undefined>()
    const placedChores = requested.flatMap(({ kind, target }) => {
      chores.set(`${kind} ${target}`, undefined)
      const shard = shardOfChore(dialect, { kind, target })
      return shard === undefined ? [] : [{ shard, json: { kind, target } }]
    })
    for (const chore of (await ask(x, statements[end].chores, placedChores)).map(choreOf)) {
      chores.set(`${chore.kind} ${chore.target}`, chore)
    }
    return chores
  }

  /** The broadcasts that a chore passes on, and the later ones. */
  async function lookPassedOn(
    x: Execution,
    end: ExchangeMethod,
    { chore }: LockRequest,
  ): Promise<readonly Broadcast[]> {
    return chore?.kind === 'topic' ? lookFrom(x, end, chore.target, chore.position, 2) : []
  }

  async function lookFrom(
    x: Execution,
    end: ExchangeMethod,
    topic: string,
    position: number,
    most: number,
  ): Promise<readonly Broadcast[]> {
    const requested = [{ shard: shardOfTopic(topic), json: { topic, position, most } }]
    return (await ask(x, statements[end].broadcastsFrom, requested)).map(broadcastOf)
  }

  function placedLate({ late }: LockRequest, more: number): readonly Placed[] {
    if (late === null) return []
    const { openedAt: at, runId: run } = late.after ?? beforeAll
    const json = { topic: late.topic, most: defaultPageLimits.late + more, at, run }
    return [{ shard: shardOfTopic(late.topic), json }]
  }

  /** The late subscribers, and the first broadcasts that the lockable ones of them missed. */
  async function lookLate(x: Execution, end: ExchangeMethod, lockRequest: LockRequest, lockedOut: ReadonlySet<string>) {
    const waits = (await ask(x, statements[end].lateOnTopics, placedLate(lockRequest, 1))).map(waitOf)
    const isCut = waits.length > defaultPageLimits.late
    const page = waits.slice(0, defaultPageLimits.late)
    const had = page.filter(({ runId }) => !lockedOut.has(runId))
    const [one] = had
    if (one === undefined) return { page, isCut, missed: [], received: [] }
    const first = Math.min(...had.map(({ missed }) => missed ?? 0))
    const missed = await lookFrom(x, end, one.target, first, defaultPageLimits.missed + 1)
    const received = had.flatMap(({ runId }) => missed.map((sent) => ({ runId, id: broadcastMessageId(sent) })))
    return { page, isCut, missed, received }
  }

  async function lookBroadcasts(x: Execution, end: ExchangeMethod, lockRequest: LockRequest) {
    const broadcasts = new Map<string, Broadcast | undefined>()
    const requested: Placed[] = []
    for (const [topic, ids] of lockRequest.broadcastIds) {
      for (const id of ids) {
        broadcasts.set(`${topic} ${id}`, undefined)
        requested.push({ shard: shardOfTopic(topic), json: { topic, id } })
      }
    }
    for (const row of (await ask(x, statements[end].broadcasts, requested)).map(broadcastOf)) {
      broadcasts.set(`${row.topic} ${row.id}`, row)
    }
    return broadcasts
  }

  /** The broadcasts that decide whether a topic is full: one for each that is sent to it. */
  async function lookKept(x: Execution, end: ExchangeMethod, lockRequest: LockRequest) {
    const requested = Array.from(lockRequest.kept.values(), (json) => ({ shard: shardOfTopic(json.topic), json }))
    const rows = await ask(x, statements[end].kept, requested)
    return new Map(rows.map(broadcastOf).map((one) => [`${one.topic} ${one.position}`, one] as const))
  }

  async function lookCrowds(x: Execution, end: ExchangeMethod, lockRequest: LockRequest) {
    const crowds = new Map<string, { waiting: number; readonly among: Set<string> }>()
    const requested = Array.from(lockRequest.crowds, ([topic, most]) => {
      crowds.set(topic, { waiting: 0, among: new Set() })
      return {
        shard: shardOfTopic(topic),
        json: { topic, most, runs: [...(lockRequest.subscribing.get(topic)?.runs ?? [])] },
      }
    })
    for (const row of await ask(x, statements[end].crowds, requested)) {
      const crowd = crowds.get(row['topic'] as string)
      if (crowd === undefined) continue
      if (row['run_id'] === null) crowd.waiting = Number(row['waiting'])
      else crowd.among.add(row['run_id'] as string)
    }
    return crowds
  }

  async function lookDepths(x: Execution, end: ExchangeMethod, { depths }: LockRequest) {
    const requested = Array.from(depths).flatMap(([id, most]) => {
      const shard = shardOfRun(dialect, id)
      return shard === undefined ? [] : [{ shard, json: { id, most } }]
    })
    const rows = await ask(x, statements[end].depths, requested)
    return new Map(
      rows.map((row) => {
        const id = row['run_id'] as string
        return [id, { unread: Number(row['unread']), most: depths.get(id) ?? 0 }] as const
      }),
    )
  }

  /** The entries with which the run of a chore has sent messages to its receiver: a page, bounded in entries and in bytes. */
  async function lookSent(x: Execution, query: Statement, { chore }: LockRequest): Promise<readonly Row[]> {
    if (chore?.kind !== 'send') return []
    const json = requestOf(chore)
    const shard = shardOfRun(dialect, json.id)
    return shard === undefined ? [] : ask(x, query, [{ shard, json }])
  }

  async function lookLasts(x: Execution, end: ExchangeMethod, lockRequest: LockRequest) {
    const rows = await ask(x, statements[end].lasts, placed(lockRequest.targets))
    return new Map(rows.map((row) => [row['run_id'] as string, entryOf(row)]))
  }

  return {
    async candidates(x, end, lockRequest) {
      for (const row of await ask(x, statements[end].candidatesOfEnds, placedEnds(lockRequest, atOnce(lockRequest)))) {
        if (row['name'] === null) lockRequest.runs.add(row['run_id'] as string)
        else lockRequest.addDeadLetter(messageOf(row))
      }
      const waiters = await ask(x, statements[end].candidatesOfTopics, placedWaiters(lockRequest, 0))
      // A late subscriber is skipped until it has got the broadcasts that it missed.
      for (const row of waiters) if (row['missed'] === null) lockRequest.runs.add(row['run_id'] as string)
      const late = await ask(x, statements[end].candidatesOfLate, placedLate(lockRequest, 0))
      for (const row of late) lockRequest.runs.add(row['run_id'] as string)
      lockRequest.sendAgain((await lookSent(x, statements[end].candidatesOfSent, lockRequest)).map(entryOf))
    },

    async lock(x, end, lockRequest) {
      const locked = ask(x, statements[end].lockRuns, placed(lockRequest.runs))
      const topics = Array.from(lockRequest.topics, (name) => ({ shard: shardOfTopic(name), json: name }))
      const made = ask(x, statements[end].makeTopics, topics)
      const positions = ask(x, statements[end].lockTopics, topics)
      const [runs, , lockedRows] = await Promise.all([locked, made, positions])
      return {
        runs: new Map(runs.map(runOf).map((run) => [run.id, run])),
        topics: new Map(lockedRows.map((row) => [row['name'] as string, Number(row['position'])])),
        retained: new Map(lockedRows.map((row) => [row['name'] as string, timeOf(row['retain_ms'])])),
      }
    },

    async look(x, end, lockRequest, lockedOut) {
      const sent = Promise.all([
        lookWaits(x, end, lockRequest),
        lookUnread(x, end, lockRequest),
        lookBroadcasts(x, end, lockRequest),
        lookLasts(x, end, lockRequest),
        lookBacklogs(x, end, lockRequest),
        lookChores(x, end, lockRequest),
        lookPassedOn(x, end, lockRequest),
        lookKept(x, end, lockRequest),
        lookCrowds(x, end, lockRequest),
        lookLate(x, end, lockRequest, lockedOut),
        lookDepths(x, end, lockRequest),
        lookSent(x, statements[end].sent, lockRequest),
        lookTopicUse(statements[end], {
          topic: lockRequest.use,
          shard: lockRequest.use === null ? 0 : shardOfTopic(lockRequest.use),
          ask: (statement, requested) => ask(x, statement, requested),
          placed,
        }),
      ])
      const [
        { waits, cutWaits },
        { unread, cutUnread },
        broadcasts,
        lasts,
        backlog,
        chores,
        passing,
        kept,
        crowds,
        late,
        depths,
        sentRows,
        use,
      ] = await sent
      const passedOn = lockRequest.late === null ? passing : late.missed
      if (lockRequest.late !== null) {
        waits.set(`late ${lockRequest.late.topic}`, late.page)
        if (late.isCut) cutWaits.add(`late ${lockRequest.late.topic}`)
      }
      const { backlogs, cut, received } = backlog
      for (const broadcast of passing.slice(0, 1)) {
        const subscribed = waits.get(`all ${broadcast.topic}`) ?? []
        for (const { runId } of subscribed) received.push({ runId, id: broadcastMessageId(broadcast) })
      }
      const wanted = Array.from(lockRequest.messageIds, ([runId, ids]) =>
        Array.from(ids, (id) => ({ runId, id })),
      ).flat()
      const messages = await lookMessages(x, end, [...wanted, ...received, ...late.received])
      const between = { waits, cutWaits, unread, cutUnread, broadcasts, lasts, backlogs, cutBacklogs: cut, messages }
      const keptRead = Array.from(lockRequest.kept.values(), (one) => ({ ...one }))
      return { ...between, chores, passedOn, kept, keptRead, crowds, depths, use, ...pageOf(sentRows) }
    },
  }
}

/** Before every subscriber. */
const beforeAll = { openedAt: Number.MIN_SAFE_INTEGER, runId: '00000000-0000-0000-0000-000000000000' }
