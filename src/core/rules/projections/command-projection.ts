// The state machine of a projection. A store reads the rows of one name under a lock, lets this decide, and writes what changed.
//
//   (none) → active   the first claim makes the row, at the position that it names
//   active            a claim leases it when nobody holds it, or when the lease of its holder is over; the token grows
//   active → active   its holder advances it, from exactly the position that it was at: in the transaction of the read model,
//                     where that lies in the same database. So a checkpoint is there if and only if its rows are
//   active → parked   its handler failed for an event, as often as it may; the lease is given up
//   parked → active   it is resumed, and the event is tried again; or the event is skipped, which is recorded
//   active, parked → paused, paused → active   by an operator. The holder finds out because its lease is void
//
//   rebuild           a second row of the same name, at position 0. Its holder makes the place where it writes (`begin`), follows
//                     the feed as the live part does, and `swap`s once it has passed at least what the live part has: then it
//                     is the live part, and the old holder's lease is void. A rebuild of the same definition goes on where it is

import {
  skippedKept,
  type FailedEvent,
  type ProjectionPart,
  type ProjectionRow,
  type SkippedEvent,
} from './projection-row.ts'

interface Holder {
  readonly session: string
  readonly token: number
}

/** What someone wants of one part of a projection. */
export type ProjectionCommand = {
  readonly name: string
  readonly part: ProjectionPart
} & (
  | {
      readonly kind: 'claim'
      readonly session: string
      readonly leaseMs: number
      readonly definition: string
      /** Where a projection begins that is not there yet. */
      readonly startAt: number
    }
  | ({ readonly kind: 'beat'; readonly leaseMs: number } & Holder)
  | ({ readonly kind: 'advance'; readonly from: number; readonly to: number } & Holder)
  | ({ readonly kind: 'park'; readonly failure: FailedEvent } & Holder)
  | ({ readonly kind: 'release' } & Holder)
  | ({ readonly kind: 'begin' } & Holder)
  | ({ readonly kind: 'swap' } & Holder)
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /** The event at which it is parked. */
  | { readonly kind: 'skip'; readonly position: number }
  /** Of the live part: begins a rebuild, or lets one of the same definition go on. Null for the definition of the live part. */
  | { readonly kind: 'rebuild'; readonly definition: string | null }
  /** Forgets this part; with the live part also the rebuild. */
  | { readonly kind: 'remove' }
)

/**
 * `done`: it took effect. `held`: another session holds the lease. `lost`: the caller does not hold it, or the projection is not
 * where the caller says. `different`: it has another definition. `stopped`: it is paused or parked. `behind`: the rebuild has not
 * yet passed what the live part has. `not-parked`: it is not parked at that event.
 */
export type ProjectionOutcome =
  'done' | 'held' | 'lost' | 'different' | 'stopped' | 'behind' | 'not-parked' | 'not-found'

export interface ProjectionAnswer {
  readonly outcome: ProjectionOutcome
  /** The part as it is afterwards: after a swap the live one, and for `rebuild` that part. Null if there is none. */
  readonly row: ProjectionRow | null
}

export interface ProjectionDecided {
  readonly answer: ProjectionAnswer
  readonly write: readonly ProjectionRow[]
  readonly drop: readonly ProjectionPart[]
}

export type KnownParts = Readonly<Record<ProjectionPart, ProjectionRow | null>>

/** The parts that a command reads, and that must be locked for it; the live part is locked first. */
export function partsOf({ kind, part }: ProjectionCommand): readonly ProjectionPart[] {
  return kind === 'swap' || kind === 'rebuild' || kind === 'remove' ? ['live', 'rebuild'] : [part]
}

