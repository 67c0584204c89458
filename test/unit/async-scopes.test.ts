// Following a call costs every promise of the process on old versions of Node, so few calls are followed, and a loop is one call.

import { expect, it } from 'vitest'
import { createScopes } from '../../src/async-scopes.ts'
import { CallPlaces } from '../../src/functions/call-site.ts'

it('of a step that is called in a loop or in branches only the first calls are followed', () => {
  const scopes = createScopes({ callsOfName: 3 })
  const loop = Array.from({ length: 2_000 }, (_, index) => (index === 0 ? 'work' : `work#${index + 1}`))
  expect(loop.filter((call) => scopes.follows('order', call))).toEqual(['work', 'work#2', 'work#3'])
  const branches = Array.from({ length: 2_000 }, (_, index) => `b${index}/charge`)
  expect(branches.filter((call) => scopes.follows('order', call))).toHaveLength(3)
  expect(scopes.follows('order', 'ship')).toBe(true)
  expect(scopes.follows('refund', 'work')).toBe(true)
})

it('of a step that is called in a loop the first nine places are kept, and later calls are told the first', () => {
  const places = new CallPlaces()
  const body = { step: (name: string): void => places.note<typeof body>('step', name, body, 'step') }
  for (let count = 1; count <= 20; count += 1) body.step(count === 1 ? 'work' : `work#${count}`)
  const [first, ninth, tenth] = places.fill(
    ['work', 'work#9', 'work#10'].map((name) => ({ kind: 'step', name, place: null })),
  )
  expect(first?.place).toMatch(/async-scopes\.test\.ts:\d+:\d+$/)
  expect(ninth?.place).toBe(first?.place)
  expect(tenth?.place).toBe(first?.place)
})
