// How a run is started, outside of a transaction and inside of one.

import type { TypedDefinition } from '../core/definition.ts'
import type { RunHandle } from './run-handle.ts'
import type { StartOptions } from './start-options.ts'

/** What `start` takes after the workflow: a workflow without input needs none. */
type StartArguments<Input> = undefined extends Input
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions]

export interface Starts {
  /** Starts a run of a workflow by its name. */
  start(type: string, input?: unknown, options?: StartOptions): Promise<RunHandle<unknown>>
  // The compiler explains a wrong call by the last overload: that must be the one that most people use.
  /** Starts a run: when this returns, the run is stored and will be performed, now or after any crash. */
  start<Input, Output>(
    workflow: TypedDefinition<Input, Output>,
    ...rest: StartArguments<Input>
  ): Promise<RunHandle<Output>>
}
