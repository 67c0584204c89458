// What workers, server and strangers did at any moment of a chaos run, as far as it keeps a run waiting. Of many workers the
// one counts who was most able to take it: as long as one of them could and did not, the others are no reason.

import type { StoreCall } from './store-call-log.ts'
import { grouped, type Evidence } from './evidence.ts'
import type { HistoryEvent } from './history.ts'
import type { Cause } from './recovery.ts'

/** What a run waits for. */
export type Situation =
  | { readonly kind: 'lease' | 'rescue' | 'again' }
  | { readonly kind: 'claim'; readonly isIsolated: boolean }
  | { readonly kind: 'begin' | 'unheard'; readonly worker?: string }

interface Span {
  readonly from: number
  readonly to: number
}

/** What a worker does at one moment, for who waits to be claimed or found; the earlier, the more able. */
const abilities = ['asks', 'idle', 'full', 'apart', 'pauses', 'unanswered'] as const
type Ability = (typeof abilities)[number]

const whyNotClaimed: Readonly<Record<Ability, Cause>> = {
  asks: 'order',
  idle: 'poll',
  full: 'order',
  apart: 'apart',
  pauses: 'backOff',
  unanswered: 'connection',
}

const bucketMs = 1_000

export class Surroundings {
  private readonly gone: Evidence['goneAt']
  /** By worker, in the order in which they were over. */
  private readonly calls: ReadonlyMap<string, readonly StoreCall[]>
  private readonly byRun = new Map<string, StoreCall[]>()
  private readonly beats: ReadonlyMap<string, readonly StoreCall[]>
  /** When each worker was at work, when it stood still, when the server was down, when each row was locked. */
  private readonly atWork: ReadonlyMap<string, readonly Span[]>
  private readonly still: ReadonlyMap<string, readonly Span[]>
  private readonly down: readonly Span[]
  private readonly locked: ReadonlyMap<string, readonly Span[]>
  /** When something began or ended for one of the workers. */
  private readonly moments = new Map<number, number[]>()

  private readonly youngMs: number

  constructor({ calls, happened, goneAt, leaseMs }: Evidence) {
    this.youngMs = Math.min(2 * leaseMs, 10_000)
    this.gone = goneAt
    this.calls = new Map(
      [...grouped(calls, ({ worker }) => worker)].map(([worker, own]) => [worker, byEnd(own)] as const),
    )
    for (const call of calls) for (const run of call.runs ?? []) this.about(run).push(call)
    const beats = calls.filter(({ f, session }) => f === 'beat' && session !== undefined)
    this.beats = grouped(beats, ({ session }) => session ?? '')
    const state =
      (name: string) =>
      (event: HistoryEvent): string | null =>
        argsOf(event).state === name ? (argsOf(event).worker ?? null) : null
    this.atWork = spans(happened, state('works'), state('ends'))
    this.still = spans(happened, state('stands still'), state('goes on'))
    const server =
      (name: string) =>
      (event: HistoryEvent): string | null =>
        event.proc === 'server' && argsOf(event).state === name ? 'server' : null
    this.down = spans(happened, server('down'), server('up')).get('server') ?? []
    this.locked = spansOfMany(happened)
    for (const { from, to } of calls) this.mark(from, to)
    for (const group of [this.atWork, this.still]) for (const own of group.values()) this.markAll(own)
    this.markAll(this.down)
    for (const own of this.atWork.values()) this.mark(...own.map(({ from }) => from + this.youngMs))
  }

  callsAbout(run: string): readonly StoreCall[] {
    return this.byRun.get(run) ?? []
  }

  tenureOf(session: string): string | null {
    return this.beats.get(session)?.find(({ tenure }) => tenure !== undefined)?.tenure ?? null
  }

  goneAt(tenure: string | null): number | undefined {
    return tenure === null ? undefined : this.gone.get(tenure)
  }

