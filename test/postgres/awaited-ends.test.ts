// Workers notify other processes of the ends of runs only while one of them waits, and a process that waits learns of an end
// without polling.

import { Client } from 'pg'
import { setTimeout } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow } from 'holdfast'
import { channelOf } from '../../src/stores/postgres/open.ts'
import { keepLines } from '../holdfast/open.ts'
import { freshSchema } from '../support/postgres-shared.ts'

const echo = workflow('ends.echo', async (ctx, ms: number) => {
  await ctx.step('work', () => setTimeout(ms))
  return ms
})

async function rig() {
  const { url, schema } = await freshSchema()
  const overheard: string[] = []
  const stranger = new Client({ connectionString: url })
  await stranger.connect()
  stranger.on('notification', ({ payload }) => void overheard.push(payload ?? ''))
  await stranger.query(`listen ${channelOf(schema)}`)
  const open = () =>
    createHoldfast({ store: `${url}?schema=${schema}`, workflows: [echo], poll: '10min', logger: keepLines() })
  const [starter, worker] = [await open(), await open()]
  onTestFinished(async () => {
    await starter.close()
    await worker.close()
    await stranger.end()
  })
  return { starter, worker, overheard }
}

it('no process is notified of ends for which none waits', async () => {
  const { starter, worker, overheard } = await rig()
  const runs = await Promise.all(Array.from({ length: 50 }, () => starter.start(echo, 0)))
  // For the first second a process assumes that others wait.
  await setTimeout(1_200)
  const before = overheard.length
  await worker.work()
  const status = async (): Promise<boolean> =>
    (await Promise.all(runs.map(({ id }) => starter.get(id)))).every((run) => run?.status === 'succeeded')
  await expect.poll(status, { timeout: 10_000 }).toBe(true)
  await setTimeout(100)
  expect(overheard.length - before).toBeLessThanOrEqual(1)
})

it('a process that waits for an end in another process hears of it, the first time and later', async () => {
  const { starter, worker } = await rig()
  await worker.work()
  await setTimeout(1_200)
  // The end comes before, or after, the worker knows that one waits; none is found by the poll of ten minutes.
  for (const ms of [0, 300, 0, 50]) expect(await (await starter.start(echo, ms)).result()).toBe(ms)
}, 20_000)
