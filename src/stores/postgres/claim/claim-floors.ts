// Where claims begin. The first entries of the index may be dead ones that nothing can clean up while a transaction holds an
// old snapshot. So a claim remembers for each type how far it got, also when it took everything, and the next ones begin
// there:
//
//   near    at that very place, while others were left behind it; for two seconds at most, and then once from `slack`
//   slack   five seconds before the time of that look: a row that is written has a time of now, and is visible to other
//           transactions once it is committed, so much later at most
//   front   at the front of the index: when nothing is known, when `walk-pace.ts` says that it is time, and after a hint of a run
//           without its place
//
// A floor never passes a run that was ready and could not be leased, because another transaction had locked its row: that run
// would be overlooked as soon as it is free. A run that comes in before a floor (with a higher priority, or from a
// transaction that was open for longer than the slack) is found when a hint reports it, or with the next claim from the
// front: two seconds later as long as such claims are cheap, and a minute later at most.

import type { Run } from '../../../core/model/run.ts'
import type { ClaimSelector } from '../../../store.ts'
import type { DetailedHint } from '../execution.ts'

/** For how long claims may begin where the last one ended. */
const nearMs = 2_000

/**
 * A row that is written now has a time of now, or later, and is visible to other transactions once it is committed: so much
 * later at most.
 */
export const slackMs = 5_000

/** The front of the index: before every rank and every time. */
const front = { rank: -2_147_483_648, due: -1 } as const

/** A place in the order of claims. */
export interface Place {
  readonly rank: number
  readonly due: number
}

/** Where a claim of a type begins. */
export interface WalkStart {
  readonly from: 'front' | 'slack' | 'near'
  readonly place: Place
  /** The hinted place that it looks at, which is forgotten unless the claim leases nothing. */
  readonly hinted: Place | null
  readonly wasStale: boolean
}

/** How the claims of a shard may begin now. */
export interface Walking {
  /** It is time for one from the front. */
  readonly isFront: boolean
  /** It may begin at the front if there is reason to. */
  readonly mayWalk: boolean
  /**
   * The store's time, if the last walk from the front took the database too long: an unknown type begins with rows that are
   * written now, and earlier rows are found when the next walk from the front comes to its end. @default null
   */
  readonly cutAt?: number | null
}

/** The ready runs of a type that a claim saw, from where it began. */
export interface WalkResult {
  /** It saw all of them: the remaining ones are locked by other transactions. */
  readonly isAll: boolean
  /** The first that it had to skip, because another transaction had locked it. */
  readonly passed: Place | null
  /** The last that it leased. */
  readonly leased: Place | null
  /** The first of all. A claim of one type need not say. */
  readonly head: Place | null
}

interface Floor {
  /** Nothing before it was ready at the last look; null if there was none. */
  place: Place | null
  /** The store's time of the last look that did not begin near. */
  lookedAt: number
  /** Until when claims may begin at the very place, in the time of this process. */
  nearUntil: number
  /** The first place of all hints since the last claim began. */
  hinted: Place | null
  /** There was a hint without a place. */
  isStale: boolean
}

export class ClaimFloors {
  private readonly monotonic: () => number
  private readonly floors = new Map<string, Floor>()

  constructor(monotonic: () => number) {
    this.monotonic = monotonic
  }

  /** Where a claim of this type begins that is made now. */
  begin(shard: number, selector: ClaimSelector, { isFront, mayWalk, cutAt = null }: Walking): WalkStart {
    const floor = this.floorOf(nameOf(shard, selector))
    const { place, lookedAt, hinted, isStale } = floor
    const news = { hinted, wasStale: isStale }
    floor.hinted = null
    if (place === null && cutAt !== null) {
      const known = { rank: ordinary.rank, due: cutAt - slackMs }
      return { from: 'slack', place: hinted !== null && isBefore(hinted, known) ? hinted : known, ...news }
    }
    if (place === null || isFront || (isStale && mayWalk)) {
      floor.isStale = false
      return { from: 'front', place: front, ...news }
    }
    const isNear = floor.nearUntil >= this.monotonic() && !isStale
    const slack = { rank: place.rank, due: Math.min(place.due, lookedAt - slackMs) }
    const known = isNear ? place : slack
    const begins = hinted !== null && isBefore(hinted, known) ? hinted : known
    return { from: isNear ? 'near' : 'slack', place: begins, ...news }
  }

  /** Remembers the result of a claim that began there, at that time of the store: one for each type, in their order. */
  saw(
    shard: number,
    types: readonly (ClaimSelector & { readonly begin: WalkStart })[],
    sights: readonly WalkResult[],
    now: number,
  ): void {
    for (const [of, type] of types.entries()) {
      const { isAll, passed, leased, head } = sights[of] as WalkResult
      const floor = this.floorOf(nameOf(shard, type))
      const { from, place: began } = type.begin
      const last = leased ?? (began.rank === front.rank ? ordinary : began)
      // If none of them is left, it goes on with rows that come in now, at the rank that it had last.
      floor.place = passed ?? (isAll ? { rank: last.rank, due: now } : (leased ?? head ?? began))
      if (isAll) floor.nearUntil = Number.NEGATIVE_INFINITY
      else if (from !== 'near') floor.nearUntil = this.monotonic() + nearMs
      if (from !== 'near') floor.lookedAt = now
    }
  }

  /**
   * A claim that began there failed or leased nothing. Its hinted places count again: a run of a higher priority is before
   * every known place, and would wait for the next walk.
   */
  failed(shard: number, types: readonly (ClaimSelector & { readonly begin: WalkStart })[]): void {
    for (const type of types) {
      const floor = this.floorOf(nameOf(shard, type))
      const { hinted, wasStale, from } = type.begin
      if (hinted !== null) noteHint(floor, hinted)
      if (wasStale || from === 'front') floor.isStale = true
    }
  }

  /** Runs of a type were made ready here, of which this is the first. */
  lower(shard: number, type: Pick<Run, 'type' | 'version'>, place: Place): void {
    noteHint(this.floorOf(nameOf(shard, type)), place)
  }

  /** A run may have come in before the place where claims begin. */
  notice(hints: readonly DetailedHint[]): void {
    if (this.floors.size === 0) return
    for (const hint of hints) {
      if (hint.kind !== 'ready' || hint.isTimed === true) continue
      const { type, rank, due } = hint
      for (const [name, floor] of this.floors) {
        if (type !== '' && !name.endsWith(` ${type}`)) continue
        if (rank === undefined) floor.isStale = true
        else noteHint(floor, { rank, due: due ?? floor.lookedAt - slackMs })
      }
    }
  }

  private floorOf(name: string): Floor {
    const known = this.floors.get(name)
    if (known !== undefined) return known
    const floor = { place: null, lookedAt: 0, nearUntil: Number.NEGATIVE_INFINITY, hinted: null, isStale: false }
    this.floors.set(name, floor)
    return floor
  }
}

/** The rank of a run without a known one. */
const ordinary: Place = { rank: 0, due: -1 }

function noteHint(floor: Floor, place: Place): void {
  if (floor.hinted === null || isBefore(place, floor.hinted)) floor.hinted = place
}

export function isBefore(one: Place, other: Place): boolean {
  return one.rank < other.rank || (one.rank === other.rank && one.due < other.due)
}

function nameOf(shard: number, { type, version }: Pick<Run, 'type' | 'version'>): string {
  return `${shard} ${version} ${type}`
}