  /** Until when the store believed that a session lives. */
  leaseEnd(session: string): number | null {
    const beats = this.beats.get(session) ?? []
    const ended = beats.find(({ ends, ok }) => ends === true && ok)?.from ?? Infinity
    const until = Math.max(...beats.map((beat) => beat.until ?? Number.NEGATIVE_INFINITY))
    return Number.isFinite(until) ? Math.min(until, ended) : null
  }

  /** The last claim before that got no answer, of the session that was found dead or the worker that gave back. */
  unheardClaim(
    one: { readonly at: number } & ({ readonly session: string } | { readonly worker: string }),
  ): StoreCall | null {
    const worker = 'session' in one ? this.tenureOf(one.session)?.split('/')[0] : one.worker
    const own = this.calls.get(worker ?? '') ?? []
    const isOne = ({ f, ok, to }: StoreCall): boolean => (f === 'claim' || f === 'apart') && !ok && to < one.at
    const isOf = ({ session }: StoreCall): boolean => !('session' in one) || session === one.session
    return own.findLast((call) => isOne(call) && isOf(call)) ?? null
  }

  /** The moments of this time at which something may have changed, with its beginning. */
  momentsWithin(run: string, from: number, to: number): readonly number[] {
    const found = new Set<number>([from])
    for (let bucket = Math.floor(from / bucketMs); bucket <= Math.floor(to / bucketMs); bucket += 1) {
      for (const at of this.moments.get(bucket) ?? []) if (at > from && at < to) found.add(at)
    }
    for (const span of this.locked.get(run) ?? []) {
      for (const at of [span.from, span.to]) if (at > from && at < to) found.add(at)
    }
    return [...found].toSorted((a, b) => a - b)
  }

  causeAt(run: string, at: number, situation: Situation): Cause {
    if (isWithin(this.down, at)) return 'server'
    const { kind } = situation
    if (kind === 'lease' || kind === 'again' || kind === 'unheard') return kind
    if (kind !== 'begin' && isWithin(this.locked.get(run) ?? [], at)) return 'row'
    if (kind === 'begin') return this.isUnanswered(situation.worker ?? '', at) ? 'connection' : 'begin'
    const running = [...this.atWork].filter(([worker, own]) => {
      return isWithin(own, at) && !isWithin(this.still.get(worker) ?? [], at)
    })
    if (running.length === 0) return 'workers'
    if (kind === 'claim' && situation.isIsolated) {
      const isOld = ({ from, to }: Span): boolean => from + this.youngMs <= at && at < to
      return running.some(([, own]) => own.some(isOld)) ? 'apart' : 'young'
    }
    const able = running.map(([worker]) => (kind === 'claim' ? this.claiming(worker, at) : this.rescuing(worker, at)))
    const most = abilities.find((ability) => able.includes(ability)) ?? 'idle'
    if (kind === 'claim') return whyNotClaimed[most]
    return most === 'pauses' ? 'backOff' : most === 'unanswered' ? 'connection' : 'rescuer'
  }

  private claiming(worker: string, at: number): Ability {
    const { under, last } = this.around(worker, at, ['claim', 'apart'])
    if (under !== null) return isStuck(under) ? 'unanswered' : under.f === 'apart' ? 'apart' : 'asks'
    const beat = this.around(worker, at, ['beat'])
    // Whose heartbeat failed takes nothing until one succeeds.
    if (beat.under === null ? beat.last?.ok === false : isStuck(beat.under)) return 'unanswered'
    if (last?.ok === false) return 'pauses'
    if (last?.f === 'apart' && (last.runs?.length ?? 0) > 0) return 'apart'
    return last?.full === true ? 'full' : 'idle'
  }

  private rescuing(worker: string, at: number): Ability {
    const { under, last } = this.around(worker, at, ['rescue'])
    if (under !== null) return isStuck(under) ? 'unanswered' : 'asks'
    return last?.ok === false ? 'pauses' : 'idle'
  }

  private isUnanswered(worker: string, at: number): boolean {
    const { under } = this.around(worker, at, ['load', 'release', 'beat'])
    return under !== null && isStuck(under)
  }

