// Functions that are not as pure as they have to be: nothing that they change differs between processes.

import { describe, expect, it } from 'vitest'
import { decider, decision, reject } from '../../../src/deciders/index.ts'
import { deciderRig } from '../../support/decider-rig.ts'

type Input = { readonly type: string; readonly id: string }
type Event = { type: 'Counted'; tags: string[] }
type State = { count: number; parts: { tags: string[] } }

const counted = (): Event => ({ type: 'Counted', tags: ['a'] })

interface Functions {
  readonly initial?: () => unknown
  readonly evolve?: (state: State, event: Event) => unknown
  readonly decide?: (state: State, input: Input) => unknown
  readonly isTerminal?: (state: State) => unknown
}

/** The compiler would refuse most of these functions. */
function counting(changes: Functions = {}) {
  const pure = {
    initial: (): State => ({ count: 0, parts: { tags: [] } }),
    evolve: (state: State, { tags }: Event): State => ({ count: state.count + 1, parts: { tags } }),
    decide: (_state: State, _input: Input) => decision(counted()),
    id: 'id' as const,
  }
  return decider('counting', { ...pure, ...(changes as Partial<typeof pure>) })
}

const input = { type: 'Count', id: '1' }
const failed = { outcome: 'failed', error: { code: 'DECIDE_FAILED' } }

describe('a decide that changes its state', () => {
  it.each([
    ['itself', (state: State) => (state.count = 1_000)],
    ['in its depth', (state: State) => state.parts.tags.push('b')],
  ])('%s fails the input, and the state is that of every other process', (_, change) => {
    const rig = deciderRig(
      counting({
        decide: (state: State, { type }: Input) => (type === 'No' ? reject(change(state)) : decision(counted())),
      }),
    )
    rig.execute(input)
    expect(rig.execute({ type: 'No', id: '1' })).toMatchObject(failed)
    expect(rig.instance.state).toEqual({ count: 1, parts: { tags: ['a'] } })
    expect(rig.reload().state).toEqual(rig.instance.state)
  })
})

describe('an evolve', () => {
  it.each([
    ['changes its event', (state: State, event: Event) => (event.tags.push('b'), state)],
    ['changes its state', (state: State) => ((state.count = 5), state)],
    ['is asynchronous', async (state: State) => state],
  ])('that %s fails the input, and leaves no instance', (_, evolve) => {
    const rig = deciderRig(counting({ evolve }))
    expect(rig.execute(input)).toMatchObject(failed)
    expect(rig.entries).toEqual([])
  })
})

describe('an isTerminal', () => {
  it('that is asynchronous fails the input', () => {
    expect(deciderRig(counting({ isTerminal: async () => false })).execute(input)).toMatchObject(failed)
  })

  it('that is true of the initial state leaves no instance', () => {
    const rig = deciderRig(counting({ isTerminal: () => true }))
    expect(rig.execute(input)).toEqual({ outcome: 'already-completed' })
    expect(rig.entries).toEqual([])
  })
})

describe('an initial', () => {
  it.each([
    [
      'throws',
      () => {
        throw new Error('No')
      },
    ],
    ['is asynchronous', async () => ({ count: 0 })],
  ])('that %s is named as what keeps its instances from being decided', (_, initial) => {
    expect(() => deciderRig(counting({ initial }))).toThrow(expect.objectContaining({ code: 'DECIDE_FAILED' }))
  })
})
