// Another open transaction holds what one item of a batch concerns: a run, a run that watches it, a topic, a key. That item
// is answered as busy, and nothing of it has happened; all others of the batch are done while the lock is held.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Transition } from '../../src/core/model/transition.ts'
import { endOf, outbound } from '../../src/testing/contract/exchanges.ts'
import { cancelNow } from '../../src/testing/contract/requests.ts'
import type { ContractBench, Held } from '../../src/testing/contract/bench.ts'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { opened } from './proxied.ts'

const others = 9
const busy = { outcome: 'busy' }

interface Stranger {
  readonly client: Client
  /** Takes rows, for as long as the transaction lasts. */
  lock(table: 'runs' | 'topics', key: string): Promise<void>
  leave(): Promise<void>
}

interface Rig extends ContractBench {
  readonly stranger: Stranger
  readonly schema: string
}

async function rig(shards = 1): Promise<Rig> {
  const { url, schema } = await migratedSchema(shards)
  // A call that waits for a lock waits a fifteenth of this.
  const { store, bench } = await opened({ url, schema, shards, storageTimeout: 3_000 })
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('begin')
  onTestFinished(async () => {
    const broken = (await store.doctor()).filter(({ offenders }) => offenders.length > 0)
    expect(broken).toEqual([])
  })
  const stranger = {
    client,
    async lock(table: 'runs' | 'topics', key: string) {
      const column = table === 'runs' ? 'id' : 'name'
      await client.query(`select 1 from ${schema}.${table} where ${column} = $1 for update`, [key])
    },
    leave: async () => void (await client.query('commit')),
  }
  return { ...bench, stranger, schema }
}

/** Expects that one of a batch is busy and the rest is not, and that it is done once the stranger has left. */
async function expectAside<Item, Answer>(
  { stranger }: Rig,
  send: (items: readonly Item[]) => Promise<readonly Answer[]>,
  { items, locked, busy: isBusy, done }: { items: readonly Item[]; locked: Item; busy: object; done: object },
): Promise<void> {
  expect(await send(items)).toMatchObject(items.map((item) => (item === locked ? isBusy : done)))
  expect(await send([locked])).toMatchObject([isBusy])
  await stranger.leave()
  expect(await send([locked])).toMatchObject([done])
}

