// Another open transaction holds the row of a run whose holder says that it is alive. The run's deadline cannot be moved
// meanwhile; the session must be kept all the same, and with it everything else that the worker holds.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt, opened } from './proxied.ts'

async function stranger(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

describe('a heartbeat whose run is locked by another transaction', { timeout: 120_000 }, () => {
  it('is committed while the lock is held, and the next one moves the deadline', async () => {
    const { url, schema } = await migratedSchema()
    const { store, bench } = await opened({ url, schema })
    const lease = { session: 'me', token: 1 }
    await bench.beat('me', { leaseMs: 600_000 })
    const [locked, other] = [
      await bench.hold({ lease, leaseMs: 300_000 }),
      await bench.hold({ lease, leaseMs: 300_000 }),
    ]
    const before = await bench.run(locked.runId)
    const user = await stranger(url)
    await user.query('begin')
    await user.query(`select 1 from ${schema}.runs where shard = 0 and id = $1 for update`, [locked.runId])
    const held = [locked, other].map(({ runId }) => ({ runId, token: 1, extendMs: 500_000 }))
    const say = () => store.beat({ session: 'me', leaseMs: 900_000, held, seeksUnknownLeases: false })

    const answer = await say()
    expect(answer).toMatchObject({ alive: true, lost: [], busy: [locked.runId] })
    // The lock is still there: what was kept and what was moved, was so in spite of it.
    const { rows } = await user.query<{ until: string }>(`select alive_until as until from ${schema}.sessions`)
    expect(Number(rows[0]?.until)).toBe(answer.now + 900_000)
    expect((await bench.run(locked.runId)).deadline).toBe(before.deadline)
    expect((await bench.run(other.runId)).deadline).toBeGreaterThanOrEqual(answer.now + 500_000)

    await user.query('commit')
    const again = await say()
    expect(again.busy).toBeUndefined()
    expect((await bench.run(locked.runId)).deadline).toBeGreaterThanOrEqual(again.now + 500_000)
  })

  it('is not taken over, nor is its worker found dead, if the lock ends before the deadline', async () => {
    const { url, schema } = await migratedSchema()
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    const begun: number[] = []
    const slow = workflow('slow', { lease: '9s' }, async (ctx, number: number) =>
      ctx.step('work', async (step) => {
        begun.push(number)
        const alive = setInterval(() => step.heartbeat(), 100)
        await gate.finally(() => clearInterval(alive))
        return number
      }),
    )
    const holdfast = await holdfastAt({ store: `${url}?schema=${schema}`, workflows: [slow] })
    await holdfast.work({ lease: '9s', heartbeat: '300ms' })
    const rescuer = await holdfastAt({ store: `${url}?schema=${schema}`, workflows: [slow] })
    await rescuer.work({ lease: '9s', heartbeat: '300ms', concurrency: 1 })
    const runs = await Promise.all([0, 1, 2].map((number) => holdfast.start(slow, number)))
    await until('all have begun', () => begun.length === 3, 60_000)
    const user = await stranger(url)
    const deadlineOf = async (): Promise<number> => {
      const { rows } = await user.query<{ deadline: string }>(
        `select deadline from ${schema}.runs where shard = 0 and id = $1`,
        [runs[0]?.id],
      )
      return Number(rows[0]?.deadline)
    }
    await user.query('begin')
    await user.query(`select 1 from ${schema}.runs where shard = 0 and id = $1 for update`, [runs[0]?.id])
    const behind = await deadlineOf()
    // The sessions are kept by many beats while the row is locked.
    const beats = async (): Promise<number> => {
      const { rows } = await user.query<{ least: string }>(`select min(alive_until) as least from ${schema}.sessions`)
      return Number(rows[0]?.least)
    }
    const first = await beats()
    await until('both sessions were kept meanwhile', async () => (await beats()) > first + 1_500, 60_000)
    expect(await deadlineOf()).toBe(behind)
    await user.query('commit')
    await until('the next beat moves the deadline', async () => (await deadlineOf()) > behind, 60_000)
    open()
    expect(await Promise.all(runs.map((run) => run.result({ timeout: '40s' })))).toEqual([0, 1, 2])
    expect(begun.toSorted((a, b) => a - b)).toEqual([0, 1, 2])
    const { rows } = await user.query(`select 1 from ${schema}.journal where kind = 'crashed'`)
    expect(rows).toEqual([])
  })
})
