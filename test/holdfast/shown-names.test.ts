// Names and reasons that a user chose, or that a row holds, come back in messages of errors. A reader must see what is in them.

import { expect, it } from 'vitest'
import { workflow, type HoldfastError } from 'holdfast'
import { quotedText } from '../../src/core/text/printable.ts'
import { open } from './open.ts'

const hidden = 'pay\u202Eevil\u200B'
const terminal = '\u001B]52;c;ZXZpbA==\u0007\r\nFORGED LINE'
const hazard = /[\p{Cc}\u200B\u202E]/u

it('a hidden character in the name of a step, and an escape sequence in a reason, reach no message of an error', async () => {
  const child = workflow('child', async (ctx) => ctx.receive('go'))
  const parent = workflow('parent', { retry: { maxAttempts: 1 } }, async (ctx) => ctx.child(child, undefined))
  const unstorable = workflow('unstorable', { retry: { maxAttempts: 1 } }, async (ctx) =>
    ctx.step(hidden, () => (() => 1) as unknown as number, { retry: { maxAttempts: 1 } }),
  )
  const holdfast = await open({ workflows: [child, parent, unstorable] })
  await holdfast.work()
  const messages: string[] = []
  const run = await holdfast.start(parent)
  await expect.poll(async () => (await holdfast.find({ type: 'child', status: ['waiting'] })).runs.length).toBe(1)
  const [started] = (await holdfast.find({ type: 'child' })).runs
  await holdfast.cancel(started?.id ?? '', { reason: terminal })
  for (const failing of [run, await holdfast.start(unstorable)]) {
    const error = (await failing.result().catch((thrown: unknown) => thrown)) as HoldfastError
    messages.push((error.cause as Error).message)
  }
  expect(messages[0]).toContain('was cancelled: ')
  expect(messages[1]).toContain(`The result of step ${quotedText(hidden)} cannot be stored`)
  for (const message of messages) expect(message).not.toMatch(hazard)
})
