// Errors whose message is no text: every line that quotes one must be written all the same, and the run ends as it would.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { keepLines, openWorking } from './open.ts'

const hostile: readonly (readonly [string, unknown])[] = [
  ['a symbol', Symbol('s')],
  ['nothing', undefined],
  ['an object without a text', Object.create(null)],
  [
    'an object that refuses to be one',
    {
      toString: () => {
        throw new Error('no')
      },
    },
  ],
  ['5 MB', 'x'.repeat(5_000_000)],
]

describe.each(hostile)('an error whose message is %s', (_name, message) => {
  const thrown = (): Error => Object.assign(new Error('x'), { message })

  it('fails its run, which is named in one line, and leaves its slot', async () => {
    const logger = keepLines()
    const bad = workflow('hostile.body', { retry: 'none' }, () => Promise.reject(thrown()))
    const good = workflow('hostile.good', () => Promise.resolve(1))
    const holdfast = await openWorking([bad, good], { logger })
    const run = await holdfast.start(bad)
    await expect(run.result({ timeout: '10s' })).rejects.toMatchObject({ code: 'RUN_FAILED' })
    expect(await (await holdfast.start(good)).result({ timeout: '10s' })).toBe(1)
    const lines = logger.lines.filter(({ message: line }) => line.includes(`Run ${run.id} of "hostile.body" failed`))
    expect(lines).toHaveLength(1)
    expect(lines[0]?.message.length).toBeLessThan(2_200)
  })

  it('of a branch that is not awaited is a warning, and the run succeeds', async () => {
    const logger = keepLines()
    const careless = workflow('hostile.branch', async (ctx) => {
      void ctx.branch('b', () => Promise.reject(thrown()))
      await ctx.step('y', () => 1)
      return 'done'
    })
    const holdfast = await openWorking([careless], { logger })
    expect(await (await holdfast.start(careless)).result({ timeout: '10s' })).toBe('done')
    expect(logger.lines.some(({ message: line }) => line.includes('returned without awaiting them'))).toBe(true)
  })
})
