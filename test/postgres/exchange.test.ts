// What passes between runs when the two sides meet at the same moment, over two stores that know nothing of each other: an end
// and who begins to watch it, a broadcast and who begins to wait for it, a message and the end of its run. The one that comes
// first, nothing is lost and nothing comes twice. Then: what is locked in two orders, who is found late, and users'
// transactions.

import { Client } from 'pg'
import { expect, test } from 'vitest'
import type { WaitTarget } from '../../src/core/model/wait-target.ts'
import { sentId } from '../../src/core/model/message.ts'
import type { Committed } from '../../src/store.ts'
import type { PostgresStore } from '../../src/stores/postgres/index.ts'
import { commitOne, deliverOne, type ContractBench, type Held } from '../../src/testing/contract/bench.ts'
import { ending, waiting } from '../../src/testing/contract/drafts.ts'
import { freshDatabase } from '../support/postgres-shared.ts'
import { opened } from './proxied.ts'

const queue = { name: 'jobs', delivery: 'one', retainMs: 0 } as const
const news = (name: string) => ({ name, delivery: 'all', retainMs: 0 }) as const
const onRun = (runId: string): WaitTarget => ({ kind: 'run', runId })
const ended = { append: [ending('succeeded')], status: 'succeeded' } as const

/** Two stores on one database that nobody else uses. */
async function two(shards = 1): Promise<{
  readonly url: string
  readonly store: PostgresStore
  readonly other: PostgresStore
  readonly bench: ContractBench
}> {
  const url = await freshDatabase()
  const { store, bench } = await opened({ url, shards })
  const { store: other } = await opened({ url, shards })
  return { url, store, other, bench }
}

/** Parks a run that watches something from then on. */
const parking = ({ transition }: ContractBench, held: Held, ...watches: readonly WaitTarget[]) =>
  transition(held, {
    append: [waiting()],
    status: 'waiting',
    parkIf: { inbox: 0 },
    outbound: { starts: [], watches, unwatches: [] },
  })

/** Two things one after the other, the other way round, or at once, the first of them a little late. */
async function race<One, Other>(
  turn: number,
  first: () => Promise<One>,
  second: () => Promise<Other>,
): Promise<readonly [One, Other]> {
  if (turn % 20 === 0) return [await first(), await second()]
  if (turn % 20 === 1) {
    const other = await second()
    return [await first(), other]
  }
  const late = async (): Promise<One> => {
    for (let turns = turn % 10; turns > 0; turns -= 1) await new Promise(setImmediate)
    return first()
  }
  return Promise.all([late(), second()])
}

async function deadlocksIn(url: string): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('select pg_stat_force_next_flush()')
    const text = 'select deadlocks::integer as deadlocks from pg_stat_database where datname = current_database()'
    return (await client.query<{ deadlocks: number }>(text)).rows[0]?.deadlocks ?? -1
  } finally {
    await client.end()
  }
}

async function unsound(store: PostgresStore): Promise<readonly unknown[]> {
  return (await store.doctor()).filter(({ offenders }) => offenders.length > 0)
}

test('an end and who begins to watch it, at the same moment: nobody waits for what is over, 200 times', async () => {
  const { store, other, bench } = await two()
  const tally = { woken: 0, delivered: 0 }
  for (let turn = 0; turn < 200; turn += 1) {
    const [watcher, target] = await Promise.all([bench.hold(), bench.hold()])
    const park = parking(bench, watcher, onRun(target.runId))
    const end = bench.transition(target, ended)
    const [parked] = await race(
      turn,
      () => commitOne(store, park),
      () => commitOne(other, end),
    )
    const run = await bench.run(watcher.runId)
    expect(run.inbox).toBe(1)
    const { released } = parked as Extract<Committed, { outcome: 'committed' }>
    expect([run.status, run.readiness]).toEqual(released ? ['waiting', 'ready'] : ['running', 'leased'])
    tally[released ? 'woken' : 'delivered'] += 1
  }
  expect(tally.woken).toBeGreaterThan(0)
  expect(tally.delivered).toBeGreaterThan(0)
  expect(await unsound(store)).toEqual([])
})

