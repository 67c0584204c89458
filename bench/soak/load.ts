// The load: runs that arrive whether or not others have ended. Each is counted from the time at which it was to arrive, not
// from the call that started it: whatever keeps the load from starting it in time is part of what it waits for.

import { setTimeout } from 'node:timers/promises'
import type { Random } from 'holdfast'
import { runId } from '../bare-runs.ts'
import { Histogram } from './histogram.ts'
import { kindAt, kinds, newsEveryMs, type Kind } from './mix.ts'
import { Pace } from './pace.ts'
import { messageOf, type Request, type Sender } from './sender.ts'
import { wallMs } from './wall.ts'
import type { News } from './worker-child.ts'

interface Arrival {
  readonly kind: Kind
  readonly at: number
}

/** What was counted since it was asked for before. */
export interface Interval {
  readonly arrived: number
  readonly ended: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly longestMs: number | null
  readonly lateMs: number
}

/** All runs of one kind. */
export interface KindTimes {
  readonly name: string
  readonly about: string
  readonly ended: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly longestMs: number | null
}

/** How often it is looked whether something is to arrive. */
const tickMs = 1

export class Load {
  /** What ended otherwise than it had to, or could not be started or sent. */
  mishaps = 0
  firstMishap: string | null = null
  private readonly sender: Sender
  private readonly random: Random
  private readonly arrivals = new Map<string, Arrival>()
  private readonly interval = new Histogram()
  private readonly byKind = new Map(kinds.map((kind) => [kind, { times: new Histogram(), ended: 0 }]))
  private orders = 0
  private arrived = 0
  private ended = 0
  private lateMs = 0

  constructor(sender: Sender, random: Random) {
    this.sender = sender
    this.random = random
  }

  /** How many runs were begun and have not ended. */
  get open(): number {
    return this.arrivals.size
  }

  /**
   * Keeps so many runs open until the time has come, and answers how many ended in a second, after warming up. Runs end
   * together, because they are committed together; those that take their place arrive one by one all the same, as others
   * will: what arrives in one turn is started in one transaction, which may promise too much.
   */
  async keepOpen(atOnce: number, ms: number, signal: AbortSignal): Promise<number> {
    const began = wallMs()
    const warm = began + ms / 3
    const pace = new Pace(began)
    let endedBefore: number | null = null
    let now = began
    for (; now < began + ms && !signal.aborted; now = wallMs()) {
      pace.look(now, this.ended)
      while (this.open < atOnce && pace.take()) this.arrive(now)
      if (now >= warm) endedBefore ??= this.ended
      await setTimeout(tickMs)
    }
    return ((this.ended - (endedBefore ?? 0)) / (now - warm)) * 1_000
  }

  /** Lets so many runs arrive in a second, on average and by chance, until the time has come or too many are open. */
  async arriveAt(rate: number, untilMs: number, mostOpen: number, signal: AbortSignal): Promise<void> {
    let next = wallMs()
    for (let now = next; now < untilMs && this.open < mostOpen && !signal.aborted; now = wallMs()) {
      for (; next <= now; next += this.gapMs(rate)) {
        this.lateMs = Math.max(this.lateMs, now - next)
        this.arrive(next)
      }
      await setTimeout(tickMs)
    }
  }

  /** Sends to those who wait for news until it is asked to stop. */
  async broadcast(signal: AbortSignal): Promise<void> {
    for (let number = 1; !signal.aborted; number += 1) {
      await setTimeout(newsEveryMs, undefined, { signal }).catch(() => undefined)
      this.send({ news: number })
    }
  }

  /** Waits until nothing is open, or for so long. */
  async settle(ms: number): Promise<void> {
    for (const until = wallMs() + ms; this.open > 0 && wallMs() < until;) await setTimeout(10)
  }

  /** Runs have ended. The children of others are among them; nobody waits for those. */
  hear({ endings, failures }: News): void {
    for (const { request, why } of failures) this.failed(request, why)
    for (const [id, status, at] of endings) {
      const arrival = this.arrivals.get(id)
      if (arrival === undefined || !this.arrivals.delete(id)) continue
      const { kind } = arrival
      if (status !== kind.endsAs) this.mishap(`run ${id} of kind ${kind.name} has ${status}`)
      this.ended += 1
      const counted = this.byKind.get(kind)!
      counted.ended += 1
      if (kind.restsMs === null) continue
      const ms = Math.max(0, at - arrival.at - kind.restsMs)
      this.interval.add(ms)
      counted.times.add(ms)
    }
  }

  take(): Interval {
    const { arrived, ended, lateMs } = this
    const counted = { arrived, ended, lateMs, ...timesOf(this.interval) }
    this.arrived = 0
    this.ended = 0
    this.lateMs = 0
    this.interval.clear()
    return counted
  }

  /** Begins to count anew, for all kinds. */
  forget(): void {
    this.take()
    for (const counted of this.byKind.values()) {
      counted.ended = 0
      counted.times.clear()
    }
  }

  kindTimes(): readonly KindTimes[] {
    return Array.from(this.byKind, ([{ name, about }, { times, ended }]) => ({ name, about, ended, ...timesOf(times) }))
  }

  private arrive(at: number): void {
    const kind = kindAt(this.fraction())
    this.orders += 1
    this.arrived += 1
    // Chosen here, because its end may be reported before the answer to its start is.
    const id = runId(this.orders % 2 ** 28)
    this.arrivals.set(id, { kind, at })
    this.send({ id, kind: kind.name, number: this.orders, at })
  }

  private send(request: Request): void {
    this.sender(request).catch((error: unknown) => this.failed(request, messageOf(error)))
  }

  private failed(request: Request, why: string): void {
    if ('news' in request) return this.mishap(`a broadcast could not be sent: ${why}`)
    this.arrivals.delete(request.id)
    this.mishap(`run ${request.id} of kind ${request.kind} could not be started, or sent to: ${why}`)
  }

  private mishap(what: string): void {
    this.mishaps += 1
    this.firstMishap ??= what
  }

  /** The time between two arrivals that know nothing of each other. */
  private gapMs(rate: number): number {
    return (-Math.log(1 - this.fraction()) / rate) * 1_000
  }

  private fraction(): number {
    return this.random.uint32() / 2 ** 32
  }
}

function timesOf(times: Histogram): Pick<Interval, 'p50Ms' | 'p99Ms' | 'longestMs'> {
  return { p50Ms: times.quantile(0.5), p99Ms: times.quantile(0.99), longestMs: times.max }
}
