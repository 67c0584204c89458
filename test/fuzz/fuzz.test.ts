// A few cases of each target with every change, and all that are kept. `npm run fuzz` draws a million.

import { afterAll, describe, expect, it } from 'vitest'
import { fc } from '../support/properties.ts'
import { commands } from '../cli/commands.ts'
import { cli } from '../cli/world.ts'
import { flags, options } from './cli-target.ts'
import { closeShared } from './client-targets.ts'
import { targets } from './targets.ts'

afterAll(closeShared)

describe.each(targets)('$name', ({ cases, corpus, run, perMillion }) => {
  it('no case that is kept crashes it, or comes to anything but what it declares', async () => {
    for (const one of corpus) await run(one as never)
  })

  it('nor does any that is drawn', async () => {
    const numRuns = Math.ceil(Math.max(100, perMillion / 500))
    await fc.assert(
      fc.asyncProperty(cases, async (drawn) => {
        await run(drawn as never)
      }),
      { numRuns },
    )
  })
})

it('no option of any command is left out', async () => {
  // One waits for a worker that is not there, the other writes to any path.
  const excepted = ['--wait', '--out']
  const tried = new Set<string>([...flags, ...options, '--store', ...excepted])
  const left: string[] = []
  for (const command of commands) {
    const { stdout } = await cli([command, '--help'])
    const named = Array.from(stdout.matchAll(/^ +(?:-\w, )?(--[a-z-]+)/gm), ([, name]) => name ?? '')
    expect(named.length).toBeGreaterThan(0)
    left.push(...named.filter((name) => !tried.has(name)).map((name) => `${command} ${name}`))
  }
  expect(left).toEqual([])
})

it('the targets share a million cases', () => {
  expect(targets.reduce((sum, { perMillion }) => sum + perMillion, 0)).toBe(1_000_000)
})
