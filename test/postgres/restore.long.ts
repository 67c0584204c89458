// A database that was restored to a moment in its past, from a base backup and the archived log, as after an operator dropped a
// table. What docs/scaling.md says of it: everything goes on from that moment; steps that were recorded later are performed
// again, with the same idempotency key; leases of that moment are taken over; timers that have become due fire; signals that
// were accepted later are gone.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { copyRunning, give } from '../support/base-backup.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { accountOf, makeServerFolder } from '../support/server-folder.ts'
import { holdfastAt } from './proxied.ts'

/** What the steps did in the world, by the idempotency key of each. */
const charged: string[] = []
const shipped: string[] = []
let isHanging = true

const order = workflow('restore.order', async (ctx, _id: string) => {
  await ctx.step('charge', ({ idempotencyKey }) => void charged.push(idempotencyKey))
  await ctx.sleep('2s')
  await ctx.step('ship', ({ idempotencyKey }) => void shipped.push(idempotencyKey))
  return ctx.now()
})

const approval = workflow('restore.approval', async (ctx) => {
  await ctx.receive('approved')
  return 'approved'
})

/** Its process is in the middle of its step at the moment of the restore. */
const held = workflow('restore.held', (ctx) =>
  ctx.step('hang', async ({ attempt }) => {
    while (isHanging) await setTimeout(10)
    return attempt
  }),
)

const workflows = [order, approval, held]

async function ask(url: string, text: string): Promise<string> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ readonly answer: string }>(text)
    return rows[0]?.answer ?? ''
  } finally {
    await client.end()
  }
}

/** A server as the one that was copied into `data` was at that time. */
async function restore(data: string, archive: string, time: string, url: string): Promise<Cluster> {
  const signal = join(data, 'recovery.signal')
  writeFileSync(signal, '')
  give(signal)
  const restored = await startPostgres({
    version: 'embedded',
    settings: {
      restore_command: `cp ${archive}/%f %p`,
      recovery_target_time: time,
      recovery_target_action: 'promote',
      archive_mode: 'off',
    },
    dataDir: data,
    password: new URL(url).password,
  })
  onTestFinished(() => restored.remove())
  await expect.poll(() => ask(restored.url, 'select pg_is_in_recovery()::text as answer')).toBe('false')
  return restored
}

describe('a restore to a point in time', { timeout: 180_000 }, () => {
  it('goes on from that moment, with the same idempotency keys, and loses what came after it', async () => {
    const folder = makeServerFolder('restore', accountOf())
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const [data, archive] = [join(folder, 'data'), join(folder, 'archive')]
    for (const path of [data, archive]) {
      mkdirSync(path, { mode: 0o700 })
      give(path)
    }
    const archiving = { archive_mode: 'on', archive_command: `cp %p ${archive}/%f` }
    const cluster = await startPostgres({ version: 'embedded', settings: archiving })
    onTestFinished(() => cluster.remove())
    const before = await holdfastAt({ store: `${cluster.url}?schema=restored`, workflows })
    await before.work({ lease: '3s', heartbeat: '500ms' })
    await copyRunning(cluster.url, data)

    const early = await before.start(order, 'early')
    const waiting = await before.start(approval)
    const leased = await before.start(held)
    await expect.poll(() => charged.length).toBe(1)
    await expect.poll(async () => (await before.get(early.id)).status).toBe('waiting')
    await expect.poll(async () => (await before.get(waiting.id)).status).toBe('waiting')
    const moment = await ask(cluster.url, 'select clock_timestamp()::text as answer')
    const target = new Date(await ask(cluster.url, 'select clock_timestamp()::text as answer'))
    // Past the precision of the moment, so that what follows is after it.
    await setTimeout(50)

    const late = await before.start(order, 'late')
    await before.signal(waiting, 'approved')
    expect(await waiting.result({ timeout: '20s' })).toBe('approved')
    await early.result({ timeout: '20s' })
    await late.result({ timeout: '20s' })
    expect(shipped).toHaveLength(2)
    isHanging = false
    await leased.result({ timeout: '20s' })
    await before.close()
    await ask(cluster.url, 'select pg_switch_wal()::text as answer')
    await cluster.stop()

    const restored = await restore(data, archive, moment, cluster.url)
    const after = await holdfastAt({ store: `${restored.url}?schema=restored`, workflows })
    await expect(after.get(late.id)).rejects.toThrow('There is no run')
    expect((await after.get(early.id)).status).toBe('waiting')
    expect((await after.get(leased.id)).status).toBe('running')
    await after.work({ lease: '3s', heartbeat: '500ms' })

    await after.run(early.id).result({ timeout: '30s' })
    expect(charged.filter((key) => key === charged[0])).toHaveLength(1)
    expect(shipped.filter((key) => key === shipped[0])).toHaveLength(2)
    const entries = await after.journal(early.id)
    const slept = entries.find(({ kind }) => kind === 'woken')
    expect(slept?.at.getTime()).toBeGreaterThan(target.getTime())
    // The process that held it is gone: it is taken over when the lease of that moment is over.
    await after.run(leased.id).result({ timeout: '30s' })
    expect((await after.get(waiting.id)).status).toBe('waiting')
    await after.signal(waiting.id, 'approved')
    await expect.poll(async () => (await after.get(waiting.id)).status).toBe('succeeded')
    expect((await after.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    await after.close()
  })
})
