// Where a run failed: the stack is stored with its error, and every command that shows the error shows it with --verbose.

import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from '../../src/index.ts'
import { documents, shop, type Shop } from './seed.ts'
import { fail } from './workflows.ts'
import { begin, hazardous } from './world.ts'

const frame = /at .*workflows\.ts:\d+/

async function failed(message = 'no luck'): Promise<Shop & { readonly id: string }> {
  const made = await shop()
  await made.holdfast.work()
  const started = await made.holdfast.start(fail, message)
  await started.result().catch(() => undefined)
  return { ...made, id: started.id }
}

describe('the stack of an error', () => {
  it('is shown by show, journal and watch with --verbose, and by none of them without', async () => {
    const { run, id } = await failed()
    for (const command of ['show', 'journal', 'watch']) {
      expect((await run([command, id, '--verbose'])).stdout).toMatch(frame)
      expect((await run([command, id])).stdout).not.toMatch(frame)
    }
  })

  it('is a field of the error in JSON', async () => {
    const { run, id } = await failed()
    const { error } = JSON.parse((await run(['show', id, '--json', '--verbose'])).stdout) as { error: Error }
    expect(error.message).toBe('no luck')
    expect(error.stack).toMatch(frame)
    expect((await run(['show', id, '--json'])).stdout).not.toMatch(frame)
    const entries = documents((await run(['journal', id, '--json', '--full', '--verbose'])).stdout)
    const failure = (entries as readonly { kind: string; data: Error }[]).find(({ kind }) => kind === 'step-failed')
    expect(failure?.data.stack).toMatch(frame)
  })

  it('is in the log of a worker with --verbose, as lines and as JSON', async () => {
    for (const [options, isShown] of [
      [['--verbose'], true],
      [['--json', '--verbose'], true],
      [[], false],
      [['--json'], false],
    ] as const) {
      const { env, holdfast } = await shop()
      const worker = begin(['worker', ...options], { env })
      onTestFinished(async () => {
        worker.signal('SIGTERM')
        await worker.ended
      })
      const { id } = await holdfast.start(fail, 'no luck')
      await worker.says(`${id} of`)
      await worker.says('failed: no luck')
      worker.signal('SIGTERM')
      const { stderr } = await worker.ended
      expect({ options, isShown: frame.test(stderr) }).toEqual({ options, isShown })
      if (options.some((option) => option === '--json')) documents(stderr)
    }
  })

  it('cannot forge a line: a break in its message is shown, and not obeyed', async () => {
    const { run, id } = await failed('no\n    at forged (file.ts:1:1)\u001B[2J')
    for (const command of ['show', 'journal', 'watch']) {
      const { stdout } = await run([command, id, '--verbose'])
      expect(stdout).toMatch(frame)
      expect(stdout).not.toMatch(hazardous)
      expect(stdout).not.toMatch(/^\s*at forged/m)
    }
  })

  it('keeps a failing command with --json one document', async () => {
    const { run } = await shop()
    const { stderr } = await run(['show', 'x', '--json', '--verbose'])
    const printed = documents(stderr) as readonly { error: Error }[]
    expect(printed).toHaveLength(1)
    expect(printed[0]?.error.stack).toContain('    at ')
  })
})

describe('the causes of an error', () => {
  it('are shown by show, a line each, from the failure of a child down to its reason', async () => {
    const inner = workflow('inner', { retry: { maxAttempts: 1 } }, async () => {
      throw new Error('the order failed', { cause: new RangeError('the bank\nis closed') })
    })
    const outer = workflow('outer', { retry: { maxAttempts: 1 } }, async (ctx) => ctx.child(inner))
    const { holdfast, run } = await shop({ workflows: [inner, outer] })
    await holdfast.work()
    const started = await holdfast.start(outer)
    await started.result().catch(() => undefined)
    const { stdout } = await run(['show', started.id])
    const [first = '', second = '', third = ''] = stdout
      .split('\n')
      .filter((line) => /^ {2}error|caused by/.test(line))
      .map((line) => line.trim())
    expect(first).toMatch(/^error +HoldfastError: Child .* of "inner" failed: the order failed/)
    expect(second).toMatch(/^caused by .*the order failed/)
    expect(third).toBe('caused by RangeError: the bank\\nis closed')
  })
})
