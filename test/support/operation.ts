// One call of a store, as data; and what those who make them up may look at.

import type { Fate } from '../../src/core/model/message.ts'
import type { Lease, Run } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type {
  BeatRequest,
  ClaimRequest,
  DeadLetterFilter,
  LoadRequest,
  NewBroadcast,
  NewMessage,
  Page,
  RescueRequest,
  RunFilter,
  RunStart,
  ControlCommand,
} from '../../src/store.ts'

export type Operation =
  | { readonly method: 'start'; readonly runs: readonly RunStart[] }
  | { readonly method: 'claim'; readonly request: ClaimRequest }
  | { readonly method: 'load'; readonly requests: readonly LoadRequest[]; readonly mostBytes?: number }
  | { readonly method: 'commit'; readonly transitions: readonly Transition[] }
  | { readonly method: 'deliver'; readonly messages: readonly (NewMessage | NewBroadcast)[] }
  | { readonly method: 'control'; readonly requests: readonly ControlCommand[] }
  | { readonly method: 'beat'; readonly request: BeatRequest }
  | { readonly method: 'rescue'; readonly request: RescueRequest }
  | { readonly method: 'release'; readonly leases: readonly (Lease & { readonly runId: string })[] }
  | { readonly method: 'get'; readonly ids: readonly string[] }
  | { readonly method: 'changes'; readonly after: number; readonly limit: number }
  | { readonly method: 'find'; readonly filter: RunFilter; readonly page: Page }
  | { readonly method: 'count'; readonly filter: RunFilter; readonly atMost: number }
  | { readonly method: 'deadLetters'; readonly filter: DeadLetterFilter; readonly page: Page }
  | {
      readonly method: 'settleDeadLetter'
      readonly letter: { readonly runId: string; readonly id: string }
      readonly fate: Fate
    }
  | { readonly method: 'advance'; readonly ms: number }

/** What the generator may look at: the oracle's rows, its feed's length and the time. */
export interface Oracle {
  readonly rows: ReadonlyMap<string, Run>
  readonly feedLength: number
  /** The ids of what lies in the mailbox of a run. */
  readonly messageNameOf: (runId: string) => readonly string[]
  readonly now: number
}
