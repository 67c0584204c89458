// The decider style, for authors.

export type { ErasedEvent } from '../core/definition/decider-model.ts'
export { decider, type Decider } from './decider.ts'
export type { DeciderTypes } from '../core/definition/decider-model.ts'
export {
  decision,
  reject,
  type Decision,
  type Outcome,
  type Rejected,
  type SignalTarget,
  type TimerTime,
  type Typed,
} from './api/decision.ts'
export type {
  DeadTimer,
  DeciderOptions,
  DecideTools,
  DedupOptions,
  EffectHandler,
  EffectOption,
} from './api/options.ts'
