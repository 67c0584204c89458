// pg-boss beside us, as fast as its calls allow: batches as large as its slots, fetched again as soon as they are done. Its own
// workers wait for half a second between two batches.

import { peer, timedBatches, typeName, type Queue } from './queue.ts'

interface Boss {
  on(event: 'error', heard: () => void): void
  start(): Promise<unknown>
  stop(options: object): Promise<void>
  createQueue(name: string): Promise<void>
  insert(jobs: readonly { readonly name: string; readonly data: object }[]): Promise<void>
  fetch(name: string, options: { readonly batchSize: number }): Promise<readonly { readonly id: string }[]>
  complete(name: string, ids: readonly string[]): Promise<void>
}

/** Two batches are under way at once, so that one is fetched while the other is completed. */
const lanes = 2

export function pgBoss(): Queue | null {
  const library = peer('pg-boss') as (new (options: object) => Boss) | null
  if (library === null) return null
  const open = async (url: string, schema: string): Promise<Boss> => {
    const boss = new library({ connectionString: url, schema, supervise: false, schedule: false })
    boss.on('error', () => undefined)
    await boss.start()
    return boss
  }
  return {
    name: 'pg-boss, tuned',

    async enqueue({ url, schema, types }, jobs) {
      const boss = await open(url, schema)
      for (let index = 0; index < types; index += 1) await boss.createQueue(typeName(index))
      const ms = await timedBatches(jobs, (first, length) =>
        boss.insert(Array.from({ length }, (_, index) => ({ name: typeName((first + index) % types), data: {} }))),
      )
      await boss.stop({ graceful: true, wait: true })
      return ms
    },

    async open({ url, schema, types }, slots, performed) {
      const boss = await open(url, schema)
      const claims = { all: 0, empty: 0 }
      let isStopping = false
      const lane = async (first: number): Promise<void> => {
        for (let turn = first; !isStopping; turn += 1) {
          const name = typeName(turn % types)
          const jobs = await boss.fetch(name, { batchSize: Math.ceil(slots / lanes) })
          claims.all += 1
          if (jobs.length === 0) claims.empty += 1
          for (const _ of jobs) performed()
          if (jobs.length > 0) {
            await boss.complete(
              name,
              jobs.map(({ id }) => id),
            )
          }
        }
      }
      let under: Promise<unknown> = Promise.resolve()
      return {
        async start() {
          under = Promise.all(Array.from({ length: Math.min(lanes, slots) }, (_, index) => lane(index)))
        },
        async stop() {
          isStopping = true
          await under
          await boss.stop({ graceful: true, wait: true })
        },
        claims: () => claims,
      }
    },

    left: ({ schema }) => `select exists (select from "${schema}".job where state < 'completed') as left`,
  }
}
