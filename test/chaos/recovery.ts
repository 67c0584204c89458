// How long each run that lost its holder waited until another holder went on with it, and for what: every millisecond of that time
// has one cause. The stations of a run are known from its journal (who was found dead, when), from the accounts of the workers
// (who claimed it, gave it back or never heard that he had it) and from the sink (who went on). What held it up between two of
// them is looked up in what the workers and the server did meanwhile.
//
//   lost ──lease──▶ lease over ──rescuer──▶ found dead ──claim──▶ claimed ──begin──▶ goes on
//                                              ▲    ▲              │  │
//                                              │    └──given back──┘  │
//                                              └──its holder is lost──┘

import { entries, grouped, type Evidence, type FinalRun } from './evidence.ts'
import { Surroundings, type Situation } from './surroundings.ts'

export const causes = {
  lease: 'its lease was not yet over',
  server: 'the server was away',
  rescuer: 'no rescuer had looked for dead holders',
  workers: 'no worker was running',
  row: 'its row was locked by a stranger',
  connection: 'nothing was answered: connection or pool',
  backOff: 'asking paused after an error',
  young: 'it is a suspect, and every worker was young',
  apart: 'suspects are performed in isolation',
  order: 'others were claimed first, or no slot was free',
  poll: 'no worker polled for work',
  unheard: 'a claim was made whose answer was lost',
  again: 'its next holder was lost, too',
  begin: 'it was claimed, and began',
} as const

export type Cause = keyof typeof causes

export interface Recovery {
  readonly run: string
  /** When its holder was lost, and when another holder went on with it. */
  readonly from: number
  readonly to: number
  /** The causes sum up to the whole. */
  readonly parts: ReadonlyMap<Cause, number>
}

/** A time in which a run was in one situation. */
interface Phase {
  readonly from: number
  readonly to: number
  readonly situation: Situation
}

/** Something that happened to who holds a run. */
type Station =
  | { readonly at: number; readonly what: 'dead'; readonly session: string; readonly crashes: number }
  | { readonly at: number; readonly what: 'claimed' | 'unheard'; readonly session: string; readonly worker: string }
  | { readonly at: number; readonly what: 'released'; readonly worker: string }

export function recoveries(evidence: Evidence): readonly Recovery[] {
  const surroundings = new Surroundings(evidence)
  const effects = grouped(evidence.effects, ({ run }) => run)
  const found: Recovery[] = []
  for (const run of evidence.runs) {
    const crashed = entries(run, 'crashed')
    if (crashed.length === 0) continue
    const stations = stationsOf(run, surroundings)
    const own = effects.get(run.id) ?? []
    let done = Number.NEGATIVE_INFINITY
    for (const { seq, at, meta } of crashed) {
      const taken = at.getTime()
      // Its holder was lost before anybody had gone on: that is one recovery with the one before.
      if (taken <= done) continue
      const tenure = surroundings.tenureOf(meta.session)
      const gone = tenure === null ? undefined : evidence.goneAt.get(tenure)
      const entry = run.journal.find((one) => one.seq > seq && one.kind !== 'crashed')?.at.getTime() ?? Infinity
      const lost = Math.min(gone ?? taken, taken)
      const effect = own.find(({ began, worker }) => began > lost && worker !== tenure)?.began ?? Infinity
      const to = Math.min(entry, Math.max(effect, taken))
      // Its holder may have lost this run only, and then nobody knows when; or it was never gone on with.
      if (gone === undefined || to === Infinity) continue
      done = to
      const phases = phasesOf(stations, { session: meta.session, from: lost, to }, surroundings)
      found.push({ run: run.id, from: lost, to, parts: partsOf(run.id, phases, surroundings) })
    }
  }
  return found
}

