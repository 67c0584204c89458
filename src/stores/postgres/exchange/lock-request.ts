// What the rules of the exchange may touch in one transaction: what is locked and looked at before they run. It is a guess,
// made of what was asked; where the rules go beyond it, their unit of work throws `Missing`, which says what else is wanted. Nothing
// is ever answered from what was not locked and looked at.

import { defaultPageLimits, type Chore, type WaitPosition } from '../../../core/model/chore.ts'
import type { WaitTarget } from '../../../core/model/wait-target.ts'
import { passedOnId, type Message } from '../../../core/model/message.ts'
import type { Delivery, NewBroadcast, TopicRules } from '../../../core/model/topic.ts'

/** Those who wait on a topic, of one delivery. */
export interface RequestedWaiters {
  readonly topic: string
  readonly delivery: Delivery
  /** The longest waiting ones. */
  most: number
  /** After whom. */
  readonly after: WaitPosition | null
}

/** What a topic keeps, of one delivery. */
export interface RequestedBacklog {
  readonly topic: string
  readonly delivery: Delivery
  /** The oldest of a queue: one for each that comes to take one. */
  most: number
  /** How far back, of what goes to everyone. */
  retainMs: number
  /** Who would get it, unless they have it already. */
  readonly readers: Set<string>
}

/** Who waits on a topic. */
export interface Crowd {
  /** How many that live, counted up to the bound. */
  readonly waiting: number
  /** Those of the runs that are locked who are among them. */
  readonly among: ReadonlySet<string>
}

export class LockRequest {
  /** Runs to be locked. */
  readonly runs = new Set<string>()
  /** Runs that all of this is about. Whoever else is locked only gets something, and can be passed over. */
  readonly own = new Set<string>()
  /** Runs that may end: who waits on them, and what they have not read. */
  readonly ends = new Set<string>()
  /** Runs whose end is told at once if they are over. */
  readonly targets = new Set<string>()
  /** Topics to be locked. */
  readonly topics = new Set<string>()
  readonly waiters = new Map<string, RequestedWaiters>()
  readonly backlogs = new Map<string, RequestedBacklog>()
  /** By topic. */
  readonly broadcastIds = new Map<string, Set<string>>()
  /** By topic and how much it may keep: how often something is sent to it. */
  readonly kept = new Map<string, { readonly topic: string; readonly most: number; sends: number }>()
  /** By topic: who would subscribe to it, and how many may. */
  readonly subscribing = new Map<string, { readonly most: number; readonly runs: Set<string> }>()
  /** By topic: up to how many subscribers are counted. */
  readonly crowds = new Map<string, number>()
  /** By run. */
  readonly messageIds = new Map<string, Set<string>>()
  /** The topic whose late subscribers are served, and after whom. */
  late: { readonly topic: string; readonly after: WaitPosition | null } | null = null
  /** A chore that somebody goes on with, as it was when it was taken. */
  chore: Chore | null = null
  /** How often it was not enough. */
  tries = 0

  /** Something is to become of this run. */
  concern(runId: string): void {
    this.own.add(runId)
    this.runs.add(runId)
  }

  /** It is to be locked, and only gets something. Who is watched from now on does not: its row says so. */
  isOther(runId: string): boolean {
    return this.runs.has(runId) && !this.own.has(runId) && !this.targets.has(runId)
  }

  /** Somebody begins to watch that. */
  watch(runId: string, watched: WaitTarget): void {
    if (watched.kind === 'run') {
      this.runs.add(watched.runId)
      this.targets.add(watched.runId)
      return
    }
    const { name, delivery, retainMs, mostSubscribers: most } = watched
    this.topics.add(name)
    if (most !== undefined) this.subscribes(runId, name, most)
    const backlog = this.backlog(name, delivery)
    backlog.most += 1
    backlog.retainMs = Math.max(backlog.retainMs, retainMs)
    if (delivery === 'all') backlog.readers.add(runId)
  }

