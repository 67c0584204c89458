// Who a run is: the id that a caller may choose.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { open, openWorking } from './open.ts'

const id = '01890a5d-ac96-774b-bcce-b302099a8057'
const sum = workflow('sum', (_ctx, numbers: number[]) => numbers.reduce((a, b) => a + b, 0))
const other = workflow('other', () => 'other')

describe('the id of a run', () => {
  it('WC-U1 may be chosen by the caller', async () => {
    const holdfast = await openWorking([sum])
    const run = await holdfast.start(sum, [1, 2], { id })
    expect(run.id).toBe(id)
    expect(run.created).toBe(true)
    expect(await holdfast.run(id).result()).toBe(3)
  })

  it('WC-U1 PEERS 20 started again is the run that exists, whose input stays', async () => {
    const holdfast = await openWorking([sum])
    await holdfast.start(sum, [1, 2], { id })
    const again = await holdfast.start(sum, [1, 2], { id })
    expect(again.created).toBe(false)
    await expect(holdfast.start(sum, [100], { id })).rejects.toMatchObject({ code: 'INPUT_CONFLICT' })
    expect(await again.result()).toBe(3)
    expect(await holdfast.journal(id)).toHaveLength(2)
  })

  it('WC-U1 started by many at once is one run', async () => {
    let performed = 0
    const once = workflow('once', (ctx) => ctx.step('count', () => (performed += 1)))
    const holdfast = await openWorking([once])
    const runs = await Promise.all(Array.from({ length: 20 }, () => holdfast.start(once, undefined, { id })))
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(Array.from({ length: 20 }, () => 1))
    expect(runs.filter((run) => run.created)).toHaveLength(1)
    expect(performed).toBe(1)
  })

  it('WC-U1 of another type is refused, and the run that exists is untouched', async () => {
    const holdfast = await openWorking([sum, other])
    await holdfast.start(sum, [1], { id })
    await expect(holdfast.start(other, undefined, { id })).rejects.toMatchObject({
      code: 'RUN_EXISTS',
      details: { runId: id, type: 'sum' },
    })
    expect(await holdfast.run(id).result()).toBe(1)
  })

  it('of a parent is one, too: no text that a terminal would obey, or that hides a line, is taken for it', async () => {
    const holdfast = await open({ workflows: [sum] })
    for (const parent of ['', 'x', '\u001B]52;c;ZXZpbA==\u0007', `${id}\nFORGED`, id.toUpperCase(), { id: '\u202E' }]) {
      await expect(holdfast.start(sum, [1], { parent })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('parent') as string,
      })
    }
    expect((await holdfast.find()).runs).toEqual([])
    const run = await holdfast.start(sum, [1], { parent: id })
    expect((await holdfast.get(run)).parentId).toBe(id)
  })

  it('refused as taken, costs no slot', async () => {
    const holdfast = await open({ workflows: [sum, other] })
    await holdfast.work({ concurrency: 1 })
    await (await holdfast.start(sum, [1], { id })).result()
    for (let time = 0; time < 3; time += 1) {
      await expect(holdfast.start(other, undefined, { id })).rejects.toMatchObject({ code: 'RUN_EXISTS' })
      expect((await holdfast.start(sum, [1], { id })).created).toBe(false)
    }
    expect(await (await holdfast.start(other)).result()).toBe('other')
  })

  it.each(['', 'order-42', '01890A5D-AC96-774B-BCCE-B302099A8057', '9b2e7c1e-6f0a-4b6e-8a53-0c1a7f0d8d11'])(
    '%j is refused: only a UUID of version 7 in lower case sorts and routes',
    async (wrong) => {
      const holdfast = await open({ workflows: [sum] })
      await expect(holdfast.start(sum, [1], { id: wrong })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('version 7') as string,
      })
    },
  )

  it('that no run has is told apart from a run that has no result yet', async () => {
    const holdfast = await open({ workflows: [sum] })
    for (const ask of [
      () => holdfast.get(id),
      () => holdfast.journal(id),
      () => holdfast.run(id).status(),
      () => holdfast.run(id).result(),
    ]) {
      await expect(ask()).rejects.toMatchObject({ code: 'RUN_NOT_FOUND', details: { runId: id } })
    }
  })

  it('sorts in the order in which runs were started', async () => {
    const holdfast = await open({ workflows: [sum] })
    const ids: string[] = []
    for (let time = 0; time < 50; time += 1) ids.push((await holdfast.start(sum, [time])).id)
    expect(ids.toSorted()).toEqual(ids)
  })
})
