// The states of `holdfast dev`, event by event.

import { describe, expect, it } from 'vitest'
import { begun, decide, type DevAction, type DevEvent, type DevState } from '../../../src/cli/dev/reload-state.ts'

const patienceMs = 5_000
const changed = (file: string): DevEvent => ({ kind: 'changed', file })
const ended = (code: number | null, signal: string | null = null, livedMs = 100): DevEvent => ({
  kind: 'ended',
  ended: { code, signal, livedMs },
})
const working: DevEvent = { kind: 'working' }
const time: DevEvent = { kind: 'time' }
const interrupted: DevEvent = { kind: 'interrupted' }

interface Played {
  readonly state: DevState
  /** What was done, in short. */
  readonly done: readonly string[]
}

function played(...events: readonly DevEvent[]): Played {
  let { state } = begun
  const done = begun.actions.map(short)
  for (const event of events) {
    const decided = decide(state, event, patienceMs)
    state = decided.state
    done.push(...decided.actions.map(short))
  }
  return { state, done }
}

function short(action: DevAction): string {
  if (action.kind === 'wait') return `wait ${action.ms}`
  return action.kind === 'report' ? `report ${action.event.event}` : action.kind
}

describe('a worker under development', () => {
  it('is started anew after a change, and never beside the one before', () => {
    const before = played(working, changed('a.ts'))
    expect(before.done).toEqual(['start', 'report working', 'stop', `wait ${patienceMs}`])
    const after = played(working, changed('a.ts'), changed('b.ts'), ended(0), working)
    expect(after.done.slice(4)).toEqual(['start', 'report working'])
    expect(after.state).toEqual({ phase: 'working', cause: { kind: 'change', file: 'a.ts' }, crashes: 0 })
  })

  it('that does not stop in time is killed', () => {
    expect(played(working, changed('a.ts'), time, ended(null, 'SIGKILL')).done.slice(-2)).toEqual(['kill', 'start'])
  })

  it('that cannot load its module waits for a change, however often that happens', () => {
    const { state, done } = played(ended(2), changed('a.ts'), ended(2))
    expect(state).toMatchObject({ phase: 'waiting', until: 'change' })
    expect(done).toEqual(['start', 'report ended', 'start', 'report ended'])
    expect(played(ended(2), time).state.phase).toBe('waiting')
  })

  it('that crashes is started again at once, then ever more rarely, and at once again after a change', () => {
    const crash = [ended(null, 'SIGKILL'), time]
    const waits = (...events: readonly DevEvent[]): readonly string[] =>
      played(...events).done.filter((one) => one.startsWith('wait'))
    expect(waits(...crash, ...crash, ...crash, ...crash)).toEqual(['wait 0', 'wait 500', 'wait 1000', 'wait 2000'])
    expect(waits(...Array.from({ length: 12 }, () => crash).flat()).at(-1)).toBe('wait 10000')
    expect(waits(...crash, ...crash, changed('a.ts'), ended(0), ...crash).at(-1)).toBe('wait 0')
    expect(waits(...crash, ...crash, ended(1, null, 60_000)).at(-1)).toBe('wait 0')
  })

  it('that ends by itself is started again, whatever its code', () => {
    for (const code of [0, 1, 7, 70]) expect(played(working, ended(code), time).done.at(-1)).toBe('start')
  })

  it('is stopped by Ctrl-C, and by a second one killed', () => {
    const first = played(working, interrupted)
    expect(first.done.slice(2)).toEqual(['report stopping', 'stop', `wait ${patienceMs}`])
    expect(played(working, interrupted, ended(0)).state).toEqual({ phase: 'over', isAtOnce: false })
    const second = played(working, interrupted, interrupted)
    expect([second.state, second.done.at(-1)]).toEqual([{ phase: 'over', isAtOnce: true }, 'kill'])
  })

  it('is not started anew when Ctrl-C comes during a reload, or while there is none', () => {
    const reload = played(working, changed('a.ts'), interrupted, changed('b.ts'), ended(0))
    expect(reload.state.phase).toBe('over')
    expect(reload.done.filter((one) => one === 'start')).toHaveLength(1)
    expect(played(ended(2), interrupted).state.phase).toBe('over')
    expect(played(ended(1), interrupted).state.phase).toBe('over')
  })

  it('is not mistaken for another by what comes late', () => {
    for (const late of [working, ended(1), time, changed('a.ts')]) {
      expect(played(working, interrupted, ended(0), late).state.phase).toBe('over')
    }
    expect(played(ended(2), working).state.phase).toBe('waiting')
    expect(played(time).state.phase).toBe('starting')
  })
})