test('a queue and who begins to wait on it, at the same moment: each gets one, and nothing is left over', async () => {
  const { store, other, bench } = await two()
  for (let turn = 0; turn < 200; turn += 1) {
    const held = await bench.hold()
    const park = parking(bench, held, { kind: 'topic', ...queue })
    const send = bench.broadcast({ topic: queue })
    await race(
      turn,
      () => commitOne(store, park),
      () => deliverOne(other, send),
    )
    expect((await bench.mailbox(held.runId)).map(sentId)).toEqual([send.id])
  }
  expect(await unsound(store)).toEqual([])
})

test('a message and the end of its run, at the same moment: a dead letter is kept whichever comes first', async () => {
  const { store, other, bench } = await two()
  const policy = { onUnread: 'dead-letter' } as const
  const outcomes = new Set<string>()
  for (let turn = 0; turn < 200; turn += 1) {
    const held = await bench.hold()
    const end = bench.transition(held, { ...ended, emptyAt: 0 })
    const message = bench.message(held.runId, { policy })
    const [, { outcome }] = await race(
      turn,
      () => commitOne(store, end),
      () => deliverOne(other, message),
    )
    outcomes.add(outcome)
    expect(await store.deadLetters({ runId: held.runId }, { limit: 10 })).toHaveLength(1)
    expect(await bench.mailbox(held.runId)).toEqual([])
  }
  expect([...outcomes].toSorted()).toEqual(['queued', 'target-terminated'])
  expect(await unsound(store)).toEqual([])
})

test('a child that ends and the parent that hears of it are one transaction', async () => {
  const { url, store, bench } = await two()
  const parent = await bench.hold()
  const child = bench.child(parent.runId)
  await bench.commit(parent, {
    append: [waiting()],
    status: 'waiting',
    parkIf: { inbox: 0 },
    outbound: { starts: [child], watches: [], unwatches: [] },
  })
  const held = await bench.take(child.run.id)
  await bench.commit(held, ended)
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ status: string; inbox: number; by: string }>(
    'select status, inbox, xmin::text as by from holdfast.runs order by id',
  )
  await client.end()
  expect(rows.map(({ status, inbox }) => [status, inbox])).toEqual([
    ['waiting', 1],
    ['succeeded', 0],
  ])
  expect(new Set(rows.map(({ by }) => by)).size).toBe(1)
  expect(await unsound(store)).toEqual([])
})

test.for([1, 4])(
  'broadcasts to two topics and runs that begin to wait on both, in both orders, never wait for each other (%i shards)',
  async (shards) => {
    const { url, store, other, bench } = await two(shards)
    const topics = ['a', 'b'].map(news)
    const held = await Promise.all(Array.from({ length: 40 }, () => bench.hold()))
    const parks = held.map((one, index) => {
      const watches = topics.map((topic): WaitTarget => ({ kind: 'topic', ...topic }))
      return parking(bench, one, ...(index % 2 === 0 ? watches : watches.toReversed()))
    })
    const sends = Array.from({ length: 40 }, (_, index) => {
      const pair = topics.map((topic) => bench.broadcast({ topic }))
      return index % 2 === 0 ? pair : pair.toReversed()
    })
    const [parked, sent] = await Promise.all([
      Promise.all(parks.map((park, index) => commitOne(index % 3 === 0 ? store : other, park))),
      Promise.all(sends.map((pair, index) => (index % 2 === 0 ? store : other).deliver(pair))),
    ])
    expect(parked.every(({ outcome }) => outcome === 'committed')).toBe(true)
    const delivered = sent.flat().reduce((sum, one) => sum + ('runs' in one ? (one.runs ?? 0) : 0), 0)
    const rows = await store.get(held.map(({ runId }) => runId))
    // Everyone whom a broadcast says it went to has it.
    expect(rows.reduce((sum, run) => sum + (run?.inbox ?? 0), 0)).toBe(delivered)
    expect(await deadlocksIn(url)).toBe(0)
    expect(await unsound(store)).toEqual([])
  },
)

test('parents and children that end at the same moment, in batches, never wait for each other', async () => {
  const { url, store, other, bench } = await two()
  const families = await Promise.all(
    Array.from({ length: 60 }, async () => {
      const parent = await bench.hold()
      const child = bench.child(parent.runId)
      await bench.commit(parent, { outbound: { starts: [child], watches: [], unwatches: [] } })
      return { parent, child: child.run.id }
    }),
  )
  const { runs } = await bench.claim({ session: 'children' })
  const children = runs.map(({ id, token, seq }): Held => ({ runId: id, lease: { session: 'children', token }, seq }))
  const ends = (held: readonly Held[]) => held.map((one) => bench.transition(one, ended))
  await Promise.all([
    store.commit(ends(families.map(({ parent }) => parent))),
    other.commit(ends(children.toReversed())),
  ])
  // A child whose parent was quicker is being cancelled, and could not end as it wanted to.
  const found = await store.get(families.flatMap(({ parent, child }) => [parent.runId, child]))
  expect(found.every((run) => run?.status === 'succeeded' || run?.status === 'cancelling')).toBe(true)
  expect(await deadlocksIn(url)).toBe(0)
  expect(await unsound(store)).toEqual([])
})

