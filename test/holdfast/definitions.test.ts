// What a process knows: how workflows are named, registered and found.

import { describe, expect, it } from 'vitest'
import { createHoldfast, workflow } from 'holdfast'
import * as billing from './billing.ts'
import { memoryStore, open, openWorking } from './open.ts'

describe('workflows', () => {
  it('PQ-A1 one definition has many runs, each with its own input', async () => {
    const square = workflow('square', (ctx, n: number) => ctx.step('square', () => n * n))
    const holdfast = await openWorking([square])
    const runs = await Promise.all([1, 2, 3, 4].map((n) => holdfast.start(square, n)))
    expect(new Set(runs.map((run) => run.id)).size).toBe(4)
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 4, 9, 16])
  })

  it('SW-A1 are registered explicitly, and their payload is passed as JSON', async () => {
    const echo = workflow('echo', (_ctx, payload: unknown) => payload)
    const holdfast = await openWorking([echo])
    const payload = { list: [1, 'two', null, true], nested: { empty: {} } }
    expect(await (await holdfast.start('echo', payload)).result()).toEqual(payload)
  })

  it('SW-A2 may be called domain.action.vN', async () => {
    const charge = workflow('billing.invoice_charge.v1', () => 'v1')
    const chargeAgain = workflow('billing.invoice_charge.v2', () => 'v2')
    const holdfast = await openWorking([charge, chargeAgain])
    expect(await (await holdfast.start('billing.invoice_charge.v1')).result()).toBe('v1')
    expect(await (await holdfast.start('billing.invoice_charge.v2')).result()).toBe('v2')
  })

  it('PQ-A9 are found among the exports of a module', async () => {
    const holdfast = await openWorking(billing)
    expect(await (await holdfast.start(billing.charge, 5)).result()).toBe('charged 5 EUR')
    expect(await (await holdfast.start('billing.refund', 5)).result()).toBe(
      `refunded ${billing.round(5.4)} ${billing.currency}`,
    )
  })

  it('that a module exports under two names are one workflow', async () => {
    const holdfast = await openWorking({ charge: billing.charge, default: billing.charge })
    expect(await (await holdfast.start(billing.charge, 5)).result()).toBe('charged 5 EUR')
  })

  it('WC-A1 an unknown name is refused with the one that was probably meant', async () => {
    const holdfast = await open({ workflows: [billing.charge, billing.refund] })
    await expect(holdfast.start('billing.chrage', 5)).rejects.toMatchObject({
      code: 'WORKFLOW_UNKNOWN',
      message: expect.stringMatching(/"billing\.chrage".*Did you mean "billing\.charge"\?.*createHoldfast/s) as string,
    })
  })

  it('WC-A1 a definition that was not registered here is refused', async () => {
    const holdfast = await open()
    await expect(holdfast.start(billing.charge, 5)).rejects.toMatchObject({
      code: 'WORKFLOW_UNKNOWN',
      message: expect.stringContaining('None is registered') as string,
    })
  })

  it('a definition that only has the name of a registered one is refused', async () => {
    const holdfast = await open({ workflows: [billing.charge] })
    const impostor = workflow('billing.charge', () => 'stolen')
    await expect(holdfast.start(impostor)).rejects.toMatchObject({ code: 'WORKFLOW_UNKNOWN' })
  })

  it('two of one name are refused before anything is started', async () => {
    const twins = [workflow('twin', () => 1), workflow('twin', () => 2)]
    await expect(createHoldfast({ store: 'memory:', workflows: twins })).rejects.toMatchObject({
      code: 'WORKFLOW_EXISTS',
      message: expect.stringContaining('"twin"') as string,
      details: { type: 'twin', version: 1 },
    })
  })

  it('stand side by side in several versions, and a name means the newest', async () => {
    const old = workflow('priced', { version: 1 }, () => 'old')
    const current = workflow('priced', { version: 2 }, () => 'current')
    const holdfast = await openWorking([current, old])
    expect(await (await holdfast.start('priced')).result()).toBe('current')
    const run = await holdfast.start(old)
    expect(await run.result()).toBe('old')
    expect((await holdfast.get(run)).version).toBe(1)
  })

  it('HE-X1 run unchanged on whatever store they are given', async () => {
    const results = []
    for (const store of ['memory:', memoryStore(), memoryStore()] as const) {
      const holdfast = await openWorking([billing.charge], { store })
      results.push(await (await holdfast.start(billing.charge, 7)).result())
    }
    expect(results).toEqual(['charged 7 EUR', 'charged 7 EUR', 'charged 7 EUR'])
  })
})
