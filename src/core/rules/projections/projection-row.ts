// What a store keeps of a projection: how far it is, and who may move it on. A projection has a `live` part, which is the read
// model that people read, and while it is built anew a second part, `rebuild`, with a position of its own.

export const projectionParts = ['live', 'rebuild'] as const

export type ProjectionPart = (typeof projectionParts)[number]

/**
 * `active`: it is moved on by the holder of its lease. `paused`: nobody moves it, until it is resumed. `parked`: its handler
 * failed for one event, and it waits there until it is resumed or the event is skipped.
 */
export const projectionStatuses = ['active', 'paused', 'parked'] as const

export type ProjectionStatus = (typeof projectionStatuses)[number]

/** The event that a handler failed for, and why. Its payload is not here: it stays where the codec put it. */
export interface FailedEvent {
  readonly position: number
  /** The run and the number of the entry: `0199…:17`. */
  readonly id: string
  readonly type: string
  /** The type of the decider. */
  readonly of: string
  readonly instance: string | null
  readonly attempts: number
  readonly error: string
}

/** An event that an operator has left out. */
export interface SkippedEvent extends FailedEvent {
  /** When, in the time of the store. */
  readonly skippedAt: number
}

export interface ProjectionRow {
  readonly name: string
  readonly part: ProjectionPart
  /** What makes two projections of one name the same: `projectionDefinition` writes it. */
  readonly definition: string
  readonly status: ProjectionStatus
  /** Whether the place where a rebuild writes was made. Always true of the live part. */
  readonly begun: boolean
  /** That of the last entry of the feed that it has passed. */
  readonly position: number
  /** Who moves it on; null if nobody does. */
  readonly session: string | null
  /** Grows with every lease: a writer with an older one is refused. */
  readonly token: number
  /** When the lease is over unless it is kept. */
  readonly aliveUntil: number | null
  /** Null unless it is parked. */
  readonly failure: FailedEvent | null
  /** The latest of those that were left out. */
  readonly skipped: readonly SkippedEvent[]
  readonly createdAt: number
  readonly updatedAt: number
}

/** How many skipped events a row remembers. */
export const skippedKept = 100
