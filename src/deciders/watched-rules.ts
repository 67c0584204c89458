// The functions of a decider, called so that a test sees what they use of the machine. Without such a test they are called
// directly.

import type { Bodies } from '../core/runtime/ports.ts'
import type { Chain } from './past/past.ts'
import type { DeciderRules } from './rules.ts'

export function watchedRules(rules: DeciderRules, bodies: Bodies | undefined): DeciderRules {
  const enterPure = bodies?.enterPure
  if (enterPure === undefined) return rules
  const { type, initial, evolve, decide, isTerminal, past, onErased } = rules
  const watched = (name: 'upcast' | 'upcastState', { steps, ...chain }: Chain): Chain => ({
    ...chain,
    steps: steps.map((step) => (old) => enterPure(type, name, () => step(old))),
  })
  return {
    ...rules,
    initial: () => enterPure(type, 'initial', initial),
    evolve: (state, event) => enterPure(type, 'evolve', () => evolve(state, event)),
    decide: (state, input, tools) => enterPure(type, 'decide', () => decide(state, input, tools)),
    isTerminal: (state) => enterPure(type, 'isTerminal', () => isTerminal(state)),
    onErased: onErased === null ? null : (state, event) => enterPure(type, 'onErased', () => onErased(state, event)),
    past: {
      ...past,
      chains: new Map([...past.chains].map(([event, chain]) => [event, watched('upcast', chain)])),
      states: past.states === null ? null : watched('upcastState', past.states),
    },
  }
}
