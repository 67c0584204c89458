// Payloads that nobody reads without the key: not in the database, not in a file beside it. A missing key holds up the runs that
// were written with it, and harms neither those nor others.

import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow, type Codec, type HoldfastError } from 'holdfast'
import { encryptingCodec } from 'holdfast/encryption'
import { keepLines } from './open.ts'

const secret = 'correct-horse-battery-staple'
const keys = { old: randomBytes(32), new: randomBytes(32) }
const both = encryptingCodec({ keys, current: 'new' })
const onlyOld = encryptingCodec({ keys: { old: keys.old }, current: 'old' })
const onlyNew = encryptingCodec({ keys: { new: keys.new }, current: 'new' })

const keep = workflow(
  'keep',
  { retry: { maxAttempts: 1 } },
  async (ctx, input: { secret: string; fails?: boolean }) => {
    const echoed = await ctx.step('echo', () => input.secret, { undo: () => undefined })
    ctx.log('kept', { echoed })
    await ctx.sleep(1)
    if (input.fails === true) throw new Error(`Could not keep ${echoed}`)
    return echoed
  },
)

function folder(): {
  readonly path: string
  readonly open: (codec: Codec) => Promise<Awaited<ReturnType<typeof createHoldfast>>>
} {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return {
    path,
    async open(codec) {
      const store = `sqlite:${join(path, 'runs.db')}`
      const holdfast = await createHoldfast({ store, codec, workflows: [keep], logger: keepLines() })
      onTestFinished(() => holdfast.close())
      return holdfast
    },
  }
}

it('an encrypted payload is nowhere in the database in the clear, whether the run succeeds, fails or is undone', async () => {
  const { path, open } = folder()
  const holdfast = await open(both)
  await holdfast.work()
  const good = await holdfast.start(keep, { secret }, { key: 'visible' })
  expect(await good.result()).toBe(secret)
  const bad = await holdfast.start(keep, { secret, fails: true })
  await expect(bad.result()).rejects.toThrow(`Could not keep ${secret}`)
  await holdfast.close()
  const files = readdirSync(path).map((name) => readFileSync(join(path, name), 'latin1'))
  expect(files.length).toBeGreaterThan(0)
  expect(files.some((text) => text.includes('visible'))).toBe(true)
  expect(files.some((text) => text.includes(secret))).toBe(false)
})

it('a key that was rotated out still reads, and runs of a missing one wait for a worker that has it', async () => {
  const { open } = folder()
  const before = await open(onlyOld)
  const [old, lost] = [await before.start(keep, { secret: 'a' }), await before.start(keep, { secret: 'b' })]
  await before.close()

  const without = await open(onlyNew)
  await without.cancel(old)
  await without.work()
  const fresh = await without.start(keep, { secret: 'c' })
  expect(await fresh.result()).toBe('c')
  expect(await without.run(lost).status()).toBe('pending')
  await without.close()

  const rotated = await open(both)
  await rotated.work()
  expect(await rotated.run(lost).result()).toBe('b')
})

it('a failure that the engine writes itself can be read under any codec', async () => {
  const { open } = folder()
  const holdfast = await open(both)
  const run = await holdfast.start(keep, { secret }, { timeout: 1 })
  await holdfast.work()
  const error = (await run.result().catch((reason: unknown) => reason)) as HoldfastError
  expect((error.cause as HoldfastError).code).toBe('RUN_TIMEOUT')
})
