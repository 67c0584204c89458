// Beats and rescue looks under a held snapshot: nothing can clean up the index entries of what is gone,
// and a scan that begins at the front of an index steps over all of them. That may happen now and then, and never every time.

import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { churner, holdSnapshot, type HeldSnapshot } from './held-snapshot.ts'

const minutes = 60_000

/** What a statement may read that begins where the last one ended, or that looks runs up by their ids. */
const few = 150

/** A walk that took this long rests for twenty times as long. */
const dearMs = 1_000

export function runHeldSnapshot(dead: number): void {
  describe(`after ${dead} runs that ended while a transaction holds a snapshot`, { timeout: minutes }, () => {
    /** The dead entries lie in so many pages of an index at least, and in more of the table. */
    const many = dead / 200
    let world: HeldSnapshot

    beforeAll(async () => {
      world = await holdSnapshot(dead)
    }, 10 * minutes)

    afterAll(() => world.close())

    /** Makes a call twice, in which every walk is dear. */
    async function slowly(call: () => Promise<unknown>): Promise<ReadonlyMap<string, number>> {
      world.clock.tick = dearMs
      await call()
      rest()
      const pages = await world.pages(call)
      world.clock.tick = 0
      return pages
    }

    /** Everything has rested enough. */
    function rest(): void {
      world.clock.ms += 10 * minutes
    }

    function most(pages: ReadonlyMap<string, number>, name = ''): number {
      return Math.max(0, ...Array.from(pages, ([of, count]) => (of.startsWith(name) ? count : 0)))
    }

    it('a beat reads what it is about: every run that it lists is looked up by its id', async () => {
      const { beat, hold, pages } = world
      await beat(churner)
      const lease = { session: churner, token: 1 }
      const runs = [await hold({ lease, leaseMs: 600_000 }), await hold({ lease }), await hold({ lease })]
      const held = runs.map(({ runId }) => ({ runId, token: 1, extendMs: 900_000 }))
      const read = await pages(() => beat(churner, { held, seeksUnknownLeases: false }))
      expect([...read.keys()]).toEqual(['beat.session', 'beat.extend', 'beat.look'])
      expect(most(read)).toBeLessThan(few)
    })

    it('a look for unknown leases walks over all that the session ever held, and rests as long as that was dear', async () => {
      const { beat, start, claim } = world
      const { id } = await start({ type: 'strange' })
      await claim({ session: churner, selectors: [{ type: 'strange', version: 1 }] })
      const seek = async (): Promise<readonly string[]> => (await beat(churner)).unknownLeases.map(({ runId }) => runId)
      rest()
      const walked = await slowly(async () => expect(await seek()).toContain(id))
      expect(most(walked, 'beat.unknown')).toBeGreaterThan(many)
      const rested = await world.pages(async () => expect(await seek()).toEqual([]))
      expect([...rested.keys()]).toEqual(['beat.session'])
      rest()
      expect(await seek()).toContain(id)
    })

    it.each([
      ['that came due', -60_000],
      ['that were woken long before they were due', 3_600_000],
    ])('a claim steps over timed runs %s now and then, and finds what comes due between that', async (_, dueInMs) => {
      const { start, claim, pages, backlog } = world
      const slept = { type: `slept ${dueInMs}`, version: 1 }
      const selectors = [slept]
      await backlog.execute(
        `update holdfast.runs set type = '${slept.type}', readiness = 'timed', due = updated_at + ${dueInMs} - ${dead} + created_at % 1000
        where status = 'succeeded'`,
        `update holdfast.runs set readiness = 'idle', due = null where type = '${slept.type}'`,
      )
      const last = await start({ ...slept, due: { at: null, afterMs: 7_200_000 } })
      rest()
      const walked = await slowly(async () => expect((await claim({ selectors })).nextDue).toBe(last.due))
      expect(most(walked, 'claim.')).toBeGreaterThan(many)
      const rested = await pages(async () => expect(await claim({ selectors })).toMatchObject({ nextDue: last.due }))
      expect(most(rested, 'claim.')).toBeLessThan(few)
      const soon = await start({ ...slept, due: { at: null, afterMs: 50 } })
      expect((await claim({ selectors })).nextDue).toBe(soon.due)
      await expect
        .poll(async () => {
          let ids: readonly string[] = []
          const read = await pages(async () => void (ids = (await claim({ selectors })).runs.map(({ id }) => id)))
          expect(most(read, 'claim.')).toBeLessThan(few)
          return ids
        })
        .toEqual([soon.id])
    })

    it('a reader of the feed steps over rows that have their position once, and overlooks none that commits late', async () => {
      const { store, start, pages, backlog } = world
      const changes = (): ReturnType<typeof store.changes> => store.changes(0, 1_000_000)
      const { id } = await start({ feed: true })
      const before = await changes()
      const position = before.at(-1)?.position ?? 0
      await backlog.execute(
        `select setval('holdfast.feed_number', nextval('holdfast.feed_number') + ${dead})`,
        `insert into holdfast.feed (shard, number, runs, firsts, lasts)
        select 0, currval('holdfast.feed_number') - ${dead} + n, array['${id}'::uuid], array[1], array[1]
        from generate_series(0, ${dead - 1}) as n`,
        `update holdfast.feed set position = ${position} + n.place from (
          select number, row_number() over (order by number) as place from holdfast.feed where position is null) as n
        where feed.number = n.number`,
        `update holdfast.sequencer set last = ${position + dead}`,
      )
      const peek = (): Promise<unknown> => store.changes(position + dead, 10)
      rest()
      expect(most(await pages(peek), 'changes.')).toBeGreaterThan(many / 2)
      // As soon as every transaction of the server has ended that was open then, of any client.
      await expect.poll(async () => most(await pages(peek), 'changes.')).toBeLessThan(few)
      // One transaction draws a number, and others commit before them.
      const late = new Client({ connectionString: backlog.url })
      await late.connect()
      await late.query('begin')
      await late.query(
        `insert into holdfast.feed (shard, number, runs, firsts, lasts)
        values (0, nextval('holdfast.feed_number'), array['${id}'::uuid], array[1], array[1])`,
      )
      for (let turn = 0; turn < 5; turn += 1) {
        await start({ feed: true })
        await peek()
      }
      const known = (await store.changes(position + dead, 100)).length
      await late.query('commit')
      await late.end()
      expect((await store.changes(position + dead, 100)).slice(known).map(({ runId }) => runId)).toEqual([id])
      const news = async (): Promise<void> => {
        await start({ feed: true })
        await peek()
      }
      await expect.poll(async () => most(await pages(news), 'changes.')).toBeLessThan(few)
    })

    it('a rescue begins at the front if it may, and looks at nothing but the news until it has rested', async () => {
      const { rescue, pages } = world
      rest()
      await rescue()
      rest()
      const front = await slowly(() => rescue())
      expect(most(front)).toBeGreaterThan(many)
      const ahead = await pages(() => rescue())
      expect(most(ahead)).toBeLessThan(few)
      rest()
      expect(most(await pages(() => rescue()))).toBeGreaterThan(many)
    })

    it('such a rescue finds deadlines that pass, runs whose time is over, and what a dead session held', async () => {
      const { store, beat, hold, start, rescue, pages } = world
      await beat('living')
      await beat('dying')
      rest()
      await slowly(() => rescue())
      const late = await hold({ lease: { session: 'living', token: 1 }, leaseMs: 1 })
      const orphan = await hold({ lease: { session: 'dying', token: 1 } })
      const over = await start({ timeoutMs: 1 })
      const expired = await start({ expiresInMs: 1 })
      await beat('dying', { end: true })
      const ids = [late.runId, orphan.runId, over.id, expired.id]
      await expect
        .poll(async () => {
          expect(most(await pages(() => rescue()))).toBeLessThan(few)
          return (await store.get(ids)).map((one) => one?.status)
        })
        .toEqual(['pending', 'pending', 'failed', 'failed'])
    })

    it('a rescue learns of a run whose time was over long before what it looks at', async () => {
      const { store, start, rescue, run, unique } = world
      const { id } = await start({ timeoutMs: 600_000 })
      const pause = { kind: 'pause', reason: 'operator', note: null } as const
      await store.control([{ id: unique('pauses'), runId: id, ...pause }])
      await world.backlog.execute(`update holdfast.runs set timeout_at = created_at - 3600000 where id = '${id}'`)
      rest()
      await slowly(() => rescue())
      expect((await run(id)).status).toBe('paused')
      const resume = { kind: 'resume', note: null, amend: [], seq: null } as const
      await store.control([{ id: unique('resumes'), runId: id, ...resume }])
      await rescue()
      expect((await run(id)).status).toBe('failed')
    })
  })
}

