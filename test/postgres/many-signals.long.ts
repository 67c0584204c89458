// A million signals to one run. It reads as many as it can; memory stays within bounds, and other runs go on meanwhile.

import { describe, expect, it } from 'vitest'
import { workflow } from '../../src/functions/api/workflow.ts'
import { createHoldfast } from '../../src/holdfast.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { freshSchema } from '../support/postgres-shared.ts'

const signals = 1_000_000
const atOnce = 2_000
/** What a worker may take for all of it, far below what the signals themselves take. */
const mostBytes = 300 * 1024 * 1024

const hoarder = workflow('many.hoarder', async (ctx, read: number) => {
  for (let count = 0; count < 200; count += 1) await ctx.receive('more')
  ctx.expose('read', read + 200)
  return ctx.continueAsNew(read + 200)
})
const other = workflow('many.other', (ctx, order: number) => ctx.step('work', () => order))

describe('a million signals to one run', { timeout: 1_200_000 }, () => {
  it('WC-N1 IF-C1 take bounded memory, lose nothing, and hold up no other run', async () => {
    const { url, schema } = await freshSchema()
    // What is left unread is settled when the run ends, in the same transaction: that takes its time.
    const store = await openPostgresStore({ url, schema, storageTimeout: '3min' })
    const holdfast = await createHoldfast({ store, workflows: [hoarder, other], limits: { mailbox: 2 * signals } })
    await holdfast.work({ concurrency: 10, signals: false })
    const run = await holdfast.start(hoarder, 0)
    const before = process.memoryUsage().rss
    let most = 0
    let slowest = 0
    for (let sent = 0; sent < signals; sent += atOnce) {
      const answers = await holdfast.signals(
        Array.from({ length: atOnce }, (_, index) => ({ to: run.id, name: 'more', payload: sent + index })),
      )
      expect(answers.length).toBe(atOnce)
      most = Math.max(most, process.memoryUsage().rss - before)
      if (sent % 50_000 !== 0) continue
      const began = performance.now()
      expect(await (await holdfast.start(other, sent)).result({ timeout: '60s' })).toBe(sent)
      slowest = Math.max(slowest, performance.now() - began)
    }
    const read = Number(await holdfast.query(run, 'read'))
    const [row] = await store.get([run.id])
    console.log(
      `1,000,000 signals: ${read} read meanwhile, ${Math.round(most / 1024 / 1024)} MiB more, ` +
        `the slowest other run took ${Math.round(slowest)} ms`,
    )
    expect(row?.inbox).toBe(signals)
    expect(read).toBeGreaterThan(0)
    expect(most).toBeLessThan(mostBytes)
    const unread = process.memoryUsage().rss
    await holdfast.cancel(run, { mode: 'now' })
    expect(process.memoryUsage().rss - unread).toBeLessThan(mostBytes)
    expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    await holdfast.close()
    await store.close()
  })
})
