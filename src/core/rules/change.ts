// Writes a decision about a run that its holder did not ask for: by an operator, by a takeover, by a lease that is given
// back. If the run has ended with that, or was removed, the runs that wait on it are notified in the same transaction.

import { conclude, hasParted } from './messages/exchange.ts'
import type { Rewrite } from './rewrite.ts'
import type { Run } from '../model/run.ts'
import type { UnitOfWork } from './messages/unit-of-work.ts'

/** A store that can write a decision about the run of an operation. */
export interface ChangeWork extends UnitOfWork {
  /** Writes the decided row, and appends to its journal. The transition's id, if there is one, is on the first entry. */
  write(before: Run, write: Rewrite, transition: string | null): void
}

export function change(work: ChangeWork, before: Run, write: Rewrite, transition: string | null): void {
  // Before the write, which may change the row that the caller got.
  const isParted = hasParted(before, write.run)
  work.write(before, write, transition)
  if (isParted) conclude(work, write.run)
}
