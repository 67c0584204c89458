// What a live run has not read, and whether a wait ever asked for it.

import { expect, it } from 'vitest'
import { workflow, type UnreadMessages } from '../../src/index.ts'
import { shop } from './seed.ts'

const waits = workflow('demo.waits', async (ctx) => {
  await ctx.receive('first')
  await ctx.receive('approved')
})

it('show lists unread signals by name, with their number and age, and asks whether a name is misspelt', async () => {
  const { holdfast, run } = await shop({ workflows: [waits] })
  await holdfast.work()
  const { id } = await holdfast.start(waits)
  await expect.poll(async () => (await holdfast.get(id)).status).toBe('waiting')
  await holdfast.pause(id)
  for (const name of ['aproved', 'first', 'aproved', '\u202Eevil']) await holdfast.signal(id, name)

  const { stdout } = await run(['show', id])
  expect(stdout).toMatch(
    /unread +aproved: 2 messages, the oldest for .*; no wait has asked for this name so far: misspelt\?/,
  )
  expect(stdout).toMatch(/\n +first: 1 message, for [\d.]+ m?s\n/)
  expect(stdout).toContain('\\u{202e}evil: 1 message')

  const { unread } = JSON.parse((await run(['show', id, '--json'])).stdout) as { readonly unread: UnreadMessages }
  expect(unread).toMatchObject({
    isCapped: false,
    names: [
      { name: 'aproved', count: 2, isAwaited: false },
      { name: 'first', count: 1, isAwaited: true },
      { count: 1, isAwaited: false },
    ],
  })
})

it('is bounded, and nothing of a run that is over', async () => {
  const { holdfast, run } = await shop({ workflows: [waits] })
  const { id } = await holdfast.start(waits)
  await holdfast.signals(Array.from({ length: 30 }, (_, at) => ({ to: id, name: `n-${at}` })))
  const { names, isCapped } = await holdfast.unread(id)
  expect({ names: names.length, isCapped }).toEqual({ names: 20, isCapped: true })
  expect((await run(['show', id])).stdout).toContain('there are more')
  await holdfast.cancel(id)
  expect(await holdfast.unread(id)).toEqual({ names: [], isCapped: false })
  expect((await run(['show', id])).stdout).not.toContain('unread')
})
