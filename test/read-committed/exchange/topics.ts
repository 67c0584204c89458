// Topics and what was sent to them, as one transaction sees and changes them. Each that it touches is locked.

import type { Broadcast, Delivery } from '../../../src/core/model/topic.ts'
import type { Lent } from './locked-rows.ts'
import { Overtaken, type Execution } from '../database/call.ts'
import { goneTopics } from '../database/tables.ts'
import type { TopicUse } from '../../../src/core/rules/messages/unit-of-work.ts'
import type { Snapshot } from '../database/transaction.ts'

/** What is left is forgotten with what is sent next. */
const forgottenAtOnce = 100

export class Topics {
  readonly touched = new Set<string>()
  private readonly x: Execution
  private readonly lent: Lent
  private readonly positions = new Map<string, number>()
  private readonly sent = new Map<string, Broadcast>()
  private readonly taken = new Map<string, string>()
  private readonly forgotten = new Set<string>()
  private readonly retained = new Map<string, number>()
  private readonly looks = new Map<string, number | null>()
  private readonly delivered = new Map<string, number>()

  constructor(x: Execution, lent: Lent) {
    this.x = x
    this.lent = lent
  }

  need(topic: string): void {
    this.touched.add(topic)
    if (this.lent.isUnlocked || this.lent.topics.has(topic)) return
    throw new Overtaken(`Topic ${topic} is reached and not locked`)
  }

  private needQueue(topic: string): void {
    if (!this.x.is('queue-without-its-lock')) return this.need(topic)
    this.touched.add(topic)
  }

  position(topic: string): number {
    this.need(topic)
    return this.positions.get(topic) ?? this.lent.topics.get(topic)?.position ?? 0
  }

  use(topic: string, view: Snapshot): Pick<TopicUse, 'oldest' | 'retainMs'> {
    this.need(topic)
    return { oldest: this.all(topic, view)[0], retainMs: this.lent.topics.get(topic)?.retainMs ?? null }
  }

  /** The next look at it comes then; null if it goes. */
  look(topic: string, at: number | null): void {
    this.need(topic)
    this.looks.set(topic, at)
  }

  known(topic: string, id: string, view: Snapshot): Broadcast | undefined {
    this.need(topic)
    const text = sentText({ topic, id })
    return this.sent.get(text) ?? view.select(this.x.tables.broadcasts, { at: ['id', [text]] })[0]
  }

  backlog(topic: string, delivery: Delivery, now: number, view: Snapshot): readonly Broadcast[] {
    this.needQueue(topic)
    return this.all(topic, view).filter((one) => one.delivery === delivery && !isOver(one, now) && !this.isTaken(one))
  }

  at(topic: string, position: number, view: Snapshot): Broadcast | undefined {
    this.need(topic)
    const found = this.all(topic, view).find((one) => one.position === position)
    return found === undefined ? undefined : { ...found, takenBy: this.taken.get(sentText(found)) ?? found.takenBy }
  }

  from(topic: string, position: number, most: number, view: Snapshot): readonly Broadcast[] {
    this.need(topic)
    return this.all(topic, view)
      .filter((one) => one.delivery === 'all' && one.position >= position)
      .slice(0, most)
  }

  addDelivered(broadcast: Broadcast, runs: number): void {
    this.need(broadcast.topic)
    this.delivered.set(sentText(broadcast), runs)
  }

  add(broadcast: Broadcast, retainMs: number): void {
    this.need(broadcast.topic)
    this.retained.set(broadcast.topic, retainMs)
    this.positions.set(broadcast.topic, broadcast.position)
    this.sent.set(sentText(broadcast), { ...broadcast })
  }

  take(broadcast: Broadcast, runId: string): void {
    this.needQueue(broadcast.topic)
    this.taken.set(sentText(broadcast), runId)
  }

  forget(topic: string, before: number, now: number, view: Snapshot): void {
    this.need(topic)
    const old = this.all(topic, view).filter(
      (one) => one.at < before && (one.delivery === 'all' || this.isTaken(one) || isOver(one, now)),
    )
    for (const one of old.slice(0, forgottenAtOnce)) this.forgotten.add(sentText(one))
  }

  /** Everything at once, under the locks of the topics. */
  get isChanged(): boolean {
    return this.sent.size + this.taken.size + this.delivered.size + this.forgotten.size > 0
  }

  async write(x: Execution, name: Parameters<Execution['run']>[0]): Promise<void> {
    if (!this.isChanged) return
    const { topics, broadcasts } = x.tables
    const { positions, retained, taken, forgotten, sent, delivered } = this
    await x.run(name, async (tx) => {
      if (positions.size > 0) {
        await tx.update(topics, { at: ['name', [...positions.keys()].toSorted()] }, (row) => ({
          ...row,
          position: positions.get(row.name) ?? row.position,
          retainMs: retained.get(row.name) ?? row.retainMs,
        }))
      }
      if (sent.size > 0) await tx.insert(broadcasts, [...sent.values()])
      await tx.update(broadcasts, { at: ['id', [...taken.keys()]] }, (row) => ({
        ...row,
        takenBy: taken.get(sentText(row)) ?? row.takenBy,
      }))
      await tx.update(broadcasts, { at: ['id', [...delivered.keys()]] }, (row) => ({
        ...row,
        deliveredTo: row.deliveredTo + (delivered.get(sentText(row)) ?? 0),
      }))
      if (forgotten.size > 0) await tx.delete(broadcasts, { at: ['id', [...forgotten]] })
    })
  }

  /** What a look at topics found. The row of those that are gone is locked last, and by nothing else. */
  async writeLooks(x: Execution): Promise<void> {
    const { topics } = x.tables
    if (this.looks.size === 0) return
    await x.run('chore.topics', async (tx) => {
      for (const [name, at] of this.looks) {
        const query = { at: ['name', [name]] } as const
        if (at !== null) {
          await tx.update(topics, query, (row) => ({ ...row, lookAt: at }))
          continue
        }
        const [row] = await tx.lock(topics, query)
        await tx.delete(topics, query)
        if (row === undefined || row.position === 0) continue
        const kept = { ...row, name: goneTopics, lookAt: null }
        await tx.upsert(topics, kept, (one) => ({ ...one, position: Math.max(one.position, row.position) }))
      }
    })
  }

  private all(topic: string, view: Snapshot): readonly Broadcast[] {
    const seen = view.select(this.x.tables.broadcasts, { at: ['topic', [topic]] })
    const fresh = [...this.sent.values()].filter((one) => one.topic === topic)
    return [...seen, ...fresh]
      .filter((one) => !this.forgotten.has(sentText(one)))
      .sort((a, b) => a.position - b.position)
  }

  private isTaken(one: Broadcast): boolean {
    return one.takenBy !== null || this.taken.has(sentText(one))
  }
}

function isOver({ expiresAt }: Broadcast, now: number): boolean {
  return expiresAt !== null && expiresAt <= now
}

function sentText({ topic, id }: Pick<Broadcast, 'topic' | 'id'>): string {
  return JSON.stringify([topic, id])
}
