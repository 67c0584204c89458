// Every nemesis strikes once, on a real testbed with work in it, and hits; afterwards everything works again. What it leaves
// behind is judged elsewhere: here it is shown that a storm is one.

import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHoldfast, type Holdfast } from '../../src/index.ts'
import { Draw } from '../simulation/draw.ts'
import { openTestbed, type TestbedEvent, type StoreKind, type OpenTestbed } from './testbed.ts'
import { nemeses } from './nemeses/index.ts'
import { startStorm } from './storm.ts'
import { chaosWorkflows } from './workload.ts'

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
// Both versions of the code have it, and neither has changed it.
const { retry } = chaosWorkflows(null, 1)

describe.each<StoreKind>(['sqlite', 'postgres'])('on %s', { timeout: 60_000 }, (store) => {
  const events: TestbedEvent[] = []
  let testbed: OpenTestbed
  let client: Holdfast
  let isOver = false
  let load: Promise<void>

  beforeAll(async () => {
    testbed = await openTestbed({ store, workers: 2, leaseMs: 1_500, onEvent: (event) => events.push(event) })
    client = await createHoldfast({ store: testbed.url, workflows: [retry], logger: silent })
    load = keepBusy()
  }, 60_000)

  afterAll(async () => {
    isOver = true
    await load
    await client.close()
    await testbed.close()
  }, 60_000)

  /** Without work a nemesis hits nobody. */
  async function keepBusy(): Promise<void> {
    for (let n = 1; !isOver; n += 1) {
      // A server that is down is down for this client, too: then it comes later.
      await client.start(retry, { n: `${n}`, ms: 50, failures: 0 })
      await setTimeout(60)
    }
  }

  // Once is enough; the storm has some of those again that fit every store.
  const own = nemeses.filter(({ stores }) => stores.at(-1) === store).map((one) => [one.name, one] as const)

  it.each(own)('%s strikes, and is taken back', async (_, nemesis) => {
    const last = (ms: number): Promise<void> => setTimeout(Math.min(ms, 300))
    // A blow may hit nothing, as when nobody asks for anything while statements are cancelled: then it is dealt again, as in
    // a storm.
    let blow = 0
    const strike = (): Promise<boolean> => nemesis.strike(testbed, Draw.of(1, 'nemesis', ++blow), last)
    await expect.poll(strike, { timeout: 30_000 }).toBe(true)
    await testbed.heal()
    const run = await client.start(retry, { n: 'after', ms: 1, failures: 0 })
    expect(await run.result({ timeout: '20s' })).toEqual(['stubborn of after'])
  })

  it('lets every worker claim and rescue, also the one with a single slot', async () => {
    const claimers = (): ReadonlySet<string | undefined> => {
      const claims = testbed.calls().filter(({ f, ok, runs = [] }) => f === 'claim' && ok && runs.length > 0)
      return new Set(claims.map(({ worker }) => worker.split('.')[0]))
    }
    // A backlog that lasts longer than anybody sleeps: on its own the one with more slots may be faster every time.
    const pushMore = async (): Promise<ReadonlySet<string | undefined>> => {
      if (claimers().size < 2) {
        const backlog = Array.from({ length: 100 }, (_, n) => ({ n: `backlog ${n}`, ms: 50, failures: 0 }))
        await Promise.all(backlog.map((input) => client.start(retry, input)))
      }
      return claimers()
    }
    await expect.poll(pushMore, { timeout: 30_000, interval: 500 }).toEqual(new Set(['w1', 'w2']))
    await expect
      .poll(() => testbed.calls().filter(({ f }) => f === 'rescue').length, { timeout: 30_000 })
      .toBeGreaterThan(0)
  })

  it('strikes one after another in a storm, until it is over', async () => {
    const only = ['kill', 'stand-still']
    const storm = startStorm(testbed, { seed: 1, only })
    await expect.poll(() => Math.min(...storm.counts.values()), { timeout: 30_000 }).toBeGreaterThan(0)
    await storm.stop()
    const struck = [...storm.counts.values()]
    await testbed.heal()
    expect([...storm.counts.keys()]).toEqual(only)
    expect([...storm.counts.values()]).toEqual(struck)
    expect(() => startStorm(testbed, { seed: 1, only: ['meteor'] })).toThrow('No such nemesis')
  })

  it('says what happened to whom, and that nothing happened that must not', () => {
    expect(events.filter(({ kind }) => kind === 'violation')).toEqual([])
    const died = testbed.supervisor.workers.filter(({ exit }) => exit !== null)
    expect(died.length).toBeGreaterThan(0)
    // Every effect is of a tenure that is known to be over, or of one that is not yet.
    const alive = new Set(testbed.supervisor.posts.map(({ worker }) => worker.id))
    const effects = testbed.effects()
    expect(effects.length).toBeGreaterThan(50)
    const { goneAt } = testbed
    const unknown = effects.filter(({ worker }) => !goneAt.has(worker) && !alive.has(worker.split('/')[0] ?? ''))
    expect(unknown).toEqual([])
    expect(testbed.workers.at(-1)?.tail.length).toBeGreaterThan(0)
  })
})

