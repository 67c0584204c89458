// One promise of a store, and its test.

import type { Capabilities } from '../../store.ts'
import type { ContractBench } from './bench.ts'

export interface ContractCase {
  /** The hazard that it guards against. */
  readonly name: string
  /** It applies only to a store that has this capability; skip it visibly for others. */
  readonly needs?: keyof Capabilities
  /** The order of claims matters: give the bench `near`, so that its runs live in one shard. @default false */
  readonly near?: boolean
  /** It needs more than a thousand runs: give it a minute. @default false */
  readonly slow?: boolean
  /** It is about what one call does: a test that splits calls skips it. @default false */
  readonly inOneCall?: boolean
  /** Rejects with a readable message if the store breaks the promise. */
  readonly run: (bench: ContractBench) => Promise<void>
}
