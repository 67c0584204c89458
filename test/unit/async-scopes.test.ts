// Following a call costs every promise of the process on old versions of Node, so few calls are followed, and a loop is one call.

import { expect, it } from 'vitest'
import { createScopes } from '../../src/async-scopes.ts'
import { CallPlaces } from '../../src/functions/replay/call-site.ts'
import { workflow } from '../../src/functions/api/workflow.ts'
import { FunctionRig } from '../support/function-rig.ts'

it('of a step only the first calls are followed, of each workflow', () => {
  const scopes = createScopes({ callsOfName: 3 })
  const calls = Array.from({ length: 2_000 }, () => scopes.follows('order', 'work'))
  expect(calls.filter((isFollowed) => isFollowed)).toHaveLength(3)
  expect(calls.slice(0, 3)).toEqual([true, true, true])
  expect(scopes.follows('order', 'ship')).toBe(true)
  expect(scopes.follows('refund', 'work')).toBe(true)
})

it('a step that is called in a loop, or in branches, is one step, also while it is undone', async () => {
  const asked: string[] = []
  const scopes = createScopes({ callsOfName: 3 })
  const follows = (type: string, step: string): boolean => {
    asked.push(`${type} ${step}`)
    return scopes.follows(type, step)
  }
  const rig = new FunctionRig({ scopes: { ...scopes, follows } })
  const steps = workflow('order', { retry: 'none' }, async (ctx) => {
    for (let count = 0; count < 3; count += 1) await ctx.step('a/b#2', () => count, { undo: () => undefined })
    for (const name of ['eu', 'us']) await ctx.branch(name, (branch) => branch.step('charge', () => name))
    throw new Error('No')
  })
  const held = await (await rig.start(steps)).begin()
  expect(await held.status()).toBe('failed')
  const [loop, branches] = ['order a/b#2', 'order charge']
  expect(asked).toEqual([loop, loop, loop, branches, branches, loop, loop, loop])
})

it('of a step that is called in a loop the first nine places are kept, and later calls are given the first', () => {
  const places = new CallPlaces()
  const body = {
    step: (name: string, nth: number): void => places.note<typeof body>('step', name, nth, body, 'step'),
  }
  for (let nth = 1; nth <= 20; nth += 1) body.step(nth === 1 ? 'work' : `work#${nth}`, nth)
  const [first, ninth, tenth] = places.fill(
    ['work', 'work#9', 'work#10'].map((name) => ({ kind: 'step', name, place: null })),
  )
  expect(first?.place).toMatch(/async-scopes\.test\.ts:\d+:\d+$/)
  expect(ninth?.place).toBe(first?.place)
  expect(tenth?.place).toBe(first?.place)
})