describe('strangers on Postgres', { timeout: 60_000 }, () => {
  const events: TestbedEvent[] = []
  let testbed: OpenTestbed
  let client: Holdfast
  let isOver = false
  let load: Promise<void>

  beforeAll(async () => {
    testbed = await openTestbed({
      store: 'postgres',
      workers: 3,
      leaseMs: 1_500,
      onEvent: (event) => events.push(event),
    })
    client = await createHoldfast({ store: testbed.url, workflows: [retry], logger: silent })
    load = keepBusy()
  }, 60_000)

  afterAll(async () => {
    isOver = true
    await load
    await client.close()
    await testbed.close()
  }, 60_000)

  async function keepBusy(): Promise<void> {
    for (let n = 1; !isOver; n += 1) {
      await client.start(retry, { n: `${n}`, ms: 50, failures: 0 })
      await setTimeout(20)
    }
  }

  /** Strikes, looks while what was struck lasts, and then lets it be over. */
  async function whileStruck<Seen>(name: string, look: () => Promise<Seen>): Promise<Seen> {
    const nemesis = nemeses.find((one) => one.name === name)
    if (nemesis === undefined) throw new Error(`There is no ${name}.`)
    for (let blow = 1; ; blow += 1) {
      let seen: { readonly value: Seen } | null = null
      const hit = await nemesis.strike(testbed, Draw.of(1, 'nemesis', blow), async () => {
        seen = { value: await look() }
      })
      const found = seen as { readonly value: Seen } | null
      if (hit && found !== null) return found.value
    }
  }

  const heldRuns = (): readonly string[] =>
    events.findLast(({ details }) => details?.['holds'])?.details?.['holds'] as []

  /** What nobody can lock now. */
  function locked(runs: readonly string[]): Promise<readonly string[]> {
    return testbed.server.connected(async (outsider) => {
      const sql = 'select id from runs where id = any($1) for update skip locked'
      const { rows } = await outsider.query<{ readonly id: string }>(sql, [runs])
      const free = rows.map(({ id }) => id)
      return runs.filter((id) => !free.includes(id))
    })
  }

  it('row-lock holds rows of runs that nobody else can lock', async () => {
    const { runs, stuck } = await whileStruck('row-lock', async () => {
      return { runs: heldRuns(), stuck: await locked(heldRuns()) }
    })
    expect(runs.length).toBeGreaterThan(0)
    expect(stuck).toEqual(runs)
    expect(events.at(-1)?.details).toEqual({ frees: runs })
    await expect.poll(() => locked(runs)).toEqual([])
  })

  it('head-lock holds ready runs: nobody claims them until they are let go, and then a worker does', async () => {
    const { runs, states } = await whileStruck('head-lock', async () => {
      const ids = heldRuns()
      // So many others come, and begin, that these were looked at again and again.
      const others = Array.from({ length: 40 }, (_, n) => client.start(retry, { n: `other ${n}`, ms: 1, failures: 0 }))
      for (const other of await Promise.all(others)) await other.result({ timeout: '20s' })
      const states = await Promise.all(ids.map(async (id) => (await client.get(id))?.status))
      return { runs: ids, states }
    })
    expect(runs.length).toBeGreaterThan(0)
    expect(new Set(states)).toEqual(new Set(['pending']))
    for (const id of runs) await expect.poll(async () => (await client.get(id))?.status).toBe('succeeded')
  })

  it('snapshot-held keeps one snapshot while others commit, and comes back when it is thrown out', async () => {
    const snapshots = (): Promise<readonly { readonly pid: number; readonly xmin: string; readonly age: number }[]> =>
      testbed.server.connected(async (outsider) => {
        const { rows } = await outsider.query<{ readonly pid: number; readonly xmin: string; readonly age: number }>(
          `select pid, backend_xmin::text as xmin, age(backend_xmin) as age from pg_stat_activity
           where application_name = 'outsider' and state = 'idle in transaction' and backend_xmin is not null`,
        )
        return rows
      })
    const storm = startStorm(testbed, { seed: 1, only: ['snapshot-held', 'terminate'] })
    const [first] = await expect.poll(snapshots).toHaveLength(1).then(snapshots)
    await expect.poll(async () => (await snapshots())[0]?.age).toBeGreaterThan((first?.age ?? 0) + 50)
    expect((await snapshots()).map(({ pid, xmin }) => ({ pid, xmin }))).toEqual([
      { pid: first?.pid, xmin: first?.xmin },
    ])
    await testbed.server.connected((outsider) => outsider.query('select pg_terminate_backend($1)', [first?.pid]))
    await expect.poll(async () => (await snapshots())[0]?.pid ?? first?.pid).not.toBe(first?.pid)
    await storm.stop()
    expect(await snapshots()).toEqual([])
    expect(storm.counts.get('snapshot-held')).toBe(2)
  })

  it('pool-empty leaves a worker without a connection, also one that was lent its pool', async () => {
    for (const post of testbed.supervisor.posts) {
      await expect.poll(() => post.worker.isWorking).toBe(true)
      expect(await post.worker.withhold(1_000)).toBeGreaterThan(0)
    }
    expect(testbed.supervisor.posts.map(({ name }) => name)).toContain('w3')
    const run = await client.start(retry, { n: 'after', ms: 1, failures: 0 })
    expect(await run.result({ timeout: '20s' })).toEqual(['stubborn of after'])
    expect(events.filter(({ kind }) => kind === 'violation')).toEqual([])
  })
})
