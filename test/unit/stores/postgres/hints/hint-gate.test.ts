// However much others send, it is passed on at a rate that a worker can bear, and nothing that they sent is forgotten.

import { describe, expect, it } from 'vitest'
import type { Hint } from '../../../../../src/store.ts'
import { HintGate } from '../../../../../src/stores/postgres/hints/hint-gate.ts'
import { manualPorts } from '../../../../support/manual-ports.ts'

const ready = (type: string): Hint => ({ kind: 'ready', type })

function rig() {
  const { clock } = manualPorts()
  const passed: (readonly Hint[])[] = []
  const { take } = new HintGate(clock, (hints) => void passed.push(hints))
  return { clock, passed, take }
}

describe('what others send', () => {
  it('is passed on at once when it has been quiet', () => {
    const { clock, passed, take } = rig()
    take([ready('a')])
    expect(passed).toEqual([[ready('a')]])
    clock.advance(20)
    take([ready('a')])
    expect(passed).toHaveLength(2)
    clock.advance(20)
    expect([passed.length, clock.pending]).toEqual([2, 0])
  })

  it('in a flood is passed on once in a while, each hint once, and the nearest deadline', () => {
    const { clock, passed, take } = rig()
    for (let count = 0; count < 1_000; count += 1) {
      take([
        ready('a'),
        { kind: 'message', runId: String(count % 3) },
        { kind: 'deadline', at: 2_000 - count },
        { kind: 'chore' },
      ])
    }
    expect(passed).toHaveLength(1)
    clock.advance(20)
    expect(passed).toHaveLength(2)
    expect(passed[1]).toHaveLength(6)
    expect(passed[1]).toContainEqual({ kind: 'deadline', at: 1_001 })
  })

  it('of more than can be told apart says only that there is something', () => {
    const { clock, passed, take } = rig()
    take([ready('first')])
    take(Array.from({ length: 100_000 }, (_, index): Hint => ({ kind: 'ended', runId: String(index) })))
    clock.advance(20)
    expect(passed[1]?.length).toBe(2_002)
    expect(passed[1]).toContainEqual(ready(''))
  })
})
