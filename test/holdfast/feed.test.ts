// What a workflow says about the feed is true of its runs, of whom they start, and of what they go on as.

import { expect, it } from 'vitest'
import { workflow, type HoldfastError, type Workflow } from 'holdfast'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { memoryStore, openWorking } from './open.ts'

it.each([
  ['memory', async () => memoryStore()],
  ['SQLite', () => openSqliteStore({ path: ':memory:' })],
])('the feed lists runs whose workflow asks for it, on %s', async (_, make) => {
  const store = await make()
  const leaf = workflow('leaf', { feed: true }, (ctx) => ctx.step('one', () => 1))
  const quiet: Workflow<boolean, number> = workflow('quiet', async (ctx, isLast: boolean): Promise<number> => {
    await ctx.step('one', () => 1)
    const child = await ctx.child(leaf)
    return isLast ? child : ctx.continueAs(loud, 2)
  })
  const loud: Workflow<number, number> = workflow('loud', { feed: true }, async (ctx, n: number): Promise<number> => {
    await ctx.step('two', () => n)
    return ctx.continueAs(quiet, true)
  })
  const holdfast = await openWorking([leaf, quiet, loud], { store })
  const run = await holdfast.start(quiet, false)
  expect(await run.result()).toBe(1)
  const changes = await store.changes(0, 100)
  const listed = changes.filter(({ runId }) => runId === run.id).map(({ entry: { kind, meta } }) => [kind, meta])
  expect(listed).toEqual([
    ['continued', { type: 'loud', version: 1 }],
    ['step-succeeded', expect.anything()],
    ['continued', { type: 'quiet', version: 1 }],
  ])
  const others = [...new Set(changes.map(({ runId }) => runId))].filter((id) => id !== run.id)
  const kinds = others.map((id) => changes.filter(({ runId }) => runId === id).map(({ entry }) => entry.kind))
  expect(kinds).toEqual(Array.from({ length: 2 }, () => ['started', 'step-succeeded', 'succeeded']))
  expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
})

it('what is neither true nor false is refused', () => {
  const define = (): unknown => workflow('t.feed', { feed: 'yes' as never }, () => 1)
  expect(define).toThrow(expect.objectContaining<Partial<HoldfastError>>({ code: 'INVALID_OPTION' }))
})
