// A client in one process sends and asks, a worker in another performs: over Postgres and over a file, what runs send arrives,
// and what they answer is found.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { topic, workflow } from 'holdfast'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt } from './proxied.ts'

const jobs = topic<number>('jobs', { delivery: 'one' })

const counter = workflow('counter', async (ctx, most: number) => {
  let total = 0
  while (total < most) {
    const added = await ctx.receive<number>('add', { message: true })
    total += added.value
    await added.reply(total)
  }
  return total
})
const worker = workflow('worker', async (ctx) => (await ctx.receive(jobs)) * 2)
const relay = workflow('relay', async (ctx, to: string) => {
  for (const n of [1, 2, 3]) await ctx.signal(to, 'add', n)
  await ctx.broadcast(jobs, 21)
})

const stores: readonly (readonly [string, () => Promise<string>])[] = [
  [
    'Postgres',
    async () => {
      const { url, schema } = await migratedSchema()
      return `${url}?schema=${schema}`
    },
  ],
  [
    'Postgres with four shards',
    async () => {
      const { url, schema } = await migratedSchema(4)
      return `${url}?schema=${schema}&shards=4`
    },
  ],
  [
    'SQLite',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
      onTestFinished(() => rmSync(folder, { recursive: true }))
      return `sqlite:${join(folder, 'app.db')}`
    },
  ],
]

describe.each(stores)('over %s', { timeout: 60_000 }, (_name, address) => {
  it('a client gets the answers of a run in another process, and those of runs that send', async () => {
    const store = await address()
    const performing = await holdfastAt({ store, workflows: [counter, worker, relay] })
    await performing.work()
    const asking = await holdfastAt({ store })
    const run = await performing.start(counter, 100)
    expect(await asking.ask(run.id, 'add', 5, { id: 'first' })).toBe(5)
    const working = await performing.start(worker)
    await (await performing.start(relay, run.id)).result()
    expect(await working.result()).toBe(42)
    expect(await asking.ask(run.id, 'add', 89, { id: 'last' })).toBe(100)
    expect(await run.result()).toBe(100)
    expect(await asking.ask(run.id, 'add', 5, { id: 'first' })).toBe(5)
    await expect(asking.ask(run.id, 'add', 1)).rejects.toMatchObject({ code: 'ASK_UNANSWERED' })
    expect((await asking.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
})