export function decideProjection(known: KnownParts, command: ProjectionCommand, now: number): ProjectionDecided {
  const row = known[command.part]
  if (command.kind === 'claim') return claim(row, command, now)
  if (row === null) return refused('not-found', null)
  switch (command.kind) {
    case 'beat':
      return ifHeld(row, command, () => written({ ...row, aliveUntil: now + command.leaseMs }, now))
    case 'advance':
      return ifHeld(row, command, () => {
        if (row.position !== command.from || command.to <= command.from) return refused('lost', row)
        return written({ ...row, position: command.to }, now)
      })
    case 'park':
      return ifHeld(row, command, () => written({ ...free(row), status: 'parked', failure: command.failure }, now))
    case 'release':
      return ifHeld(row, command, () => written(free(row), now))
    case 'begin':
      return ifHeld(row, command, () => (row.begun ? refused('lost', row) : written({ ...row, begun: true }, now)))
    case 'swap':
      return ifHeld(row, command, () => swap(known.live, row, now))
    case 'pause':
      return written({ ...free(row), status: 'paused', failure: null }, now)
    case 'resume':
      return row.status === 'active' ? refused('done', row) : written(resumed(row), now)
    case 'skip':
      return skip(row, command.position, now)
    case 'rebuild':
      return rebuild(row, known.rebuild, command.definition, now)
    case 'remove': {
      const drop = command.part === 'live' ? (['live', 'rebuild'] as const) : (['rebuild'] as const)
      return { answer: { outcome: 'done', row: null }, write: [], drop }
    }
  }
}

function claim(
  row: ProjectionRow | null,
  { name, part, session, leaseMs, definition, startAt }: Extract<ProjectionCommand, { readonly kind: 'claim' }>,
  now: number,
): ProjectionDecided {
  const lease = { session, aliveUntil: now + leaseMs }
  if (row === null) {
    if (part === 'rebuild') return refused('not-found', null)
    return written({ ...newRow(name, part, definition, now), ...lease, position: startAt, token: 1 }, now)
  }
  if (row.definition !== definition) return refused('different', row)
  if (row.status !== 'active') return refused('stopped', row)
  const isHeld = row.session !== null && row.session !== session && (row.aliveUntil ?? 0) > now
  return isHeld ? refused('held', row) : written({ ...row, ...lease, token: row.token + 1 }, now)
}

function newRow(name: string, part: ProjectionPart, definition: string, now: number): ProjectionRow {
  return {
    name,
    part,
    definition,
    status: 'active',
    begun: part === 'live',
    position: 0,
    session: null,
    token: 0,
    aliveUntil: null,
    failure: null,
    skipped: [],
    createdAt: now,
    updatedAt: now,
  }
}

function swap(live: ProjectionRow | null, rebuilt: ProjectionRow, now: number): ProjectionDecided {
  if (live === null || !rebuilt.begun) return refused('lost', rebuilt)
  if (rebuilt.position < live.position) return refused('behind', rebuilt)
  const isPaused = live.status === 'paused'
  const { session, aliveUntil } = isPaused ? free(rebuilt) : rebuilt
  const { definition, position, skipped } = rebuilt
  const status = isPaused ? 'paused' : 'active'
  const token = live.token + 1
  const row = { ...live, definition, position, skipped, status, token, session, aliveUntil, failure: null } as const
  return { ...written(row, now), drop: ['rebuild'] }
}

function skip(row: ProjectionRow, position: number, now: number): ProjectionDecided {
  const { status, failure } = row
  if (status !== 'parked' || failure === null || failure.position !== position) return refused('not-parked', row)
  const left: SkippedEvent = { ...failure, skippedAt: now }
  return written({ ...resumed(row), position, skipped: [...row.skipped, left].slice(-skippedKept) }, now)
}

function rebuild(
  live: ProjectionRow,
  known: ProjectionRow | null,
  definition: string | null,
  now: number,
): ProjectionDecided {
  const wanted = definition ?? live.definition
  if (known !== null && known.definition === wanted) return refused('done', known)
  // One that had another definition is begun anew, and its holder's lease is void.
  return written({ ...newRow(live.name, 'rebuild', wanted, now), token: (known?.token ?? 0) + 1 }, now)
}

function ifHeld(row: ProjectionRow, { session, token }: Holder, then: () => ProjectionDecided): ProjectionDecided {
  return row.session === session && row.token === token ? then() : refused('lost', row)
}

function free(row: ProjectionRow): ProjectionRow {
  return { ...row, session: null, aliveUntil: null }
}

function resumed(row: ProjectionRow): ProjectionRow {
  return { ...row, status: 'active', failure: null }
}

function written(row: ProjectionRow, now: number): ProjectionDecided {
  const changed = { ...row, updatedAt: now }
  return { answer: { outcome: 'done', row: changed }, write: [changed], drop: [] }
}

function refused(outcome: ProjectionOutcome, row: ProjectionRow | null): ProjectionDecided {
  return { answer: { outcome, row }, write: [], drop: [] }
}
