// No wake-up is lost between two processes. The long version is in park-races.long.ts.

import { Pool, type QueryConfig } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { raceParkings } from './park-races.ts'

describe('parking against delivery, from two processes', { timeout: 60_000 }, () => {
  it('WC-S1 IF-C1 in 150 races nobody sleeps on with a message', async () => {
    const tally = await raceParkings(150)
    expect(tally).toMatchObject({ races: 150, lost: [] })
    // Otherwise it was no race.
    expect(Math.min(tally.woken, tally.delivered)).toBeGreaterThan(5)
  })

  it('would be lost if parking counted messages instead of comparing the counter', async () => {
    let mutated = 0
    const fence = 'and run.inbox = coalesce(given.inbox, run.inbox)'
    const tally = await raceParkings(300, (url) => {
      const pool = new Pool({ connectionString: url, max: 10, pipeline: true })
      onTestFinished(() => pool.end())
      // A statement that waits for a row judges its columns anew; what it counted elsewhere is from before the wait.
      pool.on('connect', (client) => {
        const query = client.query.bind(client) as (config: QueryConfig) => Promise<unknown>
        const mutate = (config: QueryConfig): Promise<unknown> => {
          const [, schema = ''] = /update (".+?")\.runs/.exec(config.text) ?? []
          const counted = `(select count(*) from ${schema}.messages as m where m.shard = run.shard and m.run_id = run.id)`
          const text = config.text.replace(fence, `and coalesce(given.inbox, 1000) >= ${counted}`)
          if (text !== config.text) mutated += 1
          return query({ ...config, text })
        }
        Object.assign(client, { query: mutate })
      })
      return { pool }
    })
    expect(mutated).toBeGreaterThan(0)
    expect(tally.lost.length).toBeGreaterThan(0)
    // This is what it looks like: asleep with a message that nothing will ever wake it for.
    expect(tally.lost).toContain('[true,"queued","waiting","idle",1,true]')
  })
})