  private subscribes(runId: string, topic: string, most: number): void {
    const known = this.subscribing.get(topic)
    if (known === undefined) this.subscribing.set(topic, { most, runs: new Set([runId]) })
    else known.runs.add(runId)
  }

  /** Something is sent to a topic; of its subscribers so many get it at once. */
  broadcast({ name, delivery }: Pick<TopicRules, 'name' | 'delivery'>, id: string, most: number): void {
    this.topics.add(name)
    collect(this.broadcastIds, name, id)
    this.listeners(name, delivery, most)
  }

  /** Something is sent to a topic that may keep only so much. */
  keptOf({ topic: { name: topic, delivery, retainMs }, mostKept: most }: NewBroadcast): void {
    if (most === undefined || (delivery === 'all' && retainMs === 0)) return
    const key = `${topic} ${most}`
    const known = this.kept.get(key)
    if (known === undefined) this.kept.set(key, { topic, most, sends: 1 })
    else known.sends += 1
  }

  /** Who gets what is sent to a topic: one of a queue, and otherwise so many. */
  listeners(topic: string, delivery: Delivery, most: number): void {
    if (delivery === 'one') this.waitersOf(topic, delivery, 1)
    else this.subscribersOf(topic, most, null)
  }

  /** Somebody goes on with that. */
  goOn(chore: Chore): void {
    const { kind, target, after } = chore
    this.chore = chore
    if (kind === 'topic') {
      this.topics.add(target)
      this.subscribersOf(target, defaultPageLimits.subscribers, after)
    } else if (kind === 'late') {
      this.topics.add(target)
      this.late = { topic: target, after }
      this.waitersOf(target, 'one', 1)
      this.backlog(target, 'one').most += 1
    } else {
      this.concern(target)
      this.ends.add(target)
      if (kind === 'end') this.targets.add(target)
    }
  }

  /** A run may end that has not read this. */
  giveUp(message: Message): void {
    const { policy, name } = message
    if (policy?.onUnread === 'broadcast') {
      this.broadcast({ name, delivery: policy.delivery }, passedOnId(message), defaultPageLimits.passedOn)
    }
  }

  /** So many more of those who wait. */
  waitersOf(topic: string, delivery: Delivery, more: number): void {
    const key = `${delivery} ${topic}`
    const known = this.waiters.get(key)
    // One more than are told, because who waits may be over.
    if (known === undefined) this.waiters.set(key, { topic, delivery, most: more + 1, after: null })
    else known.most += more
  }

  /** So many of those who wait on a topic: what is sent to it twice goes to the same ones. */
  private subscribersOf(topic: string, most: number, after: WaitPosition | null): void {
    const key = `all ${topic}`
    const known = this.waiters.get(key)
    if (known === undefined) this.waiters.set(key, { topic, delivery: 'all', most, after })
    else known.most = Math.max(known.most, most)
  }

  backlog(topic: string, delivery: Delivery): RequestedBacklog {
    const key = `${delivery} ${topic}`
    const known = this.backlogs.get(key)
    if (known !== undefined) return known
    const backlog = { topic, delivery, most: 0, retainMs: 0, readers: new Set<string>() }
    this.backlogs.set(key, backlog)
    return backlog
  }

  message(runId: string, id: string): void {
    collect(this.messageIds, runId, id)
  }

  broadcastId(topic: string, id: string): void {
    this.topics.add(topic)
    collect(this.broadcastIds, topic, id)
  }
}

/** The rules need something that was not locked or looked at. */
export class Missing extends Error {
  readonly add: (lockRequest: LockRequest) => void

  constructor(add: (lockRequest: LockRequest) => void) {
    super('The rules of the exchange go beyond what was looked at.')
    this.add = add
  }
}

function collect(lists: Map<string, Set<string>>, key: string, one: string): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, new Set([one]))
  else list.add(one)
}
