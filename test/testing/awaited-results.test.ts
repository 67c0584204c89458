// A test that awaits a result which nothing can bring any more gets an error, with the call that was forgotten.

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from '../../src/index.ts'
import { createTest, type TestOptions, type WorkflowTest } from '../../src/testing/index.ts'
import { folder } from '../cli/world.ts'

const sleepy = workflow('sleepy', async (ctx) => {
  await ctx.sleep('1h')
  return 'slept'
})
const asking = workflow('asking', async (ctx) => {
  await ctx.receive('approved')
  return 'approved'
})
const parent = workflow('parent', (ctx) => ctx.child(asking))

async function world(options: Partial<TestOptions> = {}): Promise<WorkflowTest> {
  const t = await createTest({ workflows: [sleepy, asking, parent], patience: '20 ms', ...options })
  onTestFinished(() => t.close())
  return t
}

describe('a result that is awaited in vain', () => {
  it('is rejected with the time that must pass', async () => {
    const t = await world()
    const run = await t.start(sleepy)
    await expect(run.result()).rejects.toThrow(/"sleepy".* waits for time: .*, in 1 h\. .*t\.advance\('1h'\)/)
    await expect(run.result()).rejects.toHaveProperty('code', 'RESULT_TIMEOUT')
    // The run is not harmed.
    await t.advance('1h')
    expect(await run.result()).toBe('slept')
  })

  it('is rejected with the signal that was not sent, also of a child, and by any handle', async () => {
    const t = await world()
    const run = await t.start(asking)
    await expect(t.run(run.id).result()).rejects.toThrow(/waits for signal "approved"\. .*t\.signal\(/)
    const [many] = await t.startMany([{ workflow: parent }])
    if (!many.ok) throw many.error
    await expect(many.value.result()).rejects.toThrow(/the end of run .* of "asking" waits for signal "approved"/)
    await expect(t.holdfast.run(run.id).result()).rejects.toThrow('approved')
  })

  it('is rejected with the failure of the attempt that is to be repeated, of a step and of a body', async () => {
    const retry = { initial: '1 min', jitter: { mode: 'none' } } as const
    const broken = workflow('broken', { retry }, async (ctx) => {
      await ctx.step('book', () => {
        throw new Error('no such table: orders')
      })
    })
    const refusing = workflow('refusing', { retry }, () => {
      throw new Error('not today')
    })
    const t = await world({ workflows: [broken, refusing] })
    const run = await t.start(broken)
    await expect(run.result()).rejects.toThrow(
      /waits for the next attempt of step "book", which failed with "no such table: orders": .*, in 1 min\. .*t\.advance/,
    )
    const other = await t.start(refusing)
    await expect(other.result()).rejects.toThrow(/next attempt of the body, which failed with "not today"/)
    const waiting = await t.drain()
    expect(waiting.map(({ waitsFor }) => waitsFor)).toContainEqual([
      { kind: 'retry', name: 'book', at: new Date('2030-01-01T00:01:00Z'), error: 'no such table: orders' },
    ])
    // After the last attempt the run is over.
    await t.drain({ time: true })
    await expect(run.result()).rejects.toHaveProperty('code', 'RUN_FAILED')
  })

  it('is rejected with the signal that was sent under another name', async () => {
    const t = await world()
    const run = await t.start(asking)
    await run.signal('aproved')
    await expect(run.result()).rejects.toThrow(
      /It has been sent "aproved", and no wait of it has asked for that: misspelt\? Did you mean "approved"\?/,
    )
  })

  it('names it to a script that would otherwise end without a word', { timeout: 30_000 }, () => {
    const program = join(folder(), 'program.mjs')
    writeFileSync(
      program,
      `import { workflow } from ${JSON.stringify(resolve('src/index.ts'))}
       import { createTest } from ${JSON.stringify(resolve('src/testing/index.ts'))}
       const nap = workflow('nap', (ctx) => ctx.sleep('1h'))
       const t = await createTest({ workflows: [nap] })
       await (await t.start(nap)).result()`,
    )
    const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', program], { encoding: 'utf8' })
    expect(stderr).toContain("t.advance('1h')")
    expect(status).toBe(1)
  })
})

describe('a result that will come', () => {
  it('may be kept while time passes, for as long as the test likes', async () => {
    const t = await world({ patience: '1 ms' })
    const run = await t.start(sleepy)
    const result = run.result()
    await new Promise((resolve) => setTimeout(resolve, 50))
    await t.advance('1h')
    expect(await result).toBe('slept')
  })

  it('may be awaited beside the call that brings it', async () => {
    const t = await world()
    const run = await t.start(sleepy)
    expect(await Promise.all([run.result(), t.advance('1h')])).toEqual(['slept', undefined])
  })

  it('is awaited while the function of a step is under way, however long', async () => {
    const slow = workflow('slow', (ctx) =>
      ctx.step('slow', () => new Promise((resolve) => setTimeout(() => resolve('done'), 100))),
    )
    const t = await world({ workflows: [slow], patience: '1 ms' })
    const run = await t.start(slow)
    expect(await run.result()).toBe('done')
  })
})
