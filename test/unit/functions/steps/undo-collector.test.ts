// A run that fails or is cancelled is replayed so that its body says how its steps are undone. What keeps the body from saying so may
// be away for longer than the grace: then nothing is given up, and the run is looked at again, later each time.

import { describe, expect, it } from 'vitest'
import type { Offload } from '../../../../src/core/payload/payload.ts'
import type { Context } from '../../../../src/functions/api/context.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../../support/function-rig.ts'

const grace = 700
const large = 'x'.repeat(1_000)

/** A place for large values that may be away, or slow. */
class Bucket implements Offload {
  readonly thresholdBytes = 500
  isAway = false
  /** How long it takes to get something. */
  ms = 0
  rig: FunctionRig | null = null
  private readonly texts = new Map<string, string>()

  async put(text: string): Promise<string> {
    const reference = `text-${this.texts.size}`
    this.texts.set(reference, text)
    return reference
  }

  async get(reference: string): Promise<string> {
    if (this.isAway) throw new Error('The bucket is away')
    const { rig, ms } = this
    if (ms > 0) await new Promise<void>((resolve) => rig?.ports.clock.after(ms, resolve))
    return this.texts.get(reference) ?? ''
  }
}

type TripBody = (ctx: Context, book: (name: string) => Promise<unknown>) => unknown

interface World {
  readonly rig: FunctionRig
  readonly bucket: Bucket
  readonly undone: string[]
  readonly start: (body: TripBody, input?: unknown) => Promise<Held>
}

function world(): World {
  const bucket = new Bucket()
  const rig = new FunctionRig({ offload: bucket, abortGraceMs: grace })
  bucket.rig = rig
  const undone: string[] = []
  return {
    rig,
    bucket,
    undone,
    start: async (body, input = 1) => {
      const flow = workflow('trip', { retry: 'none' }, (ctx, _input: unknown) => {
        const book = (name: string): Promise<unknown> =>
          ctx.step(name, () => name + large, { undo: (id) => void undone.push(String(id).replace(large, '')) })
        return body(ctx, book)
      })
      return (await rig.start(flow, input)).begin()
    },
  }
}

async function delaysOf(held: Held): Promise<readonly number[]> {
  return (await held.journal()).flatMap((entry) => (entry.kind === 'attempt-failed' ? [entry.meta.delayMs] : []))
}

describe('a run that is to be undone while', () => {
  it('what its steps returned is away for longer than the grace is undone when it is back', async () => {
    const { rig, bucket, undone, start } = world()
    const held = await start(async (ctx, book) => {
      await book('flight')
      await book('hotel')
      await ctx.sleep('1 day')
    })
    bucket.isAway = true
    await held.cancel('no more')
    for (let times = 0; times < 3; times += 1) {
      await held.goOn('replayed')
      await rig.pass(2 * grace)
      expect([await held.status(), held.departure?.kind]).toEqual(['cancelling', 'released'])
    }
    expect(await delaysOf(held)).toEqual([5_000, 10_000, 20_000])
    expect(rig.lines.filter(({ level }) => level === 'error').map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/\(hotel\) cannot be undone yet.*tried again later/),
    )
    bucket.isAway = false
    await held.goOn('replayed')
    expect(undone).toEqual(['hotel', 'flight'])
    expect((await held.journal()).at(-1)).toMatchObject({ kind: 'cancelled', meta: { notUndone: [] } })
  })

  it.each(['input', 'error'] as const)('its %s is away fails in the end, with everything undone', async (what) => {
    const { rig, bucket, start } = world()
    const held = await start(
      async (ctx) => {
        await ctx.step('flight', () => 1, { undo: (_, tools) => rig.gated(tools) })
        throw new Error(what === 'error' ? large : 'No seat')
      },
      what === 'input' ? large : 1,
    )
    await held.crash()
    bucket.isAway = true
    await held.goOn('replayed')
    await rig.pass(2 * grace)
    expect([held.departure?.kind, await held.status(), await delaysOf(held)]).toEqual(['released', 'pending', [5_000]])
    bucket.isAway = false
    await held.goOn('replayed')
    await rig.succeed('undo flight')
    expect(await held.outcome()).toMatchObject({
      status: 'failed',
      value: { message: what === 'error' ? large : 'No seat' },
    })
    expect((await held.journal()).at(-1)?.meta).toBeNull()
  })

  it('each of its payloads takes a while is not given up: the grace counts anew when the body goes on', async () => {
    const { rig, bucket, undone, start } = world()
    const held = await start(async (ctx, book) => {
      for (const name of ['a', 'b', 'c', 'd']) await book(name)
      await ctx.sleep('1 day')
    })
    bucket.ms = grace - 100
    await held.cancel()
    await held.goOn('replayed')
    await rig.pass(10 * grace)
    expect([await held.status(), undone]).toEqual(['cancelled', ['d', 'c', 'b', 'a']])
    expect(await delaysOf(held)).toEqual([])
  })

  it.each(['refuses', 'hangs'] as const)(
    'a resource that its body needs %s is undone when that is back',
    async (how) => {
      const { rig, undone, start } = world()
      let isAway = false
      const acquire = (): Promise<number> => {
        if (!isAway) return Promise.resolve(1)
        return how === 'refuses' ? Promise.reject(new Error('Connection refused')) : new Promise(() => undefined)
      }
      const held = await start((ctx, book) =>
        ctx.withResource(
          acquire,
          () => undefined,
          async () => {
            await book('flight')
            await ctx.sleep('1 day')
          },
        ),
      )
      isAway = true
      await held.cancel()
      await held.goOn('replayed')
      await rig.pass(2 * grace)
      expect([await held.status(), await delaysOf(held)]).toEqual(['cancelling', [5_000]])
      isAway = false
      await held.goOn('replayed')
      expect([await held.status(), undone]).toEqual(['cancelled', ['flight']])
    },
  )
})

it('a body that hangs on something of its own is waited for no longer than the grace since it went on', async () => {
  const { rig, undone, start } = world()
  let hangs = false
  const held = await start(async (ctx, book) => {
    await book('flight')
    if (hangs) await new Promise(() => undefined)
    await book('hotel')
    await ctx.sleep('1 day')
  })
  hangs = true
  await held.cancel()
  await held.goOn('replayed')
  await rig.pass(grace - 1)
  expect(await held.status()).toBe('cancelling')
  await rig.pass(1)
  expect([await held.status(), undone]).toEqual(['cancelled', ['flight']])
  expect((await held.journal()).at(-1)).toMatchObject({ meta: { notUndone: ['hotel'] } })
})