/** Runs that are paused or held, and whose time has been over for long: time ends none of them. */
export function runPausedTooLong(count: number): void {
  describe(
    `with ${count} runs that are paused, and as many that are held, past their time`,
    { timeout: minutes },
    () => {
      it('a rescue looks at none of them, and finds the one whose time ends it', async () => {
        const world = await holdSnapshot(1)
        onTestFinished(world.close)
        const { start, rescue, store, beat, pages, backlog } = world
        await beat('holder')
        const past = Date.now() - 3_600_000
        const insert = (from: number, status: string, session: string): string => `
        insert into holdfast.runs (shard, id, type, version, status, readiness, session, timeout_at, expires_at,
          created_at, updated_at)
        select 0, (lpad(to_hex(${past}::bigint + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, 'charge', 1,
          '${status}', '${session === 'null' ? 'idle' : 'leased'}', ${session}, ${past} + n, ${past} + n, ${past}, ${past}
        from generate_series(${from + 1}, ${from + count}) as n`
        await backlog.execute(insert(10, 'paused', 'null'), insert(10 + count, 'running', "'holder'"))
        await backlog.analyze()
        const { id } = await start({ timeoutMs: 1 })
        await expect
          .poll(async () => {
            const read = await pages(() => rescue())
            expect(Math.max(...read.values())).toBeLessThan(few)
            return (await store.get([id]))[0]?.status
          })
          .toBe('failed')
        expect(await store.count({ statuses: ['paused'] }, 2 * count)).toBe(count)
        expect(await store.count({ statuses: ['running'] }, 2 * count)).toBe(count)
      })
    },
  )
}
