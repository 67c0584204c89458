// What a parked run keeps in memory: no more after a replay than before, because what it was replayed from was shown. Objects
// are counted, not bytes: a count is the same each time.

import { describe, expect, it } from 'vitest'
import type { Frame } from '../../../src/core/definition/definition.ts'
import { silentListener } from '../../../src/core/runtime/silent-host.ts'
import type { Context } from '../../../src/functions/api/context.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../support/function-rig.ts'

const text = 'x'.repeat(1_000)

/** The bodies of runs that are parked, and were parked once before. */
const bodies: Readonly<Record<string, (ctx: Context) => Promise<void>>> = {
  'that only performed steps': async (ctx) => {
    for (let at = 0; at < 20; at += 1) await ctx.step(`step ${at}`, () => text + String(at))
    await ctx.sleep('1h')
    await ctx.sleep('1h')
  },
  'that may have to undo a step': async (ctx) => {
    await ctx.step('book', () => text, { undo: () => undefined })
    await ctx.sleep('1h')
    await ctx.sleep('1h')
  },
  'that made calls of every kind': async (ctx) => {
    ctx.log(ctx.uuid())
    ctx.expose('place', 1)
    ctx.patched('change')
    const token = ctx.token()
    await ctx.step('fail', () => Promise.reject(new Error(text)), { retry: 'none' }).catch(() => undefined)
    await ctx.race({ token, due: ctx.sleep('1h') })
    await ctx.sleep('1h')
  },
}

/** What a frame keeps that is parked for the second time. */
async function keptBy(body: (ctx: Context) => Promise<void>, how: 'in memory' | 'replayed'): Promise<Kept> {
  const rig = new FunctionRig()
  const flow = workflow('parked', body)
  const { frame: first, runId } = await rig.start(flow)
  first.start(silentListener)
  await rig.quiet()
  expect(first.seq).toBe(rig.committedSeq(runId))
  await rig.pass(3_600_000)
  const claim = rig.claim(runId)
  const frame = how === 'replayed' ? flow.open(rig.host, claim) : first
  if (how === 'replayed') frame.start(silentListener)
  else frame.resume({ ...claim, entries: [] }, silentListener)
  await rig.quiet()
  expect(frame.seq).toBe(rig.committedSeq(runId))
  return keptIn(frame, rig)
}

interface Kept {
  readonly objects: number
  /** The length of all texts. */
  readonly texts: number
}

/** Counts what can be reached from a frame, and not from its surroundings, by properties and members. */
function keptIn(frame: Frame, rig: FunctionRig): Kept {
  const seen = new Set<unknown>()
  const reach = (from: unknown): number => {
    let texts = 0
    const left = [from]
    while (left.length > 0) {
      const value = left.pop()
      if (typeof value === 'string') texts += value.length
      if (typeof value !== 'object' || value === null || seen.has(value)) continue
      seen.add(value)
      if (value instanceof Map || value instanceof Set) for (const member of value.entries()) left.push(...member)
      for (const key of Reflect.ownKeys(value)) left.push(Reflect.get(value, key))
    }
    return texts
  }
  reach(rig.host)
  const around = seen.size
  const texts = reach(frame)
  return { objects: seen.size - around, texts }
}

describe('a run that is parked', () => {
  it.each(Object.entries(bodies))('keeps no more after a replay than before: one %s', async (_, body) => {
    const before = await keptBy(body, 'in memory')
    const after = await keptBy(body, 'replayed')
    expect(after.objects).toBeLessThanOrEqual(before.objects)
    expect(after.texts).toBeLessThanOrEqual(before.texts)
  })
})
