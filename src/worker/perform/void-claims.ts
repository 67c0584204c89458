// Claims whose runs must not begin here any more, although they are on their way: the journal of the run is being read, or
// the answer to its claim has not come yet.

import type { Run } from '../../core/model/run.ts'
import { DisownedClaims } from './disowned-claims.ts'

export class VoidClaims {
  readonly disowned = new DisownedClaims()
  /** Claimed runs that are being read. One that was claimed anew meanwhile is here for its last claim. */
  private readonly reading = new Map<string, Reading>()

  /** The journals or messages of these runs are read from now until `work` has settled. */
  async whileReading(unread: readonly { readonly run: Run }[], work: Promise<void>): Promise<void> {
    const begun: readonly (readonly [string, Reading])[] = unread
      // A run that is being cancelled was claimed because of its control request.
      .filter(({ run }) => run.status !== 'cancelling')
      .map(({ run }) => [run.id, { isControlled: false }])
    for (const [id, reading] of begun) this.reading.set(id, reading)
    try {
      await work
    } finally {
      for (const [id, reading] of begun) if (this.reading.get(id) === reading) this.reading.delete(id)
    }
  }

  /** An operator has controlled a run, or it has ended: if it is being read here, it does not begin. */
  controlRequested(runId: string): void {
    const reading = this.reading.get(runId)
    if (reading !== undefined) reading.isControlled = true
  }

  /** Whether a run was controlled while it was read: it is to be given back. */
  isControlled(runId: string): boolean {
    return this.reading.size > 0 && this.reading.get(runId)?.isControlled === true
  }
}

interface Reading {
  /** An operator has controlled the run since its claim, or it has ended. */
  isControlled: boolean
}
