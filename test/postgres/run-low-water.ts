// Claims under a held snapshot: nothing can clean up the index entries of runs that were claimed and ended, and a scan that
// begins at the front of the index steps over all of them.

import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createContractBench, type ContractBench } from '../../src/testing/contract/bench.ts'
import type { Backlog } from './backlog.ts'
import { openExplainedStore, type ExplainedStore } from './explained-store.ts'
import { emptyBacklog } from './run-plans.ts'

const minutes = 60_000

/** For how long a claim may begin where the last one ended. */
const floorMs = 2_000

export function runLowWater(dead: number): void {
  describe(`a claim after ${dead} runs that ended while a transaction holds a snapshot`, () => {
    const charge = { type: 'charge', version: 1 }
    let backlog: Backlog
    let reader: Client
    let now = 0
    /** What a look at the clock costs. */
    let tick = 0
    let here: ExplainedStore & ContractBench
    let elsewhere: ExplainedStore & ContractBench

    async function open(): Promise<ExplainedStore & ContractBench> {
      const opened = await openExplainedStore({
        url: backlog.url,
        schema: backlog.schema,
        pool: 'own',
        plans: 'auto',
        monotonic: () => (now += tick),
      })
      const clock = { now: () => Date.now(), advance: () => undefined }
      return { ...createContractBench({ store: opened.store, clock }), ...opened }
    }

    beforeAll(async () => {
      // One in six is of another type.
      const ready = Math.ceil((dead * 6) / 5) + 2_000
      backlog = await emptyBacklog({ over: 1, held: 1, asleep: 1, ready, timed: 1, blocked: 1 })
      await backlog.fill()
      await backlog.analyze()
      reader = new Client({ connectionString: backlog.url })
      await reader.connect()
      await reader.query('begin isolation level repeatable read')
      await reader.query('select count(*) from holdfast.runs')
      // As a claim and an end leave them. Those with a higher priority go first, as they would.
      await backlog.execute(`
        update holdfast.runs set status = 'succeeded', readiness = 'idle', due = null, ended_at = updated_at
        where shard = 0 and id in (
          select id from holdfast.runs where type = 'charge' and readiness = 'ready' order by rank, due, id limit ${dead})`)
      here = await open()
      elsewhere = await open()
    }, 10 * minutes)

    afterAll(async () => {
      await reader.query('rollback')
      await Promise.all([reader.end(), here.store.close(), elsewhere.store.close()])
    })

    /** What a claim of ten costs, and what it finds. */
    async function claim(
      ...others: readonly { readonly type: string; readonly version: number }[]
    ): Promise<{ readonly pages: number; readonly ids: readonly string[] }> {
      let ids: readonly string[] = []
      const [done] = await here.explain(async () => {
        const { runs } = await here.claim({ session: 'claimer', selectors: [charge, ...others], limit: 10 })
        ids = runs.map(({ id }) => id)
      })
      return { pages: done?.buffers ?? 0, ids }
    }

    it(
      'begins where the last one ended, and at the front again after a while',
      async () => {
        const first = await claim()
        const next = await claim()
        expect([first.ids.length, next.ids.length]).toEqual([10, 10])
        now += floorMs - 1
        const late = await claim()
        now += 2
        const again = await claim()
        const pages = { front: first.pages, floor: next.pages, late: late.pages, again: again.pages }
        expect(pages).toSatisfy(({ floor, late: last }: typeof pages) => Math.max(floor, last) < 1_000)
        // The dead ones lie in so many pages of the index at least, and in more of the table.
        expect(pages).toSatisfy(
          ({ front, floor, again: anew }: typeof pages) => Math.min(front, anew) > floor + dead / 200,
        )
      },
      minutes,
    )

    it(
      'begins where the last one ended also when that has taken everything, and finds what comes next',
      async () => {
        // Nothing of this type is left, and all that there was has gone like the others.
        const sold = { type: 'sold', version: 1 }
        await backlog.execute(
          `update holdfast.runs set type = 'sold', readiness = 'ready', due = created_at
          where id in (select id from holdfast.runs where type = 'charge' and status = 'succeeded' limit ${dead / 2})`,
          `update holdfast.runs set readiness = 'idle', due = null where type = 'sold'`,
        )
        const pages: number[] = []
        const empty = async (): Promise<void> => {
          const [done] = await here.explain(async () => {
            expect((await here.claim({ session: 'claimer', selectors: [sold], limit: 10 })).runs).toEqual([])
          })
          pages.push(done?.buffers ?? 0)
        }
        for (let turn = 0; turn < 3; turn += 1) await empty()
        const [first = 0, ...next] = pages
        expect({ first, next }).toSatisfy(() => first > dead / 400 && Math.max(...next) < 100)
        const { id } = await elsewhere.start(sold)
        expect((await here.claim({ session: 'claimer', selectors: [sold], limit: 10 })).runs[0]?.id).toBe(id)
        const urgent = await here.start({ ...sold, priority: 3 })
        expect((await here.claim({ session: 'claimer', selectors: [sold], limit: 10 })).runs[0]?.id).toBe(urgent.id)
      },
      minutes,
    )

    it(
      'rests if beginning at the front is dear, and finds within a minute what came in there meanwhile',
      async () => {
        now += 10 * minutes
        tick = 300
        await claim()
        now += floorMs + 1
        await claim()
        tick = 0
        now += floorMs + 1
        const { id } = await elsewhere.start({ ...charge, priority: 5 })
        const rested = await claim()
        expect(rested.pages).toBeLessThan(1_000)
        expect(rested.ids).not.toContain(id)
        now += minutes
        expect((await claim()).ids[0]).toBe(id)
      },
      minutes,
    )

    it(
      'begins where the last one ended for each of several types',
      async () => {
        const others = [
          { type: 'ship', version: 1 },
          { type: 'none', version: 1 },
        ]
        now += floorMs + 1
        const first = await claim(...others)
        const next = await claim(...others)
        expect([first.ids.length, next.ids.length]).toEqual([10, 10])
        expect({ front: first.pages, floor: next.pages }).toSatisfy(
          ({ front, floor }: { front: number; floor: number }) => floor < 1_000 && front > floor + dead / 200,
        )
      },
      minutes,
    )

    it(
      'finds at once what this process has started before that place',
      async () => {
        await claim()
        const { id } = await here.start({ ...charge, priority: 5 })
        expect((await claim()).ids[0]).toBe(id)
      },
      minutes,
    )

    it(
      'finds what another process has started before that place as soon as it begins at the front again',
      async () => {
        now += floorMs + 1
        await claim()
        const { id } = await elsewhere.start({ ...charge, priority: 5 })
        expect((await claim()).ids).not.toContain(id)
        now += floorMs + 1
        expect((await claim()).ids[0]).toBe(id)
      },
      minutes,
    )
  })
}
