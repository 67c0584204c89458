// How many runs this worker moves at once.
//
//   free    → taken     a run is about to be claimed or started
//   taken   → free      the run has left this process or is parked: a run that waits holds no slot
//   taken   → leaving   the commit with which the run leaves is on its way. No code of the run executes any more, so the next run
//                       may begin: a worker with few slots sends as many ends together as one with many
//   leaving → free      the answer has come: the run has left
//   leaving → taken     the store refused, for example because a client cancelled the run: it goes on here. For that moment one
//                       run more than the limit may be moving
//
// How many are leaving is bounded: should the process die, they are performed again.

/** Two flushes of the committer, the most that can be on its way. */
const mostLeaving = 1_000

export interface SlotListener {
  /** A slot is free. */
  freed(): void
  /** A run has left whose slot was free already. */
  left(): void
}

export class Slots {
  private readonly limit: number
  private readonly listener: SlotListener
  private taken = 0
  private leaving = 0

  constructor(limit: number, listener: SlotListener) {
    this.limit = limit
    this.listener = listener
  }

  get free(): number {
    return Math.max(0, this.limit - this.taken)
  }

  /** How many runs are moving or leaving. */
  get inUse(): number {
    return this.taken + this.leaving
  }

  take(count: number): void {
    this.taken += count
  }

  give(count: number): void {
    this.taken -= count
    if (count > 0) this.listener.freed()
  }

  /** Frees the slot of a run that is leaving; false if so many are leaving that this one keeps it. */
  vacate(): boolean {
    if (this.leaving >= mostLeaving) return false
    this.leaving += 1
    this.give(1)
    return true
  }

  /** A run that was leaving goes on. */
  retake(): void {
    this.leaving -= 1
    this.taken += 1
  }

  /** A run that was leaving has left. */
  left(): void {
    this.leaving -= 1
    this.listener.left()
  }
}
