// The plan as data: which methods it has, what its names say, and how a call is compared with it.

import { describe, expect, it } from 'vitest'
import { createReadCommittedStore } from '../../read-committed/store.ts'
import { MemoryStore } from '../../../src/stores/memory/store.ts'
import { statementPlan, unplanned, type PlannedStatement } from '../../read-committed/statement-plan.ts'

const clock = { now: () => 1 }
const plans = Object.entries(statementPlan) as [string, readonly PlannedStatement[]][]

/** Methods whose statements are not named after them. */
const shared: Readonly<Record<string, string>> = { doChores: 'chore', deadLetters: 'dead', settleDeadLetter: 'dead' }

describe('the statement plan', () => {
  it('has the methods of the port and no others', () => {
    const store = createReadCommittedStore({ clock, schedule: async () => undefined })
    const forTests = ['capabilities', 'waits', 'insides']
    const named = Object.keys(store).filter((name) => !forTests.includes(name))
    expect(Object.keys(statementPlan).toSorted()).toEqual(named.toSorted())
    expect(named.filter((method) => !(method in new MemoryStore({ clock })))).toEqual([])
  })

  it('names each statement once, after its method', () => {
    const names = plans.flatMap(([method, plan]) => plan.map(({ name }) => [method, name] as const))
    expect(new Set(names.map(([, name]) => name)).size).toBe(names.length)
    const shared: Readonly<Record<string, string>> = {
      doChores: 'chore',
      deadLetters: 'dead',
      settleDeadLetter: 'dead',
      commandProjection: 'projection',
    }
    expect(names.filter(([method, name]) => !name.startsWith(`${shared[method] ?? method}.`))).toEqual([])
  })

  it('writes nothing without a commit at the end of it', () => {
    const open = plans.filter(([, plan]) => {
      const last = plan.findLastIndex(({ kind }) => kind === 'lock' || kind === 'write')
      return last !== -1 && !plan.slice(last).some(({ kind }) => kind === 'end')
    })
    expect(open).toEqual([])
  })

  // The one rule: what relies on a lock is looked at, or written, by a statement of its own.
  it('has a statement of its own after each that locks', () => {
    const last = plans.flatMap(([, plan]) =>
      plan.filter(({ kind }, index) => {
        const next = plan.slice(index + 1).find((one) => one.kind !== 'lock')
        return kind === 'lock' && next?.kind !== 'look' && next?.kind !== 'write'
      }),
    )
    expect(last).toEqual([])
  })

  it('locks runs before topics, and looks for candidates before both, wherever others are reached', () => {
    const reaching = plans.filter(([, plan]) => plan.some(({ name }) => name.endsWith('.lock-topics')))
    expect(reaching.map(([method]) => method).toSorted()).toEqual([
      'commit',
      'control',
      'deliver',
      'doChores',
      'release',
      'rescue',
    ])
    for (const [method, plan] of reaching) {
      const names = plan.map(({ name }) => name)
      const places = ['candidates', 'lock', 'lock-topics', 'look'].map((name) =>
        names.indexOf(`${shared[method] ?? method}.${name}`),
      )
      expect(places).toEqual(places.toSorted((a, b) => a - b))
      expect(plan[places[3] ?? -1]?.backTo).toContain(`${shared[method] ?? method}.candidates`)
    }
  })
})

describe('a call that is compared with the plan', () => {
  it('fits with and without what is conditional, and when it goes back to where it may', () => {
    expect(unplanned('start', [])).toBeNull()
    expect(unplanned('start', ['start.insert', 'start.commit'])).toBeNull()
    const again = ['start.session', 'start.insert', 'start.look', 'start.insert', 'start.append', 'start.feed']
    expect(unplanned('start', [...again, 'start.commit'])).toBeNull()
  })

  it('does not fit if something is missing, comes too early, twice, or is not planned', () => {
    expect(unplanned('start', ['start.insert'])).toBe('start.commit did not come')
    expect(unplanned('claim', ['claim.lease', 'claim.commit'])).toBe('claim.lease came before claim.session')
    expect(unplanned('control', ['control.lock', 'control.look', 'control.look'])).toBe(
      'control.look has no place after control.look',
    )
    expect(unplanned('get', ['control.lock'])).toBe('control.lock has no place after the start')
  })
})
