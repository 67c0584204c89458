// A run that this worker cannot perform, because it lacks something that another worker may have: its claim is kept for a while.
// No process has died then, and requests to control the run do not wait for that while.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { changed, kindsOf, virtualWorld } from './virtual-world.ts'

interface Setting {
  /** Of the workflow. */
  readonly lease?: '3s'
  /** Whether the worker without the offload hears hints. @default true */
  readonly hears?: boolean
  /** How seldom that worker looks by itself. @default as always */
  readonly poll?: '1h'
}

/** A run whose journal only a process with this offload can read, and a worker without it that keeps its claim for long. */
async function keptRun({ lease, hears = true, poll }: Setting = {}) {
  const world = virtualWorld()
  const { clock, open, after, store } = world
  const texts: string[] = []
  const offload = {
    thresholdBytes: 100,
    put: (text: string) => Promise.resolve(`${texts.push(text) - 1}`),
    get: (reference: string) => Promise.resolve(texts[Number(reference)] ?? ''),
  }
  const big = workflow('big', lease === undefined ? {} : { lease }, async (ctx) => {
    const { length } = await ctx.step('text', () => 'x'.repeat(1_000))
    await ctx.receive('go')
    return length
  })
  const first = await open({ workflows: [big], offload })
  await first.work()
  const { id } = await first.start(big)
  await clock.advance('1s')
  await after(first.close())
  const deaf = changed(store, { listen: () => Promise.resolve(() => undefined) })
  const polled = poll === undefined ? {} : { poll }
  const holder = await open({ workflows: [big], store: hears ? store : deaf, ...polled })
  await holder.work({ heartbeat: '1s' })
  const client = await open({ workflows: [big], offload })
  await client.signal(id, 'go')
  const isHeld = async (): Promise<boolean> => (await store.get([id]))[0]?.session !== null
  await clock.advance('5 min')
  while (await isHeld()) await clock.advance(100)
  while (!(await isHeld())) await clock.advance(10)
  return { ...world, id, big, offload, holder, client }
}

describe('a run that is left to others', () => {
  it('is never taken for crashed while its claim is kept for longer than the lease of its workflow', async () => {
    const { clock, open, after, id, big, offload, client } = await keptRun({ lease: '3s' })
    await clock.advance('10 min')
    expect(await kindsOf(client, id)).not.toContain('crashed')
    expect(await client.get(id)).toMatchObject({ pause: null })
    const able = await open({ workflows: [big], offload })
    await able.work()
    expect(await after(able.run(id).result())).toBe(1_000)
  })

  it.each([
    { hears: true, how: 'by a hint', withinMs: 0 },
    { hears: false, how: 'with the next heartbeat', withinMs: 1_000 },
  ])('is paused or cancelled $how, and not only when its time here is over', async ({ hears, withinMs }) => {
    const { clock, id, client } = await keptRun({ hears })
    await client.pause(id)
    await clock.advance(withinMs)
    expect(await client.run(id).status()).toBe('paused')
    const other = await keptRun({ hears })
    await other.client.cancel(other.id)
    await other.clock.advance(withinMs)
    expect(await other.client.run(other.id).status()).toBe('cancelled')
  })

  it('is paused at once by a call in the process that keeps it', async () => {
    const { clock, id, holder } = await keptRun({ hears: false })
    await holder.pause(id)
    await clock.advance(0)
    expect(await holder.run(id).status()).toBe('paused')
  })

  it('and ends in another process is no run of this one: a caller here learns of its end by the hint', async () => {
    const { clock, id, holder, client } = await keptRun({ poll: '1h' })
    expect(holder.active(id)).toBeNull()
    const result = holder
      .run(id)
      .result()
      .catch((error: unknown) => error)
    await clock.advance(0)
    await client.cancel(id, { mode: 'now' })
    await clock.advance(0)
    expect(await Promise.race([result, Promise.resolve('unsettled')])).toMatchObject({ code: 'RUN_CANCELLED' })
  })
})
