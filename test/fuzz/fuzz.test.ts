// A few cases of each target with every change, and all that are kept. `npm run fuzz` draws a million.

import { afterAll, describe, expect, it } from 'vitest'
import { fc } from '../support/properties.ts'
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

it('the targets share a million cases', () => {
  expect(targets.reduce((sum, { perMillion }) => sum + perMillion, 0)).toBe(1_000_000)
})
