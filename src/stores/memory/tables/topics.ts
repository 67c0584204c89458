// The waits on runs and topics, the broadcasts that topics keep, and the chores of runs and topics.

import {
  choreOrder,
  choreTakenMs,
  isAfter,
  isFrom,
  type Chore,
  type ChoreRow,
  type WaitPosition,
} from '../../../core/model/chore.ts'
import { firstWaiters, longestFirst } from '../../../core/rules/messages/exchange.ts'
import type { TopicUse, WaiterPage, WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import type { Broadcast, Delivery } from '../../../core/model/topic.ts'

interface Kept {
  position: number
  broadcasts: Broadcast[]
  retainMs: number | null
  /** When to look next whether it is in use. */
  lookAt: number
}

/** How many broadcasts are forgotten at once. */
const forgottenAtOnce = 100

export class Topics {
  /** By kind and target, then by the waiting run and the effect. */
  private readonly waits = new Map<string, Map<string, WaitRow>>()
  /** By topic, in the order of their positions. */
  private readonly kept = new Map<string, Kept>()
  /** The highest position of all topics that are gone. */
  private gone = 0
  /** By kind and target. */
  private readonly chores = new Map<string, ChoreRow>()

  waitsOn(kind: WaitRow['kind'], target: string): readonly WaitRow[] {
    const waits = [...(this.waits.get(`${kind} ${target}`)?.values() ?? [])]
    return waits.sort(longestFirst)
  }

  /** The first this many from that place on. */
  waitsOnRun(runId: string, from: WaitPosition | null, most: number): WaiterPage {
    const all = this.waitsOn('run', runId).filter((one) => isFrom(one, from))
    return firstWaiters(all, most)
  }

  /** The first this many after that place. */
  waitersOf(topic: string, delivery: Delivery, after: WaitPosition | null, most: number): WaiterPage {
    const all = this.waitsOn('topic', topic).filter((one) => one.delivery === delivery && isAfter(one, after))
    return firstWaiters(all, most)
  }

  /** The late subscribers: the first this many after that place. */
  lateOf(topic: string, after: WaitPosition | null, most: number): WaiterPage {
    const all = this.waitsOn('topic', topic).filter((one) => one.missed !== null && isAfter(one, after))
    return firstWaiters(all, most)
  }

  setMissed({ kind, target, effect, runId }: WaitRow, missed: number | null): void {
    const waits = this.waits.get(`${kind} ${target}`)
    const known = waits?.get(`${effect} ${runId}`)
    if (known !== undefined) waits?.set(`${effect} ${runId}`, { ...known, missed })
  }

  /** How many wait on a topic, those that are over by now among them. */
  waiting(topic: string): number {
    return this.waits.get(`topic ${topic}`)?.size ?? 0
  }

  /** A topic begins when a run first waits on it, or something is first sent to it. */
  begin(topic: string, lookAt: number): Kept {
    let kept = this.kept.get(topic)
    if (kept === undefined) this.kept.set(topic, (kept = { position: 0, broadcasts: [], retainMs: null, lookAt }))
    return kept
  }

  /** One of those that are to be looked at; it belongs to the caller for a while. */
  takeTopic(now: number): string | undefined {
    let first: string | undefined
    let lookAt = now
    for (const [name, kept] of this.kept) {
      if (kept.lookAt > lookAt || (kept.lookAt === lookAt && first !== undefined && first < name)) continue
      first = name
      lookAt = kept.lookAt
    }
    if (first !== undefined) this.lookAt(first, now + choreTakenMs)
    return first
  }

  lookAt(topic: string, at: number): void {
    const kept = this.kept.get(topic)
    if (kept !== undefined) kept.lookAt = at
  }

  use(topic: string): Pick<TopicUse, 'oldest' | 'retainMs'> | undefined {
    const kept = this.kept.get(topic)
    return kept === undefined ? undefined : { oldest: kept.broadcasts[0], retainMs: kept.retainMs }
  }

  delete(topic: string): void {
    this.gone = Math.max(this.gone, this.kept.get(topic)?.position ?? 0)
    this.kept.delete(topic)
  }

  addWait(wait: WaitRow): void {
    const target = `${wait.kind} ${wait.target}`
    let waits = this.waits.get(target)
    if (waits === undefined) this.waits.set(target, (waits = new Map<string, WaitRow>()))
    const who = `${wait.effect} ${wait.runId}`
    if (!waits.has(who)) waits.set(who, { ...wait })
  }

  deleteWait({ kind, target, effect, runId }: WaitRow): void {
    const key = `${kind} ${target}`
    const waits = this.waits.get(key)
    waits?.delete(`${effect} ${runId}`)
    if (waits?.size === 0) this.waits.delete(key)
  }

  allWaits(): readonly WaitRow[] {
    return [...this.waits.values()].flatMap((waits) => [...waits.values()])
  }

  position(topic: string): number {
    const position = this.kept.get(topic)?.position ?? 0
    return position === 0 ? this.gone : position
  }

  broadcasts(topic: string): readonly Broadcast[] {
    return this.kept.get(topic)?.broadcasts ?? []
  }

  allBroadcasts(): readonly Broadcast[] {
    return [...this.kept.values()].flatMap(({ broadcasts }) => broadcasts)
  }

  add(broadcast: Broadcast, retainMs: number, lookAt: number): void {
    const kept = this.begin(broadcast.topic, lookAt)
    kept.position = broadcast.position
    kept.broadcasts.push(broadcast)
    kept.retainMs = retainMs
  }

  take({ topic, position }: Broadcast, takenBy: string): void {
    const kept = this.kept.get(topic)
    if (kept === undefined) return
    kept.broadcasts = kept.broadcasts.map((one) => (one.position === position ? { ...one, takenBy } : one))
  }

  addDelivered({ topic, position }: Broadcast, runs: number): void {
    const kept = this.kept.get(topic)
    if (kept === undefined) return
    kept.broadcasts = kept.broadcasts.map((one) =>
      one.position === position ? { ...one, deliveredTo: one.deliveredTo + runs } : one,
    )
  }

  chore(kind: Chore['kind'], target: string): Chore | undefined {
    return this.chores.get(`${kind} ${target}`)
  }

  allChores(): readonly ChoreRow[] {
    return [...this.chores.values()]
  }

  setChore(chore: Chore, due: number): void {
    this.chores.set(`${chore.kind} ${chore.target}`, { ...chore, due })
  }

  deleteChore({ kind, target }: Chore): void {
    this.chores.delete(`${kind} ${target}`)
  }

  /** The chore that has waited longest belongs to the caller for a while. */
  takeChore(now: number): Chore | undefined {
    const [first] = this.allChores()
      .filter(({ due }) => due <= now)
      .toSorted(choreOrder)
    if (first !== undefined) this.setChore(first, now + choreTakenMs)
    return first
  }

  /** Deletes some broadcasts that were sent before that time and that no run can get any more. */
  forget(topic: string, before: number, now: number): void {
    const kept = this.kept.get(topic)
    if (kept === undefined || (kept.broadcasts[0]?.at ?? before) >= before) return
    let left = forgottenAtOnce
    kept.broadcasts = kept.broadcasts.filter((one) => {
      const goes = left > 0 && one.at < before && !mayStillBeTaken(one, now)
      if (goes) left -= 1
      return !goes
    })
  }
}

function mayStillBeTaken({ delivery, takenBy, expiresAt }: Broadcast, now: number): boolean {
  return delivery === 'one' && takenBy === null && (expiresAt === null || expiresAt > now)
}
