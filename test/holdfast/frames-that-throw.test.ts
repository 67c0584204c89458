// A defect in a frame: it throws while it begins or goes on. Only its run is concerned, and its slot is used again.

import { describe, expect, it } from 'vitest'
import { workflow, type Workflow } from 'holdfast'
import type { Definition, Frame } from '../../src/core/definition/definition.ts'
import { keepLines, openWorking, open } from './open.ts'

/** The workflow, whose frames throw in one of their methods; a frame that does is aborted, and departs. */
function broken(name: string, method: 'start' | 'resume', isBroken: () => boolean): Workflow<number, number> {
  const definition = workflow(name, async (ctx, n: number) => {
    await ctx.sleep(1)
    return ctx.step('double', () => 2 * n)
  })
  const whole = definition as unknown as Definition
  const open = (...given: Parameters<Definition['open']>): Frame => {
    const frame = whole.open(...given)
    const work = frame[method].bind(frame) as (...args: unknown[]) => void
    frame[method] = (...args: unknown[]) => {
      work(...args)
      if (isBroken()) throw new Error('a defect')
    }
    return frame
  }
  return Object.assign(Object.create(definition) as typeof definition, { open })
}

const plain = workflow('plain', (ctx, n: number) => ctx.step('same', () => n))

describe('a frame that throws', () => {
  it('while it begins fails its run alone, and others get its one slot', async () => {
    const bad = broken('bad.start', 'start', () => true)
    const logger = keepLines()
    const holdfast = await open({ workflows: [bad, plain], logger })
    await holdfast.work({ concurrency: 1 })
    for (let round = 0; round < 3; round += 1) {
      const run = await holdfast.start(bad, round)
      await expect(run.result({ timeout: '10s' })).rejects.toMatchObject({ code: 'RUN_FAILED' })
      const others = await Promise.all([1, 2, 3].map((n) => holdfast.start(plain, n)))
      expect(await Promise.all(others.map((other) => other.result({ timeout: '10s' })))).toEqual([1, 2, 3])
    }
    expect(logger.lines.filter(({ message }) => message.includes('cannot be performed'))).toHaveLength(3)
  })

  it('while it goes on gives its run back, which is replayed', async () => {
    let isBroken = true
    const bad = broken('bad.resume', 'resume', () => {
      const was = isBroken
      isBroken = false
      return was
    })
    const holdfast = await openWorking([bad, plain])
    const run = await holdfast.start(bad, 21)
    expect(await run.result({ timeout: '20s' })).toBe(42)
    expect(isBroken).toBe(false)
    expect(await (await holdfast.start(plain, 1)).result({ timeout: '10s' })).toBe(1)
  })
})
