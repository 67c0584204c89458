// How many runs this worker moves at once. A slot is taken before a run is claimed or started and freed when the run
// leaves this process or is parked: a run that waits holds none.

export class Slots {
  private readonly limit: number
  private readonly onFree: () => void
  private used = 0

  constructor(limit: number, onFree: () => void) {
    this.limit = limit
    this.onFree = onFree
  }

  get free(): number {
    return this.limit - this.used
  }

  get inUse(): number {
    return this.used
  }

  take(count: number): void {
    this.used += count
  }

  give(count: number): void {
    this.used -= count
    if (count > 0) this.onFree()
  }
}
