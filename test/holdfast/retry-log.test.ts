// What the log of a worker says of attempts that fail and are tried again: a failing dependency must not be silence.

import { expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { keepLines } from './open.ts'
import { virtualWorld } from './virtual-world.ts'

it('every attempt that is tried again has one line, and the last failure the line of its run', async () => {
  const { clock, open, after } = virtualWorld()
  const logger = keepLines()
  let [bodies, undos] = [0, 0]
  const trip = workflow('trip', { retry: { maxAttempts: 2, initial: '3s', jitter: { mode: 'none' } } }, async (ctx) => {
    await ctx.step('flight', () => 'F1', {
      undo: () => {
        undos += 1
        if (undos === 1) throw new Error('The airline is closed')
      },
      retry: { maxAttempts: 2, initial: '1s', jitter: { mode: 'none' } },
    })
    bodies += 1
    if (bodies === 1) throw new Error('Stumbled')
    const retry = { maxAttempts: 3, initial: '2s', jitter: { mode: 'none' } } as const
    await ctx.step('hotel', () => Promise.reject(new Error('No room')), { retry })
  })
  const holdfast = await open({ workflows: [trip], logger })
  await holdfast.work()
  const run = await holdfast.start(trip)
  await expect(after(run.result())).rejects.toMatchObject({ code: 'RUN_FAILED', cause: { message: 'No room' } })
  const lines = logger.lines.filter(({ level }) => level === 'warn')
  expect(lines.map(({ message }) => message)).toEqual([
    `Run ${run.id} of "trip" tries its body again in 3 s: attempt 1 failed: Stumbled`,
    `Run ${run.id} of "trip" tries step "hotel" again in 2 s: attempt 1 failed: No room`,
    `Run ${run.id} of "trip" tries step "hotel" again in 4 s: attempt 2 failed: No room`,
    `Run ${run.id} of "trip" tries the undo of step "flight" again in 1 s: attempt 1 failed: The airline is closed`,
    expect.stringContaining(`Run ${run.id} of "trip" failed: `),
  ])
  const { error, ...details } = lines[1]?.details ?? {}
  expect(details).toEqual({ run: run.id, type: 'trip', step: 'hotel', attempt: 1, delayMs: 2_000 })
  expect(error).toMatchObject({ message: 'No room' })
  await clock.advance('1 min')
})

it('a replay logs no failed attempt of its journal again', async () => {
  const { clock, open, after } = virtualWorld()
  const [logger, later] = [keepLines(), keepLines()]
  let attempts = 0
  const slow = workflow('slow', async (ctx) => {
    const retry = { initial: '1s', jitter: { mode: 'none' } } as const
    await ctx.step('ask', () => ((attempts += 1) === 1 ? Promise.reject(new Error('Busy')) : 1), { retry })
    await ctx.sleep('1h')
    return 'done'
  })
  const first = await open({ workflows: [slow], logger })
  await first.work()
  const run = await first.start(slow)
  await clock.advance('10s')
  await after(first.close())
  expect(logger.lines.filter(({ message }) => message.includes('again in'))).toHaveLength(1)
  const second = await open({ workflows: [slow], logger: later })
  await second.work()
  expect(await after(second.run(run.id).result())).toBe('done')
  expect(later.lines.filter(({ message }) => message.includes('again in'))).toEqual([])
})
