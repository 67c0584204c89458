// A transaction that is under way when its run fails, and one that carries more entries than a transition may have.

import { describe, expect, it } from 'vitest'
import { fatal, workflow } from 'holdfast'
import { gate, settled, until } from './gate.ts'
import { insertOrder, kinds, ownTables, soundness, type Db } from './own-tables.ts'

describe('a transaction', () => {
  it('carries more entries than one transition may have, in order and without a gap', async () => {
    const { open, orders } = await ownTables()
    const { passed, open: letGo } = gate()
    let ended = 0
    const wide = workflow('wide', { parallel: 2_000 }, async (ctx) => {
      const order = ctx.transaction('insert', async (tx: Db) => {
        await passed
        insertOrder(tx, 'a')
      })
      const steps = Array.from({ length: 1_200 }, (_, at) =>
        ctx.step(`step ${at}`, () => {
          ended += 1
          return at
        }),
      )
      await Promise.all([order, ...steps])
    })
    const holdfast = await open({ workflows: [wide] })
    await holdfast.work()
    const run = await holdfast.start(wide)
    await until(() => ended === 1_200)
    letGo()
    await run.result()
    const journal = await holdfast.journal(run)
    expect(journal.map(({ seq }) => seq)).toEqual(journal.map((_, at) => at + 1))
    expect(new Set(journal.map(({ name }) => name)).size).toBe(1_202)
    expect(orders()).toEqual(['a'])
    expect(await soundness(holdfast)).toEqual([])
  })

  it('that is under way when its run fails commits, and is undone', async () => {
    const { open, orders } = await ownTables()
    const { passed, open: letGo } = gate()
    const undone: unknown[] = []
    let hasFailed = false
    const book = workflow('book', async (ctx) => {
      const order = ctx.transaction(
        'insert',
        async (tx: Db) => {
          await passed
          insertOrder(tx, 'a')
          return 'order a'
        },
        { undo: (result) => void undone.push(result) },
      )
      const hotel = ctx.step('hotel', () => {
        hasFailed = true
        throw fatal('No room')
      })
      await Promise.all([order, hotel])
    })
    const holdfast = await open({ workflows: [book] })
    await holdfast.work()
    const run = await holdfast.start(book)
    await until(() => hasFailed)
    await settled()
    letGo()
    await run.result().catch(() => undefined)
    expect([orders(), undone, await run.status()]).toEqual([['a'], ['order a'], 'failed'])
    expect(await kinds(holdfast, run.id)).toContain('undone')
    expect(await soundness(holdfast)).toEqual([])
  })
})
