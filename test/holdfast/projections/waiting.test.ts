// What `waitFor` says when the read model does not come: the input was decided all the same.

import { describe, expect, it } from 'vitest'
import { memoryProjection, subscription } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'
import { counterOf } from './read-model.ts'

const counter = counterOf()
const input = { type: 'Add', id: 'a', by: 1 } as const

describe.each(everyStore)('waiting for a projection on $name', ({ make }) => {
  it('says that the input was decided when this Holdfast is closed meanwhile', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [counter] })
    await holdfast.project(subscription('slow', { from: counter, handle: () => undefined }), { auto: false })
    const waiting = holdfast
      .execute(counter, input, { waitFor: 'slow', commandId: 'one' })
      .catch((error: unknown) => error)
    await until('the input is decided', async () => (await holdfast.events(counter, 'a')).length === 1)
    await holdfast.close()
    expect(await waiting).toMatchObject({ code: 'PROJECTION_BEHIND', cause: { code: 'CLOSED' } })
    expect(String(await waiting)).toContain('The input was decided')
  })

  it('knows a projection as soon as this process projects it, before it has moved', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [counter] })
    await holdfast.project(subscription('new', { from: counter, handle: () => undefined }), { auto: false })
    const behind = holdfast.execute(counter, input, { waitFor: 'new', timeout: 50 })
    await expect(behind).rejects.toMatchObject({ code: 'PROJECTION_BEHIND' })
  })

  it('says at which event a memory projection is parked, and why', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [counter] })
    const fails = () => {
      throw new Error('no such place')
    }
    const broken = memoryProjection('broken', { from: counter, init: () => 0, handle: fails })
    const running = await holdfast.project(broken, { auto: false })
    await holdfast.execute(counter, input)
    await running.tick()
    const behind = holdfast.execute(counter, input, { waitFor: 'broken', timeout: 50 })
    await expect(behind).rejects.toMatchObject({ code: 'PROJECTION_BEHIND', details: { status: 'parked' } })
    await expect(behind).rejects.toThrow('no such place')
    await expect(behind).rejects.not.toThrow('holdfast projections')
  })

  it('says at which event any other is parked, and why', async () => {
    const { open } = await make()
    const holdfast = await open({ workflows: [counter] })
    const fails = () => {
      throw new Error('no such place')
    }
    const broken = subscription('broken', { from: counter, maxAttempts: 1, handle: fails })
    const running = await holdfast.project(broken, { auto: false })
    await holdfast.execute(counter, input)
    await running.tick()
    const behind = holdfast.execute(counter, input, { waitFor: broken, timeout: 50 })
    await expect(behind).rejects.toMatchObject({ code: 'PROJECTION_BEHIND', details: { status: 'parked' } })
    await expect(behind).rejects.toThrow('("Added"): no such place')
  })
})
