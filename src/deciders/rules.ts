// A decider after its options were checked: the functions of its author without their types, which the fold and the decisions
// work with.

import type { EffectTools } from '../core/definition/decider-model.ts'
import type { RetryPolicy } from '../core/definition/retry.ts'
import type { Schema } from '../core/definition/schema.ts'
import type { Typed } from './api/decision.ts'
import type { Past } from './past/past.ts'
import type { ErasedEvent } from '../core/definition/decider-model.ts'

export interface DeciderRules {
  readonly type: string
  readonly version: number
  readonly stateVersion: number
  readonly initial: () => unknown
  readonly evolve: (state: unknown, event: unknown) => unknown
  readonly decide: (state: unknown, input: Typed, tools: { readonly now: number }) => unknown
  /** Whether an input comes from timers and effects only, and never from a caller. Throws INVALID_INPUT if it has no type. */
  readonly isInternal: (input: unknown) => boolean
  readonly isTerminal: (state: unknown) => boolean
  readonly effects: ReadonlyMap<string, EffectRules>
  /** Of timers whose input cannot be decided, and of effects that have no policy of their own. */
  readonly policy: RetryPolicy
  readonly onDeadLetter: ((effect: unknown, error: unknown) => unknown) | null
  readonly onDeadTimer:
    ((timer: { readonly key: string | null; readonly input: unknown }, error: unknown) => unknown) | null
  readonly dedup: { readonly last: number; readonly withinMs: number } | null
  readonly event: Schema | null
  /** The state after an event that was erased; null if it stays as it is. */
  readonly onErased: ((state: unknown, event: ErasedEvent) => unknown) | null
  /** How what earlier code wrote is read. */
  readonly past: Past
  readonly snapshotEvery: number | null
}

export interface EffectRules {
  readonly policy: RetryPolicy
  readonly timeoutMs: number | null
  readonly perform: (effect: unknown, tools: EffectTools) => unknown
  readonly orderBy: ((effect: Typed) => unknown) | null
}
