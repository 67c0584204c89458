// Explains every call of the store over a backlog under vitest, in the states in which statistics and kept plans can be.

import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { createContractBench } from '../../src/testing/contract/bench.ts'
import { freshDatabase } from '../support/postgres-shared.ts'
import { Backlog, type BacklogSizes } from './backlog.ts'
import { excess } from './bounds.ts'
import type { Call } from './call.ts'
import { calls } from './calls.ts'
import { openExplainedStore, type ExplainedStore, type ExplainedStoreOptions } from './explained-store.ts'

/** From this version on a list of ids is always looked up in the index, also by a plan that was made for an empty table. */
const sureOfLists = 17

/** A fill takes a minute and a half, a turn of all calls some seconds. */
const minutes = 60_000

/** What was known of the tables when they were empty. */
type Beginning = 'analysed' | 'never analysed'

interface Opened extends ExplainedStore {
  readonly pass: (ms: number) => void
}

export function runPlans(title: string, sizes: BacklogSizes, beginning: Beginning): void {
  describe(`${title}, in tables that were ${beginning} when they were empty`, () => {
    let backlog: Backlog
    let version: number
    const kept: Opened[] = []

    async function open(options: Pick<ExplainedStoreOptions, 'pool' | 'plans'>): Promise<Opened> {
      let now = 0
      const opened = await openExplainedStore({
        url: backlog.url,
        schema: backlog.schema,
        ...options,
        monotonic: () => now,
      })
      return { ...opened, pass: (ms) => (now += ms) }
    }

    beforeAll(async () => {
      backlog = await emptyBacklog(sizes)
      version = await versionOf(backlog.url)
      if (beginning === 'analysed') await backlog.analyze()
      for (const pool of ['own', 'lent'] as const) {
        const opened = await open({ pool, plans: 'generic' })
        kept.push(opened)
        for (const call of calls) await explain(opened, call, `${pool} at first`)
      }
      await backlog.fill()
    }, 10 * minutes)

    afterAll(() => Promise.all(kept.map(({ store }) => store.close())))

    const explain = (opened: Opened, call: Call, turn: string) => {
      const { store } = opened
      const bench = createContractBench({ store, clock: { now: () => Date.now(), advance: () => undefined } })
      return opened.explain(() => call.run(bench, backlog, turn))
    }

    async function explainAll(opened: Opened, turn: string): Promise<readonly string[]> {
      const wrong: string[] = []
      // A new connection reads about the tables first, and a scan that looks from the front first after all rows went and came
      // anew marks what is gone for those who come after.
      const first = calls.filter(({ name }) => name === 'start 1' || name.startsWith('rescue'))
      for (const call of first) await explain(opened, call, `${turn} before`)
      for (const call of calls) {
        const look = async (which: string): Promise<readonly string[]> =>
          (await explain(opened, call, which)).flatMap((done) => excess(call, done))
        let found = await look(turn)
        // As long as a transaction of another test is open, in whatever database, no look marks what is gone, and each steps over
        // all of it. A plan that reads too much does so every time.
        for (const began = Date.now(); found.length > 0 && Date.now() - began < minutes; await setTimeout(200)) {
          found = await look(`${turn} ${Date.now()}`)
        }
        wrong.push(...found)
      }
      return wrong
    }

    const slow = { timeout: 10 * minutes }

    it.for([0, 1])('plans that were made when the tables were empty (pool %i)', slow, async (index, context) => {
      if (version < sureOfLists) context.skip(`Postgres ${version} needs its plans to be made anew`)
      expect(await explainAll(kept[index] as Opened, `kept ${index}`)).toEqual([])
    })

    it.for([0, 1])('plans that were made anew since then, without statistics (pool %i)', slow, async (index) => {
      const opened = kept[index] as Opened
      opened.pass(minutes)
      expect(await explainAll(opened, `renewed ${index}`)).toEqual([])
    })

    it.for(['own', 'lent'] as const)(
      'plans for the parameters at hand, without statistics (%s pool)',
      slow,
      async (pool) => {
        const opened = await open({ pool, plans: 'auto' })
        expect(await explainAll(opened, `${pool} stale`)).toEqual([])
        await opened.store.close()
      },
    )

    it.for(['generic', 'auto'] as const)('%s plans with statistics', slow, async (plans) => {
      await backlog.analyze()
      const opened = await open({ pool: 'own', plans })
      expect(await explainAll(opened, `analysed ${plans}`)).toEqual([])
      await opened.store.close()
    })
  })
}

/** A schema without runs, where nobody but the test brings statistics up to date. */
export async function emptyBacklog(sizes: BacklogSizes): Promise<Backlog> {
  const url = await freshDatabase()
  const store = await openPostgresStore({ url, listen: false })
  await store.migrate()
  await store.close()
  const backlog = new Backlog(url, 'holdfast', sizes)
  await backlog.leaveAlone()
  return backlog
}

async function versionOf(url: string): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ version: number }>(
    `select current_setting('server_version_num')::integer / 10000 as version`,
  )
  await client.end()
  return rows[0]?.version ?? 0
}
