// Another open transaction holds what a rescue comes to. A run that is locked itself is rescued later, and one whose parent is
// locked now: that parent hears of it later. The orphans of dead workers that stand behind them are taken while the lock is held.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ContractBench } from '../../src/testing/contract/bench.ts'
import { outbound } from '../../src/testing/contract/exchanges.ts'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { opened } from './proxied.ts'

interface Rig extends ContractBench {
  /** Locks runs, for as long as the transaction lasts. */
  lock(runIds: readonly string[]): Promise<void>
  letGo(): Promise<void>
}

async function rig(): Promise<Rig> {
  const { url, schema } = await migratedSchema()
  const { bench } = await opened({ url, schema, storageTimeout: 3_000 })
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('begin')
  return {
    ...bench,
    lock: async (runIds) =>
      void (await client.query(`select 1 from ${schema}.runs where id = any($1) for update`, [runIds])),
    letGo: async () => void (await client.query('rollback')),
  }
}

/** A child that waits past its time, and its parent. */
async function lateChild(bench: ContractBench): Promise<{ readonly parent: string; readonly child: string }> {
  const parent = await bench.hold()
  const start = bench.child(parent.runId, { timeoutMs: 1 })
  await bench.commit(parent, { outbound: outbound({ starts: [start] }) })
  await bench.park(parent, { append: [], parkIf: { inbox: 0 } })
  return { parent: parent.runId, child: start.run.id }
}

/** A run whose worker has died. */
async function orphan(bench: ContractBench): Promise<string> {
  const session = bench.unique('dead')
  const held = await bench.hold({ lease: { session, token: 1 } })
  await bench.beat(session, { leaseMs: 1 })
  return held.runId
}

/** Rescues until it has found the orphan; a look that comes too early finds nothing. */
async function takenOver(bench: ContractBench, limit = 100): Promise<readonly string[]> {
  const all: string[] = []
  await until('something is taken over', async () => {
    const { takenOver: taken } = await bench.rescue({ limit })
    all.push(...taken.map(({ runId }) => runId))
    return all.length > 0
  })
  return all
}

describe('a rescue that comes to what another transaction has locked', { timeout: 60_000 }, () => {
  it('a run whose parent is locked is ended at once, and so is an orphan of a dead worker taken', async () => {
    const bench = await rig()
    const { parent, child } = await lateChild(bench)
    await bench.lock([parent])
    const dead = await orphan(bench)
    expect(await takenOver(bench)).toEqual([dead])
    expect(await bench.run(child)).toMatchObject({ status: 'failed' })
    await bench.chores()
    expect(await bench.run(parent)).toMatchObject({ inbox: 0 })
    await bench.letGo()
    await until('the parent has heard of it', async () => {
      await bench.chores()
      return (await bench.mailbox(parent)).length > 0
    })
    expect(await bench.mailbox(parent)).toHaveLength(1)
  })

  it('a locked run is there for the next look, soon; and that is no reason to look without a pause', async () => {
    const bench = await rig()
    const { child } = await lateChild(bench)
    await bench.lock([child])
    await until('it was found', async () => {
      const { next, now, more } = await bench.rescue()
      return !more && next !== null && next <= now
    })
    expect(await bench.run(child)).toMatchObject({ status: 'pending' })
    await bench.letGo()
    expect((await bench.rescue()).ended).toMatchObject([{ runId: child, reason: 'timed-out' }])
  })

  it('more locked ones than a look takes keep nobody from what stands behind them', async () => {
    const bench = await rig()
    const families = [await lateChild(bench), await lateChild(bench), await lateChild(bench)]
    const [first, ...rest] = [await orphan(bench), await orphan(bench), await orphan(bench)] as [string, ...string[]]
    // Orphans come before runs whose time is over.
    await bench.lock([...families.map(({ child }) => child), ...rest])
    const own = await lateChild(bench)
    const found: string[] = []
    await until('both were found', async () => {
      const { takenOver: taken, ended } = await bench.rescue({ limit: 2 })
      found.push(...[...taken, ...ended].map(({ runId }) => runId))
      return found.length === 2
    })
    expect(found.toSorted()).toEqual([first, own.child].toSorted())
    await bench.letGo()
    await until('the others are found', async () => {
      const { takenOver: taken, ended } = await bench.rescue({ limit: 2 })
      found.push(...[...taken, ...ended].map(({ runId }) => runId))
      return found.length === 7
    })
    expect(new Set(found)).toEqual(new Set([first, ...rest, own.child, ...families.map(({ child }) => child)]))
  })
})
