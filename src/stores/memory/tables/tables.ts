// Everything that the memory store keeps, and the few ways in which a row changes. Every one of them takes effect at once,
// and leaves rows, queues, keys and bounds in agreement.

import { defaultPageLimits, type PageLimits } from '../../../core/model/chore.ts'
import { claimColumns, type ClaimRequest } from '../../../core/rules/claims/claim.ts'
import { nearDeadline } from '../../../core/rules/claims/deadline.ts'
import type { Draft, Entry } from '../../../core/model/entry.ts'
import type { Rewrite } from '../../../core/rules/rewrite.ts'
import { isTerminal, type Run } from '../../../core/model/run.ts'
import { fedCount } from '../../../core/rules/feed-entries.ts'
import { Bounds } from './time-bounds.ts'
import { Feed } from './feed.ts'
import { Hints, isControlled } from '../../../core/rules/messages/hints.ts'
import { Keys } from './keys.ts'
import { Projections } from './projections.ts'
import { Queues } from './queues.ts'
import type { Row } from './row.ts'
import { Topics } from './topics.ts'

export class Tables {
  readonly rows = new Map<string, Row>()
  readonly queues = new Queues()
  readonly feed = new Feed()
  readonly bounds = new Bounds()
  readonly keys = new Keys()
  readonly hints = new Hints()
  readonly topics = new Topics()
  readonly projections = new Projections()
  /** How much one call may write for others. */
  readonly pages: PageLimits

  constructor(pages: PageLimits = defaultPageLimits) {
    this.pages = pages
  }

  /** `after`: the row from here on. */
  append(
    row: Row,
    transition: string | null,
    drafts: readonly Draft[],
    now: number,
    after: Pick<Run, 'feed'> = row,
  ): void {
    let first = transition
    for (const draft of drafts) {
      const entry = {
        kind: draft.kind,
        name: draft.name,
        meta: draft.meta,
        data: draft.data,
        seq: row.entries.length + 1,
        at: now,
        transition: first,
      } as Entry
      row.entries.push(entry)
      first = null
    }
    this.feed.add(row, fedCount(row, after, drafts.length))
    row.updatedAt = now
  }

  claim(row: Row, request: ClaimRequest, now: number): void {
    this.queues.remove(row, 'leased')
    row.adoptClaim(claimColumns(row, request, now))
    this.bounds.note(row)
  }

  schedule(row: Row, due: number, now: number): void {
    this.queues.enqueue(row, due, now)
    this.hints.give({ kind: 'ready', type: row.type })
    this.hintDeadline(row, now)
  }

  private hintDeadline(row: Row, now: number): void {
    const at = nearDeadline(row, now)
    if (at !== null) this.hints.give({ kind: 'deadline', at })
  }

  /** The row, which no queue has, is over. */
  end(row: Row): void {
    this.keys.free(row)
    this.keys.take(row)
    this.hints.give({ kind: 'ended', runId: row.id })
  }

  /** Appends the entries and writes the decided row. */
  rewrite(row: Row, { run, append }: Rewrite, transition: string | null, now: number): void {
    const ended = isTerminal(run.status) && !isTerminal(row.status)
    this.append(row, transition, append, now)
    if (row.place !== -1) this.queues.remove(row, 'idle')
    this.keys.free(row)
    row.adopt(run)
    this.keys.take(row)
    this.bounds.note(row)
    if (ended) this.hints.give({ kind: 'ended', runId: row.id })
    if (isControlled(run)) this.hints.give({ kind: 'control', runId: row.id })
    if (run.readiness === 'isolated' && run.due !== null) {
      this.queues.enqueue(row, run.due, now, true)
      this.hintDeadline(row, now)
    } else if (run.due !== null) this.schedule(row, run.due, now)
  }
}
