// One end, one broadcast and one take stay small on a real Postgres, however full the mailboxes are: what each statement reads,
// what others of the same process notice, and who goes on when a process is killed.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { defaultPageLimits } from '../../src/core/model/chore.ts'
import { createContractBench, type ContractBench, type Held } from '../../src/testing/contract/bench.ts'
import { ending } from '../../src/testing/contract/drafts.ts'
import { childProgram } from '../support/child-program.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { openExplainedStore, type Explained } from './explained-store.ts'
import { crowd, deadLetters, fill, hoarder } from './hoarder.ts'
import { holdfastAt, opened } from './proxied.ts'

const minute = 60_000

interface Filled {
  readonly bench: ContractBench
  readonly held: Held
  readonly explain: (call: () => Promise<unknown>) => Promise<readonly Explained[]>
}

/** A run with this many unread messages, or runs that wait for it, in tables without statistics. */
async function filled(count: number, plans: 'auto' | 'generic', by: typeof fill = fill): Promise<Filled> {
  const { url, schema } = await migratedSchema()
  await opened({ url, schema })
  const explained = await openExplainedStore({ url, schema, pool: 'own', plans, monotonic: () => 0 })
  const { store } = explained
  onTestFinished(() => store.close())
  const bench = createContractBench({ store, clock: { now: () => Date.now(), advance: () => undefined } })
  // The plans that are kept are made while the tables are empty.
  const first = await bench.hold()
  await bench.deliver(bench.message(first.runId, { id: 'first' }))
  await bench.commit(first, { takes: ['first'] })
  await bench.commit(first, { append: [ending('succeeded')], status: 'succeeded' })
  await store.doChores()
  const held = await bench.hold()
  await by(url, schema, held.runId, count)
  return { bench, held, explain: (call) => explained.explain(call) }
}

const most = (done: readonly Explained[], what: 'buffers' | 'rows'): number => Math.max(...done.map((one) => one[what]))

describe.each(['auto', 'generic'] as const)('over a full mailbox, with %s plans,', (plans) => {
  it(
    'taking one of 100,000 messages reads what it takes',
    async () => {
      const { bench, held, explain } = await filled(100_000, plans)
      const usual = await explain(() => bench.commit(held, { takes: ['left-70000'] }))
      expect(usual.some(({ name }) => name.includes('commit.take'))).toBe(true)
      expect([most(usual, 'rows') < 20, most(usual, 'buffers') < 100]).toEqual([true, true])
      const judged = await explain(() => bench.commit(held, { takes: ['left-60000'], undo: 'possible' }))
      expect(judged.some(({ name }) => name === 'commit.take')).toBe(true)
      expect([most(judged, 'rows') < 20, most(judged, 'buffers') < 100]).toEqual([true, true])
      const taken = (await bench.mailbox(held.runId)).length
      expect(taken).toBe(1_000)
    },
    minute,
  )

  it(
    'an end with 60,000 unread messages is one small commit, and so is every page after it',
    async () => {
      const { bench, held, explain } = await filled(60_000, plans)
      const end = await explain(() => bench.commit(held, { append: [ending('succeeded')], status: 'succeeded' }))
      expect(most(end, 'rows')).toBeLessThanOrEqual(defaultPageLimits.withEnd + 1)
      expect((await bench.run(held.runId)).status).toBe('succeeded')
      for (let pages = 0; pages < 3; pages += 1) {
        const page = await explain(() => bench.store.doChores())
        expect(most(page, 'rows')).toBeLessThanOrEqual(defaultPageLimits.messages + 1)
        // Each leaves two indexes and enters another one.
        expect(most(page, 'buffers')).toBeLessThan(40 * defaultPageLimits.messages)
      }
    },
    minute,
  )

  it(
    'an end for which 60,000 wait is one small commit, and so is every page after it',
    async () => {
      const { bench, held, explain } = await filled(60_000, plans, crowd)
      const end = await explain(() => bench.commit(held, { append: [ending('succeeded')], status: 'succeeded' }))
      expect(most(end, 'rows')).toBeLessThanOrEqual(defaultPageLimits.withEnd + 1)
      expect((await bench.run(held.runId)).status).toBe('succeeded')
      for (let pages = 0; pages < 3; pages += 1) {
        const page = await explain(() => bench.store.doChores())
        expect(most(page, 'rows')).toBeLessThanOrEqual(defaultPageLimits.watchers + 1)
        expect(most(page, 'buffers')).toBeLessThan(40 * defaultPageLimits.watchers)
      }
    },
    minute,
  )
})

describe('two runs that end with 60,000 unread messages each', () => {
  const quick = workflow('quick', async (ctx) => ctx.step('only', () => 1))

  it(
    'hold up no other run of their process, and all of their messages are settled',
    async () => {
      const { url, schema } = await migratedSchema()
      const { store } = await opened({ url, schema, listen: url, storageTimeout: '1 s' })
      const holdfast = await holdfastAt({ store, workflows: [hoarder, quick] })
      const runs = [await holdfast.start(hoarder), await holdfast.start(hoarder)]
      for (const { id } of runs) await fill(url, schema, id, 60_000)
      await holdfast.work({ signals: false })
      for (const run of runs) await holdfast.signal(run, 'go')
      for (const run of runs) expect(await run.result()).toBe('over')
      const others = await Promise.all(Array.from({ length: 20 }, () => holdfast.start(quick)))
      for (const run of others) expect(await run.result()).toBe(1)
      expect(await deadLetters(url, schema)).toBeLessThan(120_000)
      await expect.poll(() => deadLetters(url, schema), { timeout: minute, interval: 500 }).toBe(120_000)
      expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    },
    2 * minute,
  )
})

describe('a process that is killed while it settles the messages of a run', () => {
  it(
    'leaves a chore that another one goes on with, to the end',
    async () => {
      const { url, schema } = await migratedSchema()
      const { store } = await opened({ url, schema, listen: url })
      const holdfast = await holdfastAt({ store, workflows: [hoarder] })
      const run = await holdfast.start(hoarder)
      await fill(url, schema, run.id, 30_000)
      await holdfast.signal(run, 'go')
      const program = await childProgram('test/postgres/pages-child.ts')
      const child = spawn(process.execPath, [program, url, schema], { stdio: 'ignore' })
      onTestFinished(() => void child.kill('SIGKILL'))
      await expect.poll(() => deadLetters(url, schema), { timeout: minute, interval: 20 }).toBeGreaterThan(0)
      child.kill('SIGKILL')
      await once(child, 'exit')
      const left = await deadLetters(url, schema)
      expect(left).toBeLessThan(30_000)
      await holdfast.work({ signals: false })
      await expect.poll(() => deadLetters(url, schema), { timeout: minute, interval: 200 }).toBe(30_000)
      expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    },
    2 * minute,
  )
})
