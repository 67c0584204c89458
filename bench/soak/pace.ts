// Lets runs arrive evenly, half as many again as have ended of late: so it rises until no more can end.

const lookEveryMs = 250
const lead = 1.5
/** What is left of it when nothing has ended for once: commits come in batches. */
const slackening = 0.9
/** Runs per second from which it rises. */
const slowest = 200

export class Pace {
  private rate = slowest
  private allowed = 0
  private now: number
  private lookedAt: number
  private endedThen = 0

  constructor(now: number) {
    this.now = now
    this.lookedAt = now
  }

  /** So many have ended by now. */
  look(now: number, ended: number): void {
    // What was not taken in its time is gone: it must not come all at once later.
    this.allowed = Math.min(1, this.allowed) + ((now - this.now) / 1_000) * this.rate
    this.now = now
    if (now < this.lookedAt + lookEveryMs) return
    const ending = ((ended - this.endedThen) / (now - this.lookedAt)) * 1_000
    this.rate = Math.max(slowest, lead * ending, slackening * this.rate)
    this.endedThen = ended
    this.lookedAt = now
  }

  /** Whether one more may arrive. */
  take(): boolean {
    if (this.allowed < 1) return false
    this.allowed -= 1
    return true
  }
}
