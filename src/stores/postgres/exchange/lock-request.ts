// The rows that the rules of the exchange may touch in one transaction: they are locked and read before the rules run. It is
// a guess from the request; where the rules go beyond it, their unit of work throws `Missing`, which names the additional
// rows. Nothing is ever answered from a row that was not locked and read.

import type { Entry } from '../../../core/model/entry.ts'
import { defaultPageLimits, type Chore, type WaitPosition, partiesOf, sendTarget } from '../../../core/model/chore.ts'
import { outgoingOf, type Outgoing } from '../../../core/rules/messages/send.ts'
import type { WaitTarget } from '../../../core/model/wait-target.ts'
import { passedOnId, type Message } from '../../../core/model/message.ts'
import type { Delivery, NewBroadcast, TopicRules } from '../../../core/model/topic.ts'

/** The runs that wait on a topic, of one delivery. */
export interface RequestedWaiters {
  readonly topic: string
  readonly delivery: Delivery
  /** The longest waiting ones. */
  most: number
  /** The position after which they begin. */
  readonly after: WaitPosition | null
}

/** The broadcasts that a topic keeps, of one delivery. */
export interface RequestedBacklog {
  readonly topic: string
  readonly delivery: Delivery
  /** The oldest of a queue: one for each that comes to take one. */
  most: number
  /** How far back, for broadcasts to all subscribers. */
  retainMs: number
  /** The runs that would get it, unless they have it already. */
  readonly readers: Set<string>
}

/** The runs that wait on a topic. */
export interface Crowd {
  /** How many that live, counted up to the bound. */
  readonly waiting: number
  /** Those of the locked runs that are among them. */
  readonly among: ReadonlySet<string>
}

export class LockRequest {
  /** Runs to be locked. */
  readonly runs = new Set<string>()
  /** The runs that the transaction is about. Any other locked run only receives a message, and can be skipped. */
  readonly own = new Set<string>()
  /** Runs that may end: the runs that wait on them, and their unread messages. */
  readonly ends = new Set<string>()
  /** Runs whose end is reported at once if they are over. */
  readonly targets = new Set<string>()
  /** Topics to be locked. */
  readonly topics = new Set<string>()
  readonly waiters = new Map<string, RequestedWaiters>()
  readonly backlogs = new Map<string, RequestedBacklog>()
  /** By topic. */
  readonly broadcastIds = new Map<string, Set<string>>()
  /** By topic and how much it may keep: how many broadcasts are sent to it. */
  readonly kept = new Map<string, { readonly topic: string; readonly most: number; sends: number }>()
  /** By topic: the runs that would subscribe to it, and how many may. */
  readonly subscribing = new Map<string, { readonly most: number; readonly runs: Set<string> }>()
  /** By topic: up to how many subscribers are counted. */
  readonly crowds = new Map<string, number>()
  /** By run. */
  readonly messageIds = new Map<string, Set<string>>()
  /** The topic whose late subscribers are served, and the position after which they begin. */
  late: { readonly topic: string; readonly after: WaitPosition | null } | null = null
  /** By run: up to how many unread messages are counted. */
  readonly depths = new Map<string, number>()
  /** Chores that decide whether a message may be delivered now: by kind and target. */
  readonly chores = new Map<string, Pick<Chore, 'kind' | 'target'>>()
  /** A chore that is being done, as it was when it was taken. */
  chore: Chore | null = null
  /** How often it was not enough. */
  tries = 0

  /** The transaction is about this run. */
  concern(runId: string): void {
    this.own.add(runId)
    this.runs.add(runId)
  }

  /**
   * It is to be locked, and only receives a message. A run that is watched from now on is not such a one: its row is written.
   */
  isOther(runId: string): boolean {
    return this.runs.has(runId) && !this.own.has(runId) && !this.targets.has(runId)
  }

  /** A run begins to watch that target. */
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

