// `watch` draws how far a run is, and says in words what it waits for; `journal` prints the entry as it stands.

import { expect, it } from 'vitest'
import { workflow } from '../../src/index.ts'
import { shop } from './seed.ts'

it('draws progress as a bar', async () => {
  const halfway = workflow('demo.halfway', async (ctx) => ctx.progress(0.5, 'half of it'))
  const { holdfast, run } = await shop({ workflows: [halfway] })
  await holdfast.work()
  const started = await holdfast.start(halfway)
  await started.result()
  expect((await run(['watch', started.id])).stdout).toMatch(/progressed .* █{10}░{10} 50 % {2}"half of it"\n/)
  expect((await run(['journal', started.id])).stdout).toContain('"fraction":0.5')
})

it('says in words what a run waits for, and what ended the wait', async () => {
  const asking = workflow('demo.asking', async (ctx) => {
    await ctx.race({ ok: ctx.receive('approved'), late: ctx.sleep('2 days') })
  })
  const { holdfast, run } = await shop({ workflows: [asking] })
  await holdfast.work()
  const started = await holdfast.start(asking)
  await expect.poll(() => started.status()).toBe('waiting')
  await started.signal('approved', { by: 'Ada' })
  await started.result()
  const { stdout } = await run(['watch', started.id])
  expect(stdout).toMatch(/waiting +race {2}for the signal approved, or for 2 days\n/)
  expect(stdout).toMatch(/woken +race {2}ok came first \(the signal approved came\) {2}\{"by":"Ada"\}\n/)
  expect((await run(['journal', started.id])).stdout).toContain('"conditions":[')
})
