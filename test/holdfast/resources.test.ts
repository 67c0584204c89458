// Resources belong to the application, and so do their faults: none of them may keep a worker from its other runs.

import { expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { keepLines } from './open.ts'
import { virtualWorld } from './virtual-world.ts'

const hang = (): Promise<never> => new Promise(() => undefined)

it.each(['its block ends', 'the run is parked'])(
  'a resource whose release hangs when %s keeps its slot for a bounded time, and says so in one line',
  async (when) => {
    const { open, after } = virtualWorld()
    const stuck = workflow('stuck', (ctx) =>
      ctx.withResource(
        () => 'connection',
        hang,
        async () => {
          if (when === 'the run is parked') await ctx.receive('go on')
          return 'used'
        },
      ),
    )
    const other = workflow('other', (ctx) => ctx.step('work', () => 'worked'))
    const logger = keepLines()
    const holdfast = await open({ workflows: [stuck, other], logger })
    await holdfast.work({ concurrency: 1 })
    const run = await holdfast.start(stuck)
    expect(await after((await holdfast.start(other)).result())).toBe('worked')
    expect(await run.status()).toBe(when === 'the run is parked' ? 'waiting' : 'succeeded')
    const errors = logger.lines.filter(({ level }) => level === 'error')
    expect(errors.map(({ message }) => message)).toEqual([
      `A resource of run ${run.id} of "stuck" was not released within 10 s: its release hangs. The run goes on without it.`,
    ])
  },
)

it('a release that calls ctx is refused, as an acquire is: no replay would make the same call', async () => {
  const { open, after } = virtualWorld()
  const logger = keepLines()
  const wrong = workflow('wrong', (ctx) =>
    ctx.withResource(
      () => 'connection',
      () => void ctx.uuid(),
      () => ctx.step('work', () => 'used'),
    ),
  )
  const holdfast = await open({ workflows: [wrong], logger })
  await holdfast.work()
  const run = await holdfast.start(wrong)
  expect(await after(run.result())).toBe('used')
  const [error] = logger.lines.filter(({ level }) => level === 'error')
  expect(error?.message).toBe(`A resource of run ${run.id} of "wrong" could not be released.`)
  expect(String((error?.details as { error: unknown } | undefined)?.error)).toContain(
    'inside of the release function of ctx.withResource',
  )
})
