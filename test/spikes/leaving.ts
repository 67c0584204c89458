// How a drainer is asked to leave: what it performs ends and is recorded, and then, between two decisions, it goes.

export abstract class Leaving {
  abstract readonly runId: string
  protected isGivingBack = false

  abstract scheduleTurn(): void
  abstract abort(reason: unknown): void

  giveBack(): void {
    this.isGivingBack = true
    this.scheduleTurn()
  }

  abandon(): void {
    this.abort(new Error(`What run ${this.runId} performs is not waited for any longer.`))
  }
}
