// How the time of a soak is spent.

export interface Schedule {
  /** Finding out the capacity. */
  readonly calibrateMs: number
  /** Arrivals. */
  readonly loadMs: number
  readonly sampleMs: number
  readonly progressMs: number
  readonly doctorMs: number
}

/** Long ones find out the capacity for 25 s, and short ones spend a quarter of their time on it. */
export function scheduleOf(minutes: number): Schedule {
  const ms = minutes * 60_000
  const calibrateMs = Math.min(25_000, ms / 4)
  const isLong = minutes >= 5
  return {
    calibrateMs,
    loadMs: ms - calibrateMs,
    sampleMs: isLong ? 5_000 : 1_000,
    progressMs: isLong ? 10_000 : 3_000,
    doctorMs: Math.min(60_000, ms / 10),
  }
}
