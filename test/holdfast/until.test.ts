// `ctx.until`: a condition that nothing reports is checked durably, and at once when a signal does.

import { expect, test } from 'vitest'
import { workflow } from 'holdfast'
import { virtualWorld } from './virtual-world.ts'

test('a condition is checked every hour if nobody says otherwise, and survives restarts (PQ-W1)', async () => {
  const { open, after, clock } = virtualWorld()
  const checks: number[] = []
  let isThere = false
  const polling = workflow('polling', async (ctx) => {
    return ctx.until('there', () => {
      checks.push(clock.now())
      return isThere ? 'found' : null
    })
  })
  const first = await open({ workflows: [polling] })
  await first.work()
  const run = await first.start(polling)
  await clock.advance('2 h')
  await after(first.close())
  const second = await open({ workflows: [polling] })
  await second.work()
  await clock.advance('30 min')
  isThere = true
  expect(await after(second.run(run).result())).toBe('found')
  const pauses = checks.slice(1).map((at, index) => at - (checks[index] as number))
  for (const pause of pauses) expect(pause).toBeGreaterThanOrEqual(3_600_000)
  expect(checks).toHaveLength(4)
})

test('a caller that knows better wakes it early, and a wait between checks is what was asked for (PQ-W2)', async () => {
  const { open, after, clock } = virtualWorld()
  let checks = 0
  let isThere = false
  const polling = workflow('polling', async (ctx) =>
    ctx.until('there', () => (checks += 1) && isThere, { every: '1 day' }),
  )
  const holdfast = await open({ workflows: [polling] })
  await holdfast.work()
  const run = await holdfast.start(polling)
  await clock.advance('1 s')
  await holdfast.signal(run, 'there')
  await clock.advance('1 s')
  expect(checks).toBe(2)
  isThere = true
  await holdfast.signal(run, 'there')
  expect(await after(run.result())).toBe(true)
  expect(checks).toBe(3)
})

test('other steps go on while it waits, and the run is parked only when they have ended (PQ-W3)', async () => {
  const { open, after, pause, clock } = virtualWorld()
  let isThere = false
  const busy = workflow('busy', async (ctx) => {
    const found = ctx.until('there', () => isThere, { every: '1 h' })
    const worked = ctx.step('work', () => pause(60_000).then(() => 'done'))
    return [await found, await worked]
  })
  const holdfast = await open({ workflows: [busy] })
  await holdfast.work()
  const run = await holdfast.start(busy)
  await clock.advance('30 s')
  expect((await holdfast.get(run)).status).toBe('running')
  await clock.advance('40 s')
  expect((await holdfast.get(run)).status).toBe('waiting')
  isThere = true
  await holdfast.signal(run, 'there')
  expect(await after(run.result())).toEqual([true, 'done'])
})