  /** A broadcast to a topic; this many of its subscribers get it at once. */
  broadcast({ name, delivery }: Pick<TopicRules, 'name' | 'delivery'>, id: string, most: number): void {
    this.topics.add(name)
    collect(this.broadcastIds, name, id)
    this.listeners(name, delivery, most)
  }

  /** A broadcast to a topic that may keep only this many. */
  keptOf({ topic: { name, delivery, retainMs }, mostKept: most }: NewBroadcast): void {
    if (most !== undefined && (delivery === 'one' || retainMs > 0)) this.keptAt(name, most)
  }

  /** The broadcast that was the last but this many of a topic decides, or one behind it. */
  keptAt(topic: string, most: number): void {
    const key = `${topic} ${most}`
    const known = this.kept.get(key)
    if (known === undefined) this.kept.set(key, { topic, most, sends: 1 })
    else known.sends += 1
  }

  /** A run sends these with a transition, or a chore does in its place; or they are only left to a chore. */
  send(senderId: string, outgoing: readonly Outgoing[], sendsLater = false): void {
    for (const { to, message } of outgoing) {
      this.leaves('send', sendTarget(senderId, to))
      if (sendsLater) continue
      if ('topic' in message) {
        this.broadcast(message.topic, message.id, defaultPageLimits.passedOn)
        this.keptOf(message)
      } else {
        this.runs.add(to.name)
        this.message(to.name, message.id)
      }
    }
  }

  /** The entries that a chore delivers, of those that its run has sent with. */
  sendAgain(entries: readonly Entry[]): void {
    if (this.chore === null || entries.length === 0) return
    const { target } = this.chore
    const { senderId } = partiesOf(target)
    const outgoing = entries.flatMap((entry) => outgoingOf(senderId, entry.seq, entry) ?? [])
    this.send(
      senderId,
      outgoing.filter(({ to }) => sendTarget(senderId, to) === target),
    )
  }

  /** How many messages of that run are unread decides, counted up to that many. */
  countUnread(runId: string, most: number): void {
    this.depths.set(runId, Math.max(most, this.depths.get(runId) ?? 0))
  }

  /** Whether there is that chore decides. */
  leaves(kind: Chore['kind'], target: string): void {
    this.chores.set(`${kind} ${target}`, { kind, target })
  }

  /** The receivers of a broadcast: one of a queue, and otherwise this many. */
  listeners(topic: string, delivery: Delivery, most: number): void {
    if (delivery === 'one') this.waitersOf(topic, delivery, 1)
    else this.subscribersOf(topic, most, null)
  }

  /** That chore is being done. */
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
    } else if (kind === 'send') {
      const { senderId, receiver } = partiesOf(target)
      this.concern(senderId)
      this.leaves(kind, target)
      if (receiver.kind === 'topic') this.topics.add(receiver.name)
      else this.runs.add(receiver.name)
    } else {
      this.concern(target)
      this.ends.add(target)
      if (kind === 'end') this.targets.add(target)
    }
  }

  /** A run may end that has not read this. */
  addDeadLetter(message: Message): void {
    const { policy, name } = message
    if (policy?.onUnread === 'broadcast') {
      this.broadcast({ name, delivery: policy.delivery }, passedOnId(message), defaultPageLimits.passedOn)
    }
  }

  /** This many more of the waiting runs. */
  waitersOf(topic: string, delivery: Delivery, more: number): void {
    const key = `${delivery} ${topic}`
    const known = this.waiters.get(key)
    // One more than are notified, because a waiting run may be over.
    if (known === undefined) this.waiters.set(key, { topic, delivery, most: more + 1, after: null })
    else known.most += more
  }

  /** This many of the runs that wait on a topic: two broadcasts to it go to the same ones. */
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

/** The rules need a row that was not locked or read. */
export class Missing extends Error {
  readonly add: (lockRequest: LockRequest) => void

  constructor(add: (lockRequest: LockRequest) => void) {
    super('The rules of the exchange need rows that were not loaded.')
    this.add = add
  }
}

function collect(lists: Map<string, Set<string>>, key: string, one: string): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, new Set([one]))
  else list.add(one)
}
