// What a parked run keeps in memory: no more after a replay than before, because what it was replayed from was shown.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { Frame } from '../../../src/core/definition/definition.ts'
import { silentListener } from '../../../src/core/runtime/silent-host.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../support/function-rig.ts'

const runs = 400
const text = 'x'.repeat(1_000)

function collector(): () => void {
  setFlagsFromString('--expose_gc')
  return runInNewContext('gc') as () => void
}

/** The heap that a frame keeps which is parked, by what its loss gives back. */
async function heapPerFrame(how: 'in memory' | 'replayed'): Promise<number> {
  const collect = collector()
  const rig = new FunctionRig()
  const flow = workflow('parked', async (ctx) => {
    for (let at = 0; at < 20; at += 1) await ctx.step(`step ${at}`, () => text + String(at))
    await ctx.sleep('1h')
    await ctx.sleep('1h')
  })
  let frames: Frame[] = []
  const ids: string[] = []
  for (let at = 0; at < runs; at += 1) {
    const held = await rig.start(flow)
    held.frame.start(silentListener)
    frames.push(held.frame)
    ids.push(held.runId)
  }
  await rig.quiet()
  await rig.pass(3_600_000)
  if (how === 'replayed') frames = []
  for (const [at, id] of ids.entries()) {
    const claim = rig.claim(id)
    const frame = frames[at] ?? flow.open(rig.host, { ...claim, entries: structuredClone(claim.entries) })
    if (how === 'replayed') frame.start(silentListener)
    else frame.resume({ ...claim, entries: [] }, silentListener)
    frames[at] = frame
  }
  await rig.quiet()
  expect(frames.map(({ seq }) => seq)).toEqual(ids.map((id) => rig.committedSeq(id)))
  const heap = (): number => {
    for (let round = 0; round < 3; round += 1) collect()
    return process.memoryUsage().heapUsed
  }
  await rig.turn()
  const before = heap()
  frames = []
  await rig.turn()
  return (before - heap()) / runs
}

describe('a run that is parked', () => {
  it('keeps no more of its journal after a replay than without one', async () => {
    await heapPerFrame('in memory')
    const without = await heapPerFrame('in memory')
    const after = await heapPerFrame('replayed')
    // Its journal is 20 kB: if the frame kept it, that would show whatever else is measured.
    expect(after - without).toBeLessThan(2_000)
  })
})