  /** What of that a worker had under way then, those that were stuck first, and what was over last. */
  private around(
    worker: string,
    at: number,
    kinds: readonly StoreCall['f'][],
  ): { readonly under: StoreCall | null; readonly last: StoreCall | null } {
    const own = this.calls.get(worker) ?? []
    let [low, high] = [0, own.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((own[middle]?.to ?? 0) <= at) low = middle + 1
      else high = middle
    }
    let under: StoreCall | null = null
    // No call lasts for longer than a store waits; what ended much later began later.
    for (let index = low; index < own.length && (own[index]?.to ?? 0) < at + longestCallMs; index += 1) {
      const call = own[index]
      if (call === undefined || call.from > at || !kinds.includes(call.f)) continue
      if (under === null || isStuck(call)) under = call
    }
    let last: StoreCall | null = null
    for (let index = low - 1; index >= 0 && last === null; index -= 1) {
      const call = own[index]
      if (call !== undefined && kinds.includes(call.f)) last = call
    }
    return { under, last }
  }

  private about(run: string): StoreCall[] {
    const known = this.byRun.get(run)
    if (known !== undefined) return known
    const own: StoreCall[] = []
    this.byRun.set(run, own)
    return own
  }

  private markAll(all: readonly Span[]): void {
    for (const { from, to } of all) this.mark(from, to)
  }

  private mark(...moments: readonly number[]): void {
    for (const at of moments) {
      if (!Number.isFinite(at)) continue
      const bucket = Math.floor(at / bucketMs)
      const known = this.moments.get(bucket)
      if (known === undefined) this.moments.set(bucket, [at])
      else known.push(at)
    }
  }
}

const longestCallMs = 30_000

/** What took so long has waited: for a connection, or for a server that does not answer. */
const stuckMs = 1_000

function isStuck({ ok, from, to }: StoreCall): boolean {
  return !ok || to - from > stuckMs
}

interface EventArgs {
  readonly worker?: string
  readonly state?: string
  /** Rows that a stranger holds from here on, and those that he lets go. */
  readonly holds?: readonly string[]
  readonly frees?: readonly string[]
}

function argsOf({ args }: HistoryEvent): EventArgs {
  return args ?? {}
}

function byEnd(calls: readonly StoreCall[]): readonly StoreCall[] {
  return calls.toSorted((a, b) => a.to - b.to)
}

function isWithin(own: readonly Span[], at: number): boolean {
  return own.some(({ from, to }) => from <= at && at < to)
}

type NameOf = (event: HistoryEvent) => string | null

/** From an event that opens to the next one that closes; what never closes is open to the end. */
function spans(happened: readonly HistoryEvent[], opens: NameOf, closes: NameOf): ReadonlyMap<string, readonly Span[]> {
  return spansBy(
    happened,
    (event) => [opens(event)].filter((name) => name !== null),
    (event) => [closes(event)].filter((name) => name !== null),
  )
}

function spansOfMany(happened: readonly HistoryEvent[]): ReadonlyMap<string, readonly Span[]> {
  return spansBy(
    happened,
    (event) => argsOf(event).holds ?? [],
    (event) => argsOf(event).frees ?? [],
  )
}

function spansBy(
  happened: readonly HistoryEvent[],
  opens: (event: HistoryEvent) => readonly string[],
  closes: (event: HistoryEvent) => readonly string[],
): ReadonlyMap<string, readonly Span[]> {
  const open = new Map<string, number>()
  const found = new Map<string, Span[]>()
  const close = (name: string, to: number): void => {
    const from = open.get(name)
    if (from === undefined) return
    open.delete(name)
    found.set(name, [...(found.get(name) ?? []), { from, to }])
  }
  for (const event of happened) {
    for (const name of closes(event)) close(name, event.at)
    for (const name of opens(event)) if (!open.has(name)) open.set(name, event.at)
  }
  for (const name of open.keys()) close(name, Infinity)
  return found
}
