// Poison harms only itself: who is suspected moves alone, and nobody waits beside it to be counted as dead with it.

import { beforeEach, describe, expect, it } from 'vitest'
import type { Run } from '../../../src/core/run.ts'
import { Isolation } from '../../../src/worker/isolation.ts'

const run = (id: string, crashes: number): Run => ({ id, crashes }) as Run
const innocent = run('innocent', 1)
const survivor = run('survivor', 2)
const suspect = run('suspect', 3)
const another = run('another', 4)

let moving: number
let told: string[]
let isolation: Isolation

beforeEach(() => {
  moving = 0
  told = []
  isolation = new Isolation({
    get moving() {
      return moving
    },
    pause: () => told.push('pause'),
    resume: () => told.push('resume'),
  })
})

describe('a claim without a suspect', () => {
  it('begins whole, also what lost one holder', () => {
    expect(isolation.choose([innocent, survivor])).toEqual([innocent, survivor])
    expect(told).toEqual([])
  })
})

describe('a suspect', () => {
  it('that comes while nothing moves begins alone; what came with it goes back', () => {
    expect(isolation.choose([innocent, suspect, another])).toEqual([suspect])
    expect(isolation.isAlone).toBe(true)
    expect(told).toEqual(['pause'])
  })

  it('that comes while others move goes back, and nothing new is taken until they have left', () => {
    moving = 2
    expect(isolation.choose([innocent, suspect])).toEqual([innocent])
    moving = 1
    isolation.left()
    expect(told).toEqual(['pause'])
    moving = 0
    isolation.left()
    expect(told).toEqual(['pause', 'resume'])
    expect(isolation.choose([suspect])).toEqual([suspect])
  })

  it('keeps everybody out while it moves, and lets them in when it has left', () => {
    isolation.choose([suspect])
    moving = 1
    expect(isolation.choose([innocent])).toEqual([])
    expect(isolation.choose([another])).toEqual([])
    moving = 0
    isolation.left()
    expect(isolation.isAlone).toBe(false)
    expect(told).toEqual(['pause', 'resume'])
    expect(isolation.choose([innocent])).toEqual([innocent])
  })

  it('pauses once, however many come while others are still leaving', () => {
    moving = 1
    isolation.choose([suspect])
    isolation.choose([another])
    expect(told).toEqual(['pause'])
  })
})
