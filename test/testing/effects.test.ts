// The owner of the port for effects sees every attempt, of steps, undos and transactions, and decides what becomes of it.

import Database from 'libsql'
import { expect, it } from 'vitest'
import { createHoldfast, fatal, workflow } from '../../src/index.ts'
import type { Effects, Performance } from '../../src/core/runtime/ports.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { silentLogger } from '../../src/testing/index.ts'

it('every attempt goes through the port, and what the port returns is the result', async () => {
  const seen: Performance[] = []
  const effects: Effects = {
    perform(attempt, tools, work) {
      seen.push(attempt)
      return attempt.step === 'replaced' && !attempt.isUndo ? 'by the port' : work(tools)
    },
  }
  const undone: unknown[] = []
  const all = workflow('all', { retry: { maxAttempts: 1 } }, async (ctx) => {
    const result = await ctx.step('replaced', () => 'by the step', { undo: (value) => void undone.push(value) })
    await ctx.transaction('written', (tx, { attempt }) => {
      ;(tx as Database.Database).exec(`insert into written values (${attempt})`)
    })
    throw fatal(new Error(result))
  })
  const db = new Database(':memory:')
  db.exec('create table written (attempt integer)')
  const store = await openSqliteStore({ handle: db })
  const holdfast = await createHoldfast({ store, workflows: [all], logger: silentLogger, ports: { effects } })
  await holdfast.work({ signals: false })
  const run = await holdfast.start(all)
  await expect(run.result()).rejects.toMatchObject({ cause: { message: 'by the port' } })
  await holdfast.close()
  expect(seen).toEqual([
    { runId: run.id, step: 'replaced', attempt: 1, idempotencyKey: `${run.id}:1:replaced`, isUndo: false },
    { runId: run.id, step: 'written', attempt: 1, idempotencyKey: `${run.id}:1:written`, isUndo: false },
    { runId: run.id, step: 'replaced', attempt: 1, idempotencyKey: `${run.id}:1:replaced:undo`, isUndo: true },
  ])
  expect(undone).toEqual(['by the port'])
  expect(db.prepare('select attempt from written').all()).toEqual([{ attempt: 1 }])
})

it('what the port throws, or rejects with, fails the attempt', async () => {
  let calls = 0
  const effects: Effects = {
    perform(_attempt, tools, work) {
      calls += 1
      if (calls === 1) throw new Error('at once')
      return calls === 2 ? Promise.reject(new Error('later')) : work(tools)
    },
  }
  const thrice = workflow('thrice', { retry: { initial: 1 } }, async (ctx) =>
    ctx.step('step', ({ attempt }) => attempt),
  )
  const holdfast = await createHoldfast({
    store: 'memory:',
    workflows: [thrice],
    logger: silentLogger,
    ports: { effects },
  })
  await holdfast.work({ signals: false })
  expect(await (await holdfast.start(thrice)).result()).toBe(3)
  await holdfast.close()
})
