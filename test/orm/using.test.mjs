// `holdfast.using(tx)` and `ctx.transaction` with each library on a real Postgres: a run exists, a message has arrived and a
// run is cancelled if and only if the transaction of that library commits.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHoldfast, isHoldfastError, workflow } from '../../src/index.ts'
import { findPostgres } from './database.mjs'
import { libraries } from './libraries.mjs'

const found = await findPostgres()
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const why = found === null ? 'there is no Postgres here' : await whyNot(found.url)

async function whyNot(url) {
  try {
    await (await createHoldfast({ store: url, logger: quiet })).close()
    return null
  } catch (error) {
    if (isHoldfastError(error, 'STORE_UNKNOWN')) return 'there is no Postgres store in this version'
    throw error
  }
}

const double = workflow('orm.double', (_ctx, n) => n * 2)
const patient = workflow('orm.patient', (ctx) => ctx.sleep('1 h'))

describe.skipIf(why !== null)(
  `(PQ-C3) holdfast.using(tx)${why === null ? '' : `: ${why}`}, with a transaction of`,
  () => {
    const admin = new pg.Client({ connectionString: found?.url })
    let library = null
    let inserted = 0
    const fresh = () => `order ${(inserted += 1)}`
    const orders = async () => (await admin.query('select id from orders order by id')).rows.map(({ id }) => id)

    beforeAll(async () => {
      await admin.connect()
      await admin.query('drop table if exists public.orders')
      await admin.query('create table public.orders (id text primary key, note text)')
    })
    afterAll(async () => {
      await admin.end()
      await found?.stop()
    })

    describe.each(libraries)('$name', ({ open }) => {
      let holdfast
      const book = workflow('orm.book', { retry: { maxAttempts: 3, initial: 1 } }, (ctx, id) =>
        ctx.transaction('insert', async (tx, step) => {
          await library.insert(tx, [id, step.attempt].join(' of '))
          if (step.attempt === 1) throw new Error('rolled back')
          return step.attempt
        }),
      )

      beforeAll(async () => {
        library = await open(found.url)
        holdfast = await createHoldfast({
          store: found.url,
          workflows: [double, patient, book],
          transaction: (work) => library.transaction(work),
          logger: quiet,
        })
        await admin.query('truncate orders')
        await holdfast.work()
      })
      afterAll(async () => {
        await holdfast?.close()
        await library?.close()
      })

      it('starts a run if and only if it commits', async () => {
        const id = fresh()
        const run = await library.transaction(async (tx) => {
          await library.insert(tx, id)
          return holdfast.using(tx).start(double, 21, { key: id })
        })
        expect(await run.result()).toBe(42)
        expect(await orders()).toContain(id)

        let lost
        const rolledBack = library.transaction(async (tx) => {
          lost = await holdfast.using(tx).start(double, 1, { key: `${id} lost` })
          await library.insert(tx, id)
        })
        await expect(rolledBack).rejects.toThrow(/unique|duplicate|failed query/i)
        await expect(lost.status()).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
      })

      it('refuses as outside, and leaves the transaction usable', async () => {
        const id = fresh()
        const first = await holdfast.start(patient, undefined, { key: id })
        await library.transaction(async (tx) => {
          const using = holdfast.using(tx)
          await expect(using.start(patient, undefined, { key: id })).rejects.toMatchObject({ code: 'RUN_EXISTS' })
          const again = await using.start(patient, undefined, { key: id, onConflict: 'return' })
          expect(again.id).toBe(first.id)
          await library.insert(tx, id)
        })
        expect(await orders()).toContain(id)
        await first.cancel()
      })

      it('delivers and cancels if and only if it commits', async () => {
        const run = await holdfast.start(patient)
        const rolledBack = library.transaction(async (tx) => {
          const using = holdfast.using(tx)
          expect(await using.signal(run, 'paid', { amount: 3 })).toMatchObject({
            outcome: expect.stringMatching('queued|delivered'),
          })
          await using.cancel(run)
          throw new Error('rolled back')
        })
        await expect(rolledBack).rejects.toThrow('rolled back')
        expect(['running', 'waiting', 'pending']).toContain(await run.status())
        await library.transaction((tx) => holdfast.using(tx).cancel(run, { reason: 'enough' }))
        await expect(run.result()).rejects.toMatchObject({ code: 'RUN_CANCELLED' })
      })

      it('starts nothing once it is over, and nothing that was not awaited', async () => {
        const id = fresh()
        let using
        let forgotten = Promise.resolve()
        const rolledBack = library.transaction(async (tx) => {
          using = holdfast.using(tx)
          await using.start(patient, undefined, { key: `${id} inside` })
          forgotten = using.start(patient, undefined, { key: `${id} forgotten` }).catch((error) => error)
          throw new Error('rolled back')
        })
        await expect(rolledBack).rejects.toThrow('rolled back')
        await forgotten
        await expect(using.start(patient, undefined, { key: `${id} late` })).rejects.toMatchObject({
          code: 'INVALID_OPTION',
          message: expect.stringContaining('was over'),
        })
        const { rows } = await admin.query('select key from holdfast.runs where key like $1', [`${id} %`])
        expect(rows).toEqual([])
      })

      it('is what ctx.transaction commits together with its step', async () => {
        const id = fresh()
        const run = await holdfast.start(book, id)
        expect(await run.result()).toBe(2)
        expect((await orders()).filter((one) => one.startsWith(`${id} of`))).toEqual([`${id} of 2`])
      })
    })
  },
)
