// The writes of one transaction besides the rows of runs: entries, the one row of the feed if it has any, and, once it is
// committed, hints. Entries gather and go in few statements at the end.

import { hintsOf } from '../../../core/rules/messages/hints.ts'
import type { Draft } from '../../../core/model/entry.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Hint } from '../../../store.ts'
import type { Connection } from '../driver/connection.ts'
import type { Row, Value } from '../driver/driver.ts'
import type { FeedRange } from '../schema/rows.ts'

export interface Depth {
  readonly seq: number
  readonly inbox: number
  /** Counted up to that many. */
  readonly most: number
  readonly unread: number
}

/** How many values an entry has. */
const width = 8

export class Batch {
  readonly db: Connection
  /** Store time: one for the whole transaction, read when it held the lock. */
  readonly now: number
  /** This process listens. */
  readonly hinting: boolean
  readonly hints: Hint[] = []
  /** How much it has written for other runs so far: messages, fates of unread ones, and children that were cancelled. */
  forOthers = 0
  /** How many messages of a run are unread, as they were counted when its row had this value. */
  readonly depths = new Map<string, Depth>()
  private readonly journal: Value[] = []
  private readonly feed: FeedRange[] = []
  private entries = 0
  private fed = 0

  constructor(db: Connection, now: number, hinting: boolean) {
    this.db = db
    this.now = now
    this.hinting = hinting
  }

  /** Appends entries after `seq`; the transition's id is on the first. The last `fed` of them are in the feed. */
  append(runId: string, seq: number, drafts: readonly Draft[], transition: string | null, fed: number): void {
    if (drafts.length === 0) return
    let at = seq
    let id = transition
    for (const { kind, name, meta, data } of drafts) {
      at += 1
      this.journal.push(runId, at, kind, name, meta === null ? null : JSON.stringify(meta), data, this.now, id)
      id = null
    }
    this.entries += drafts.length
    if (fed === 0) return
    this.feed.push([runId, at - fed + 1, at])
    this.fed += fed
  }

  /** The entry of a run that gathered here and is in no table yet, as the row that it will be. */
  gathered(runId: string, seq: number): Row | undefined {
    // From the end: mostly it was just appended.
    for (let place = this.journal.length - width; place >= 0; place -= width) {
      if (this.journal[place] !== runId || this.journal[place + 1] !== seq) continue
      const [, , kind, name, meta, data, at, transition] = this.journal.slice(place, place + width)
      return { seq, kind, name, meta, data, at, transition_id: transition }
    }
    return undefined
  }

  /** A run of this type may be claimed, now or at some time. */
  ready(type: string): void {
    if (this.hinting) this.hints.push({ kind: 'ready', type })
  }

  /** The same for a run whose type is not at hand. */
  readyRun(runId: string): void {
    if (!this.hinting) return
    const row = this.db.get('select type from runs where shard = 0 and id = ?', [runId])
    if (row !== undefined) this.ready(row['type'] as string)
  }

  /** A row was written, whose status was that before; undefined of a row that is new. */
  written(before: Run['status'] | undefined, run: Run): void {
    if (this.hinting) this.hints.push(...hintsOf(before, run, this.now))
  }

  /** A message came for a run that a session holds. */
  messageArrived(runId: string): void {
    if (this.hinting) this.hints.push({ kind: 'message', runId })
  }

  /** There is a chore. */
  chore(): void {
    if (this.hinting) this.hints.push({ kind: 'chore' })
  }

  ended(runId: string): void {
    if (this.hinting) this.hints.push({ kind: 'ended', runId })
  }

  /** Writes what gathered. */
  write(): void {
    if (this.entries === 0) return
    this.db.insert('journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)', width, this.journal)
    if (this.fed === 0) return
    const row = this.db.get('select max(position) as position from feed where shard = 0', [])
    const last = (row?.['position'] as number | null | undefined) ?? 0
    this.db.run('insert into feed (shard, position, entries) values (0, ?, ?)', [
      last + this.fed,
      JSON.stringify(this.feed),
    ])
  }
}
