// When this worker first met each of the runs that it leaves to workers with newer code. A run counts as met anew when its journal
// has moved on: then such a worker exists.
//
// Their number is bounded. Runs that are not met again for an hour are forgotten; while there are too many all the same, a new one
// is not remembered, and its time counts from what its journal says.

const mostMet = 10_000
const forgottenAfterMs = 60 * 60_000

interface Meeting {
  readonly seq: number
  readonly firstAt: number
  lastAt: number
}

export class FirstMeetings {
  private readonly meetings = new Map<string, Meeting>()

  /** When a run was first met with this last entry: now, if it is met for the first time; null if that cannot be remembered. */
  of({ id, seq }: { readonly id: string; readonly seq: number }, now: number): number | null {
    const known = this.meetings.get(id)
    if (known?.seq === seq) {
      known.lastAt = now
      return known.firstAt
    }
    if (known === undefined && this.meetings.size >= mostMet) this.forgetOld(now)
    if (known === undefined && this.meetings.size >= mostMet) return null
    this.meetings.set(id, { seq, firstAt: now, lastAt: now })
    return now
  }

  private forgetOld(now: number): void {
    for (const [id, { lastAt }] of this.meetings) if (now - lastAt > forgottenAfterMs) this.meetings.delete(id)
  }
}
