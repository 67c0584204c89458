// Claims under a held snapshot: nothing can clean up the index entries of runs that were claimed and ended, and whoever
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
  describe(`a claim after ${dead} runs that ended while somebody holds a snapshot`, () => {
    const charge = { type: 'charge', version: 1 }
    let backlog: Backlog
    let reader: Client
    let now = 0
    let here: ExplainedStore & ContractBench
    let elsewhere: ExplainedStore & ContractBench

    async function open(): Promise<ExplainedStore & ContractBench> {
      const opened = await openExplainedStore({
        url: backlog.url,
        schema: backlog.schema,
        pool: 'own',
        plans: 'auto',
        monotonic: () => now,
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
    async function claim(): Promise<{ readonly pages: number; readonly ids: readonly string[] }> {
      let ids: readonly string[] = []
      const [done] = await here.explain(async () => {
        const { runs } = await here.claim({ session: 'claimer', selectors: [charge], limit: 10 })
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
