// A body with what its workflow says of it: the part of a definition that every run of the workflow shares.

import type { Definition } from '../../core/definition/definition.ts'
import type { RetryPolicy } from '../../core/definition/retry.ts'
import type { Context } from '../api/context.ts'
import type { CallPlaces } from '../replay/call-site.ts'

export interface FunctionBody {
  /** The workflow's own policy: the default of its steps. */
  readonly policy: RetryPolicy
  /** How many steps of a run may be under way at once. */
  readonly parallel: number
  readonly body: (ctx: Context, input: never) => unknown
  readonly definition: Definition
  /** Where its calls stand in the code. */
  readonly places: CallPlaces
}
