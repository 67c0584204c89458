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
import type { WaiterPage, WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import type { Broadcast, Delivery } from '../../../core/model/topic.ts'

/** How many broadcasts are forgotten at once. */
const forgottenAtOnce = 100

export class Topics {
  /** By kind and target, then by the waiting run and the effect. */
  private readonly waits = new Map<string, Map<string, WaitRow>>()
  /** By topic, in the order of their positions. */
  private readonly kept = new Map<string, { position: number; broadcasts: Broadcast[] }>()
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
    return this.kept.get(topic)?.position ?? 0
  }

  broadcasts(topic: string): readonly Broadcast[] {
    return this.kept.get(topic)?.broadcasts ?? []
  }

  allBroadcasts(): readonly Broadcast[] {
    return [...this.kept.values()].flatMap(({ broadcasts }) => broadcasts)
  }

  add(broadcast: Broadcast): void {
    const { topic, position } = broadcast
    const kept = this.kept.get(topic)
    if (kept === undefined) this.kept.set(topic, { position, broadcasts: [broadcast] })
    else {
      kept.position = position
      kept.broadcasts.push(broadcast)
    }
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