test('a child that its parent cancels in the same batch starts nobody with the end that it does not get', async () => {
  const { store, bench } = await two()
  const parent = await bench.hold()
  const child = bench.child(parent.runId)
  await bench.commit(parent, { outbound: { starts: [child], watches: [], unwatches: [] } })
  const held = await bench.take(child.run.id)
  const grandchild = bench.child(held.runId)
  const answers = await store.commit([
    bench.transition(parent, ended),
    bench.transition(held, { ...ended, outbound: { starts: [grandchild], watches: [], unwatches: [] } }),
  ])
  expect(answers.map((one) => (one.outcome === 'refused' ? one.reason : one.outcome))).toEqual([
    'committed',
    'cancelling',
  ])
  expect(await store.get([grandchild.run.id])).toEqual([undefined])
  expect(await unsound(store)).toEqual([])
})

test('what a run has not read when it ends goes, once, to one who begins to wait in the same batch', async () => {
  const { store, bench } = await two()
  const topic = { kind: 'topic', ...queue } as const
  const policy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 } as const
  const [first, second] = [await bench.hold(), await bench.hold()]
  // What the first has not read goes to the queue with its end, and from there to the second, all in one transaction.
  await bench.deliver(bench.message(first.runId, { name: queue.name, kind: 'topic-signal', policy, id: 'order-1' }))
  const [, parked] = await store.commit([bench.transition(first, ended), parking(bench, second, topic)])
  expect(parked).toMatchObject({ outcome: 'committed', released: false, inbox: 1 })
  expect((await bench.mailbox(second.runId)).map(sentId)).toEqual([`order-1@${first.runId}/${first.runId}.1`])
  expect(await unsound(store)).toEqual([])
})

test('a queue on which many waited that are over finds the one that is not', async () => {
  const { store, bench } = await two()
  const topic = { kind: 'topic', ...queue } as const
  const over = await Promise.all(Array.from({ length: 30 }, () => bench.hold()))
  for (const held of over) await bench.commit(held, { outbound: { starts: [], watches: [topic], unwatches: [] } })
  await store.commit(over.map((held) => bench.transition(held, ended)))
  const live = await bench.hold()
  await store.commit([parking(bench, live, topic)])
  expect(await bench.deliver(bench.broadcast({ topic: queue }))).toEqual({ outcome: 'delivered', runs: 1 })
  expect((await bench.run(live.runId)).readiness).toBe('ready')
  expect(await bench.deliver(bench.broadcast({ topic: queue }))).toEqual({ outcome: 'queued', runs: 0 })
  expect(await unsound(store)).toEqual([])
})

test('in the transaction of a user an end is notified, and a broadcast goes out, if and only if it commits', async () => {
  const { store, bench } = await two()
  const [watcher, target, subscriber] = [await bench.hold(), await bench.hold(), await bench.hold()]
  const topic = news('news')
  await store.commit([parking(bench, watcher, onRun(target.runId))])
  await store.commit([parking(bench, subscriber, { kind: 'topic', ...topic })])
  const act = (wanted: boolean) =>
    store.transact(async (_handle, within) => {
      const [committed] = await within.commit([bench.transition(target, ended)])
      expect(committed?.outcome).toBe('committed')
      expect(await within.deliver([bench.broadcast({ topic })])).toEqual([{ outcome: 'delivered', runs: 1 }])
      if (!wanted) throw new Error('not after all')
    })
  await expect(act(false)).rejects.toThrow('not after all')
  expect((await store.get([watcher.runId, subscriber.runId])).map((run) => run?.inbox)).toEqual([0, 0])
  await act(true)
  expect((await store.get([watcher.runId, subscriber.runId])).map((run) => run?.inbox)).toEqual([1, 1])
  expect(await unsound(store)).toEqual([])
})
