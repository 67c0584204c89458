// A `retry.retryable` that throws, answers with a promise or calls the context forbids no retry, and a warning carries its own error.

import { expect, it } from 'vitest'
import { fatal } from '../../../../src/core/definition/retry-mark.ts'
import type { Context } from '../../../../src/functions/api/context.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../../support/function-rig.ts'

const retry = {
  maxAttempts: 2,
  initial: 10,
  kind: 'constant',
  jitter: { mode: 'none' },
  retryable: () => {
    throw new Error('broken predicate')
  },
} as const

const bodies: readonly (readonly [of: string, named: string, body: (ctx: Context) => Promise<unknown>])[] = [
  ['a step', 'step "a"', (ctx) => ctx.step('a', () => Promise.reject(new Error('No')), { retry })],
  ['a body', 'its body', () => Promise.reject(new Error('No'))],
  [
    'an undo',
    'the undo of step "a"',
    async (ctx) => {
      await ctx.step('a', () => 1, { retry, undo: () => Promise.reject(new Error('No')) })
      throw fatal('Undo it')
    },
  ],
]

it.each(bodies)('of %s is warned of, and the failure is retried', async (_of, named, body) => {
  const rig = new FunctionRig()
  const held = await (await rig.start(workflow('predicate', { retry }, body))).begin()
  await rig.pass(10)
  const warned = rig.lines.filter(({ message }) => message.includes('broken predicate'))
  expect(warned[0]?.message).toContain(`a retry.retryable for ${named} that does not work: broken predicate`)
  expect((await held.story()).some((line) => /attempt-failed/.test(line))).toBe(true)
})

it('that answers with a promise is warned of: a promise would count as true, also of one that says no', async () => {
  const rig = new FunctionRig()
  const promising = { ...retry, retryable: () => Promise.reject(new Error('late')) as unknown as boolean }
  const body = (ctx: Context): Promise<unknown> =>
    ctx.step('a', () => Promise.reject(new Error('No')), { retry: promising })
  await (await rig.start(workflow('predicate', body))).begin()
  await rig.pass(10)
  expect(rig.lines.map(({ message }) => message)).toContainEqual(expect.stringContaining('it returned a promise'))
})
