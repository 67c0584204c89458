// The answer to an input, as its caller sees it.

import { deepStrictEqual } from 'node:assert/strict'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { withOwnState } from '../../../src/client/deciders/execute.ts'

describe('the answer to an accepted input', () => {
  const given = { events: [{ type: 'Paid' }], state: { status: 'paid', lines: [1] } }

  it('shows its state when it is printed, and is an object like any other', () => {
    const answer = withOwnState(given)
    expect(inspect(answer)).toBe(inspect({ outcome: 'accepted', ...given }))
    deepStrictEqual(answer, { outcome: 'accepted', ...given })
    expect(JSON.parse(JSON.stringify(answer))).toEqual({ outcome: 'accepted', ...given })
  })

  it('has a state of its own, the same one whenever it is read', () => {
    const answer = withOwnState(given)
    expect(answer.state).toBe(answer.state)
    expect(answer.state).not.toBe(given.state)
  })
})
