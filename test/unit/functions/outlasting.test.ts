// A run that fails or is cancelled, and must outlast a child that takes its time: it looks again and again, and its journal must not
// grow with that for ever.

import { expect, it } from 'vitest'
import type { NewRun } from '../../../src/core/model/new-run.ts'
import { fatal } from '../../../src/core/definition/retry-mark.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../support/function-rig.ts'

const day = 86_400_000
const child = workflow('child', () => null)
const id = '01900000-0000-7000-9000-000000000001'
const prepare = (): NewRun => ({ id, type: 'child', version: 1, first: { data: null } }) as NewRun

it.each(['fails', 'is cancelled'])('a run that %s while its child takes a day writes few entries', async (how) => {
  const rig = new FunctionRig({ prepare })
  const flow = workflow('parent', { retry: 'none' }, async (ctx) => {
    await ctx.start(child, undefined, { onParentEnd: 'wait' })
    if (how === 'fails') throw fatal('Enough')
    await ctx.receive('never')
  })
  const held = await (await rig.start(flow)).begin()
  if (how !== 'fails') await held.cancel()
  const since = rig.clock.now()
  while (rig.clock.now() - since < day) {
    const before = rig.clock.now()
    await held.goOn()
    // It ends soon enough after its child all the same, whenever that ends.
    expect(rig.clock.now() - before).toBeLessThanOrEqual(Math.max(1_000, Math.ceil((before - since) / 8)))
  }
  const story = await held.story()
  expect(story.length).toBeLessThan(110)
  expect(story.length).toBeGreaterThan(60)
})