describe('what another transaction has locked', { timeout: 60_000 }, () => {
  it('a run that begins to wait for a locked one waits later, and others begin to wait with its batch', async () => {
    const bench = await rig()
    const target = await bench.start()
    const free = await bench.start()
    await bench.stranger.lock('runs', target.id)
    const held = await Promise.all(Array.from({ length: others + 1 }, () => bench.hold()))
    const items = held.map((one, index) =>
      bench.transition(one, { outbound: outbound({ watches: [endOf(index === 3 ? target.id : free.id)] }) }),
    )
    await expectAside(bench, (some) => bench.store.commit(some), {
      items,
      locked: items[3] as Transition,
      busy: { outcome: 'refused', reason: 'busy' },
      done: { outcome: 'committed' },
    })
    expect(await bench.run(target.id)).toMatchObject({ watched: true })
  })

  it('a run that begins to wait on a locked topic waits later, and starts no child before that', async () => {
    const bench = await rig()
    const prices = { kind: 'topic', name: 'prices', delivery: 'all', retainMs: 0 } as const
    await bench.deliver(bench.broadcast())
    await bench.stranger.lock('topics', 'prices')
    const held = await Promise.all(Array.from({ length: others }, () => bench.hold()))
    const parent = await bench.hold()
    const start = bench.child(parent.runId)
    const locked = bench.transition(parent, { outbound: outbound({ watches: [prices], starts: [start] }) })
    const quiet = { ...prices, name: 'quiet' }
    const items = [
      ...held.map((one) =>
        bench.transition(one, { outbound: outbound({ watches: [quiet], starts: [bench.child(one.runId)] }) }),
      ),
      locked,
    ]
    const send = async (some: readonly Transition[]) => {
      const answers = await bench.store.commit(some)
      if (some.includes(locked) && answers.some(({ outcome }) => outcome === 'refused')) {
        expect(await bench.store.get([start.run.id])).toEqual([undefined])
        expect(await bench.run(parent.runId)).toMatchObject({ seq: 1, watched: false })
      }
      return answers
    }
    await expectAside(bench, send, {
      items,
      locked,
      busy: { outcome: 'refused', reason: 'busy' },
      done: { outcome: 'committed' },
    })
    expect(await bench.store.get([start.run.id])).toMatchObject([{ id: start.run.id }])
  })

  it('a run that starts a child whose key is about to be taken waits, and other families are founded', async () => {
    const bench = await rig()
    const parents = await Promise.all(Array.from({ length: others + 1 }, () => bench.hold()))
    const starts = parents.map(({ runId }, index) => bench.child(runId, { key: `key ${index}` }))
    const within = bench.store as unknown as {
      inTransaction(tx: unknown): { start(runs: readonly unknown[]): Promise<unknown> }
    }
    await within.inTransaction(bench.stranger.client).start([bench.newRun({ key: 'key 4' })])
    const items = parents.map((held, index) =>
      bench.transition(held, { outbound: outbound({ starts: [starts[index] as (typeof starts)[0]] }) }),
    )
    await expectAside(bench, (some) => bench.store.commit(some), {
      items,
      locked: items[4] as Transition,
      busy: { outcome: 'refused', reason: 'busy' },
      done: { outcome: 'committed' },
    })
    const [refused] = await bench.mailbox((parents[4] as Held).runId)
    expect(refused).toMatchObject({ kind: 'refused' })
  })

  it.each([1, 4])('a start whose key is about to be taken waits alone, with %i shards', async (shards) => {
    const bench = await rig(shards)
    const within = bench.store as unknown as {
      inTransaction(tx: unknown): { start(runs: readonly unknown[]): Promise<unknown> }
    }
    const keys = Array.from({ length: others + 1 }, (_, index) => ({ key: `key ${index}` }))
    const ids = keys.map(({ key }) => ({ idempotencyKey: key }))
    await within
      .inTransaction(bench.stranger.client)
      .start([bench.newRun({ key: 'key 3' }), bench.newRun({ idempotencyKey: 'key 7' })])
    for (const [list, at] of [
      [keys, 3],
      [ids, 7],
    ] as const) {
      const runs = [...list.map((names) => bench.newRun(names)), bench.newRun()]
      const answers = await bench.store.start(runs)
      expect(answers.map(({ taken }) => taken)).toEqual(runs.map((_, index) => (index === at ? 'busy' : null)))
      expect(await bench.store.start([runs[at] as (typeof runs)[0]])).toEqual([
        { created: false, taken: 'busy', run: null },
      ])
    }
    await bench.stranger.leave()
    const late = await bench.store.start([bench.newRun({ key: 'key 3' }), bench.newRun({ idempotencyKey: 'key 7' })])
    expect(late.map(({ taken }) => taken)).toEqual(['key', 'idempotency-key'])
  })

  it.each([1, 4])(
    'a message to a locked run waits, and so does what was sent to it later, with %i shards',
    async (shards) => {
      const bench = await rig(shards)
      const runs = await Promise.all(Array.from({ length: others + 1 }, () => bench.start()))
      const [locked] = runs as [(typeof runs)[0]]
      await bench.stranger.lock('runs', locked.id)
      const messages = [...runs, locked, locked].map(({ id }) => bench.message(id))
      const expected = messages.map(({ runId }) => (runId === locked.id ? busy : { outcome: 'queued' }))
      expect(await bench.store.deliver(messages)).toMatchObject(expected)
      await bench.stranger.leave()
      const rest = messages.filter(({ runId }) => runId === locked.id)
      expect(await bench.store.deliver(rest)).toMatchObject(rest.map(() => ({ outcome: 'queued' })))
      expect((await bench.mailbox(locked.id)).map(({ id }) => id)).toEqual(rest.map(({ id }) => id))
    },
  )

  it('a broadcast to a locked topic waits, and one whose only reader is locked does not', async () => {
    const bench = await rig()
    const topics = Array.from({ length: others + 1 }, (_, index) => `topic ${index}`)
    const rules = topics.map((name) => ({ name, delivery: 'all', retainMs: 0 }) as const)
    await bench.store.deliver(rules.map((topic) => bench.broadcast({ topic })))
    const reader = await bench.hold()
    await bench.park(reader, { outbound: outbound({ watches: [{ kind: 'topic', ...rules[2] } as never] }) })
    await bench.stranger.lock('topics', 'topic 5')
    await bench.stranger.lock('runs', reader.runId)
    const sent = rules.map((topic) => bench.broadcast({ topic }))
    const answers = await bench.store.deliver(sent)
    expect(answers).toMatchObject(sent.map((_, index) => (index === 5 ? busy : { outcome: 'queued' })))
    await bench.stranger.leave()
    const late = await bench.store.deliver([5].map((index) => sent[index] as (typeof sent)[0]))
    expect(late).toEqual([{ outcome: 'queued', runs: 0 }])
    await until('the reader has got it', async () => {
      await bench.chores()
      return (await bench.mailbox(reader.runId)).length > 0
    })
    expect((await bench.mailbox(reader.runId)).map(({ name }) => name)).toEqual(['topic 2'])
  })

  it('what is asked of a locked run waits, and of the others it is done', async () => {
    const bench = await rig()
    const runs = await Promise.all(Array.from({ length: others + 1 }, () => bench.start()))
    const items = runs.map(({ id }) => ({ id: bench.unique('request'), runId: id, ...cancelNow }))
    await bench.stranger.lock('runs', (runs[6] as (typeof runs)[0]).id)
    await expectAside(bench, (some) => bench.store.control(some), {
      items,
      locked: items[6] as (typeof items)[0],
      busy,
      done: { outcome: 'done' },
    })
  })

  it('a lease on a locked run is given back later, and the others at once', async () => {
    const bench = await rig()
    const held = await Promise.all(Array.from({ length: others + 1 }, () => bench.hold()))
    const leases = held.map(({ runId, lease }) => ({ runId, ...lease }))
    const [locked] = leases as [(typeof leases)[0]]
    await bench.stranger.lock('runs', locked.runId)
    expect(await bench.store.release(leases)).toEqual([locked])
    expect(await bench.run(locked.runId)).toMatchObject({ status: 'running' })
    expect(await bench.run((held[1] as Held).runId)).toMatchObject({ status: 'pending' })
    await bench.stranger.leave()
    expect(await bench.store.release([locked])).toEqual([])
    expect(await bench.run(locked.runId)).toMatchObject({ status: 'pending' })
  })
})
