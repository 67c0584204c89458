// A deadline is a deadline: whatever a run is doing when its time is over, and whichever session holds it, it fails then, and never
// before. Time belongs to the test, and nothing but the engine's own timers shows that it has passed.

import { describe, expect, it } from 'vitest'
import { workflow, type Holdfast, type RunHandle } from 'holdfast'
import { machine, type Machine } from './processes.ts'
import { virtualWorld } from './virtual-world.ts'
import { temporaryPaths } from '../unit/stores/sqlite/folder.ts'

const nextPath = temporaryPaths()
const limit = 500
/** Leases are long: a session that waits for a heartbeat or for a regular look comes far too late. */
const lease = '30s'

const hang = workflow('hang', async (ctx) => {
  await ctx.step('long', ({ abortSignal }) => {
    return new Promise((_, reject) => abortSignal.addEventListener('abort', () => reject(abortSignal.reason as Error)))
  })
})
const wait = workflow('wait', async (ctx) => void (await ctx.receive('never')))
const parent = workflow('parent', async (ctx) => ctx.child(wait, undefined, { timeout: limit }))
const unknown = workflow('unknown', () => 'done')

/** How long a run lived, and why it ended. */
async function endOf(world: Machine, holdfast: Holdfast, run: RunHandle<unknown>): Promise<readonly [number, unknown]> {
  const failure = await world.after(run.result().catch((error: unknown) => (error as Error).cause))
  const { createdAt, endedAt } = await holdfast.get(run.id)
  return [(endedAt?.getTime() ?? 0) - createdAt.getTime(), (failure as { readonly code?: unknown }).code]
}

describe('a run whose time is over fails within a second', () => {
  it.each([
    ['inside a long step', hang, { timeout: limit }, 'RUN_TIMEOUT'],
    ['while it waits', wait, { timeout: limit }, 'RUN_TIMEOUT'],
    ['when nobody performs its type', unknown, { expiresIn: limit }, 'RUN_EXPIRED'],
    ['when nobody performs its type, by the bound of the whole run', unknown, { timeout: limit }, 'RUN_TIMEOUT'],
  ] as const)('%s', async (_, what, bounds, code) => {
    const world = machine(nextPath())
    const worker = await world.begin([hang, wait])
    await worker.holdfast.work({ lease })
    const { holdfast } = what === unknown ? await world.begin([unknown]) : worker
    const run = await holdfast.start(what as typeof hang, undefined, bounds)
    const [age, why] = await endOf(world, holdfast, run)
    expect(why).toBe(code)
    expect(age).toBeGreaterThanOrEqual(limit)
    expect(age).toBeLessThan(limit + 1_000)
  })

  it('while it waits, where no worker looks by itself: the rescuer is notified of new deadlines', async () => {
    const world = virtualWorld()
    const holdfast = await world.open({ workflows: [wait] })
    await holdfast.work({ lease })
    // The first look at the start of the worker is over.
    await world.clock.advance('20s')
    const run = await holdfast.start(wait, undefined, { timeout: limit })
    await expect(world.after(run.result())).rejects.toMatchObject({ cause: { code: 'RUN_TIMEOUT' } })
    const { createdAt, endedAt } = await holdfast.get(run.id)
    expect((endedAt?.getTime() ?? Infinity) - createdAt.getTime()).toBeLessThan(limit + 1_000)
  })

  it('as a child that waits, and its parent is notified', async () => {
    const world = machine(nextPath())
    const { holdfast } = await world.begin([parent, wait])
    await holdfast.work({ lease })
    const run = await holdfast.start(parent)
    const [age, why] = await endOf(world, holdfast, run)
    expect(why).toBe('CHILD_FAILED')
    expect(age).toBeLessThan(limit + 1_500)
  })

  it('when every slot is taken and it cannot begin', async () => {
    const world = machine(nextPath())
    const { holdfast } = await world.begin([hang])
    await holdfast.work({ lease, concurrency: 1, shutdownTimeout: 1 })
    await holdfast.start(hang)
    const run = await holdfast.start(hang, undefined, { expiresIn: limit })
    const [age, why] = await endOf(world, holdfast, run)
    expect(why).toBe('RUN_EXPIRED')
    expect(age).toBeLessThan(limit + 1_000)
  })

  it('when another process started it, which notifies nobody', async () => {
    const world = machine(nextPath())
    const worker = await world.begin([wait])
    await worker.holdfast.work({ lease })
    await world.after(new Promise((resolve) => world.clock.after(20_000, () => resolve(null))))
    const client = await world.begin([wait])
    const run = await client.holdfast.start(wait, undefined, { timeout: limit })
    const [age, why] = await endOf(world, client.holdfast, run)
    expect(why).toBe('RUN_TIMEOUT')
    expect(age).toBeLessThan(limit + 1_100)
  })
})
