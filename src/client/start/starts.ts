// How a run is started, outside of a transaction and inside of one.

import type { Definition, TypedDefinition } from '../../core/definition/definition.ts'
import type { RunHandle } from '../run-handle.ts'
import type { StartOptions } from './start-options.ts'

/** The arguments of `start` after the workflow: none if it has no input, and of any type if it is only named. */
type StartArguments<Started> = [Started] extends [TypedDefinition<infer Input, unknown>]
  ? undefined extends Input
    ? [input?: Input, options?: StartOptions]
    : [input: Input, options?: StartOptions]
  : [input?: unknown, options?: StartOptions]

/** One of many starts: its workflow says which input it takes. */
export type StartOf<Started> = {
  readonly workflow: Started
  readonly options?: StartOptions | undefined
} & ([Started] extends [TypedDefinition<infer Input, unknown>]
  ? undefined extends Input
    ? { readonly input?: Input }
    : { readonly input: Input }
  : { readonly input?: unknown })

export type OutputOf<Started> = [Started] extends [TypedDefinition<infer _Input, infer Output>] ? Output : unknown

export interface Starter {
  // One signature and no overloads: of two, the compiler would explain a missing input by the one that takes a name.
  /** Starts a run of a workflow, or by its name: when this returns, the run is stored and will be performed, now or after any crash. */
  start<Started extends Definition | string>(
    workflow: Started,
    ...rest: StartArguments<Started>
  ): Promise<RunHandle<OutputOf<Started>>>
}