function stationsOf(run: FinalRun, surroundings: Surroundings): readonly Station[] {
  const dead = entries(run, 'crashed').map(({ at, meta }) => {
    return { at: at.getTime(), what: 'dead', session: meta.session, crashes: meta.crashes } as const
  })
  const known = surroundings.callsAbout(run.id).flatMap((call): readonly Station[] => {
    const { f, to: at, worker, session, ok } = call
    if (!ok) return []
    if ((f === 'claim' || f === 'apart') && session !== undefined) return [{ at, what: 'claimed', session, worker }]
    return f === 'release' ? [{ at, what: 'released', worker }] : []
  })
  const unheard = [...dead, ...known].flatMap((one): readonly Station[] => {
    if (one.what === 'claimed') return []
    const isKnown = known.some(({ at, ...other }) => {
      if (at >= one.at || other.what !== 'claimed') return false
      return one.what === 'dead' ? other.session === one.session : other.worker === one.worker
    })
    const claim = isKnown ? null : surroundings.unheardClaim(one)
    return claim === null ? [] : [{ at: claim.to, what: 'unheard', session: claim.session ?? '', worker: claim.worker }]
  })
  return [...dead, ...known, ...unheard].toSorted((a, b) => a.at - b.at)
}

/** From the loss of a holder to when it went on, in one piece. */
function phasesOf(
  stations: readonly Station[],
  lost: { readonly session: string; readonly from: number; readonly to: number },
  surroundings: Surroundings,
): readonly Phase[] {
  const phases: Phase[] = []
  let at = lost.from
  const pass = (to: number, situation: Situation): void => {
    const until = Math.min(Math.max(at, to), lost.to)
    if (until > at) phases.push({ from: at, to: until, situation })
    at = until
  }
  /** Who holds it is gone, and not found dead yet. */
  const die = (session: string, foundAt: number): void => {
    pass(Math.min(surroundings.leaseEnd(session) ?? at, foundAt), { kind: 'lease' })
    pass(foundAt, { kind: 'rescue' })
  }
  let isIsolated = false
  let holder = null as { readonly worker: string; readonly kind: 'begin' | 'unheard' } | null
  for (const one of stations.filter((station) => station.at >= lost.from && station.at <= lost.to)) {
    if (one.what === 'dead') {
      if (holder !== null) {
        const tenure = surroundings.tenureOf(one.session)
        pass(surroundings.goneAt(tenure) ?? one.at, { kind: holder.kind === 'unheard' ? 'unheard' : 'again' })
      }
      die(one.session, one.at)
      isIsolated = one.crashes >= 2
      holder = null
    } else if (one.what === 'released') {
      if (holder?.worker !== one.worker) continue
      pass(one.at, { kind: holder.kind, worker: one.worker })
      holder = null
    } else {
      // What one worker had claimed and another one claims was given back, and nobody heard of that.
      if (holder === null) pass(one.at, { kind: 'claim', isIsolated })
      else pass(one.at, { kind: holder.kind, worker: holder.worker })
      holder = { worker: one.worker, kind: one.what === 'claimed' ? 'begin' : 'unheard' }
    }
  }
  pass(lost.to, holder === null ? { kind: 'claim', isIsolated } : { kind: holder.kind, worker: holder.worker })
  return phases
}

function partsOf(run: string, phases: readonly Phase[], surroundings: Surroundings): ReadonlyMap<Cause, number> {
  const parts = new Map<Cause, number>()
  for (const { from, to, situation } of phases) {
    const moments = surroundings.momentsWithin(run, from, to)
    for (const [index, begin] of moments.entries()) {
      const end = moments[index + 1] ?? to
      const cause = surroundings.causeAt(run, (begin + end) / 2, situation)
      parts.set(cause, (parts.get(cause) ?? 0) + end - begin)
    }
  }
  return parts
}

/** The times that each cause took where it took any, sorted. */
export function timesByCause(found: readonly Recovery[]): ReadonlyMap<Cause, readonly number[]> {
  const times = new Map<Cause, readonly number[]>()
  for (const cause of Object.keys(causes) as Cause[]) {
    const taken = found.flatMap(({ parts }) => parts.get(cause) ?? [])
    if (taken.length > 0) times.set(cause, sorted(taken))
  }
  return times
}

/** How long the recoveries took, sorted, without the time that these causes took. */
export function timesWithout(found: readonly Recovery[], ...without: readonly Cause[]): readonly number[] {
  return sorted(
    found.map(({ from, to, parts }) => {
      return without.reduce((left, cause) => left - (parts.get(cause) ?? 0), to - from)
    }),
  )
}

function sorted(times: readonly number[]): readonly number[] {
  return times.toSorted((a, b) => a - b)
}
