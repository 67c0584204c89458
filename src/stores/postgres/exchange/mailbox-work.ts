// Mailboxes as the rules of a delivery read and write them: the rows that were read under the locks, and on top of them the
// messages that were put since. Once inside a unit of work, where any message may be delivered, and once by itself, for
// messages to live runs.

import type { DeliveryOutcome } from '../../../core/model/message.ts'
import type { Run } from '../../../core/model/run.ts'
import { policyColumns, type PolicyColumns } from '../../../core/rows/run-row.ts'
import { withMessage, type DeliveryWork, type MailboxWork } from '../../../core/rules/messages/deliver.ts'
import type { NewMessage } from '../../../store.ts'
import type { SubscriberCounts } from '../../subscriber-counts.ts'
import type { Seen } from './exchange.ts'
import type { LockedRows } from './locked-rows.ts'
import { PostgresUnitOfWork } from './unit-of-work.ts'

export interface MailboxLook extends Seen {
  /** The answers to the senders of messages, by run and id. */
  readonly known: ReadonlyMap<string, DeliveryOutcome>
}

/** How many messages are unread, by run and bound; nothing if they cannot be so many. */
export type Depths = ReadonlyMap<string, number>

export function depthKey(runId: string, most: number): string {
  return `${runId} ${most}`
}

/** The present state of mailboxes, as far as it is known. */
class KnownMailboxes {
  private readonly known: Map<string, DeliveryOutcome>
  private readonly depths: Map<string, number>

  constructor(known: MailboxLook['known'], depths: Depths) {
    this.known = new Map(known)
    this.depths = new Map(depths)
  }

  outcomeOf({ runId, id }: NewMessage): DeliveryOutcome | undefined {
    return this.known.get(`${runId} ${id}`)
  }

  depth({ id }: Run, most: number): number {
    return this.depths.get(depthKey(id, most)) ?? 0
  }

  /** One more lies there. */
  note({ runId, id, mostUnread = 0 }: NewMessage, outcome: DeliveryOutcome): void {
    this.known.set(`${runId} ${id}`, outcome)
    const key = depthKey(runId, mostUnread)
    const unread = this.depths.get(key)
    if (unread !== undefined) this.depths.set(key, unread + 1)
  }
}

/** The unit of work of everything that is sent. */
export class PostgresDeliveryWork extends PostgresUnitOfWork implements DeliveryWork {
  private readonly seen: MailboxLook
  private mailboxes: KnownMailboxes

  constructor(found: LockedRows, seen: MailboxLook, crowds: SubscriberCounts) {
    super(found, seen.now, crowds)
    this.seen = seen
    this.mailboxes = new KnownMailboxes(seen.known, new Map())
  }

  /** Which mailboxes may be full is counted once their runs are locked. */
  set depths(depths: Depths) {
    this.mailboxes = new KnownMailboxes(this.seen.known, depths)
  }

  outcomeOf(draft: NewMessage): DeliveryOutcome | undefined {
    return this.mailboxes.outcomeOf(draft)
  }

  override depth(run: Run, most: number): number {
    return this.mailboxes.depth(run, most)
  }

  override receive(draft: NewMessage): DeliveryOutcome {
    const outcome = super.receive(draft)
    this.mailboxes.note(draft, outcome)
    return outcome
  }
}

/** A message as JSON, with the place that it gets. */
interface Fresh extends Pick<NewMessage, 'id' | 'runId' | 'kind' | 'name' | 'data'>, PolicyColumns {
  readonly position: number
  readonly outcome: DeliveryOutcome
}

/** The mailboxes of runs that are locked, for what touches nothing else. */
export class LiveMailboxes implements MailboxWork {
  readonly fresh: Fresh[] = []
  readonly woken = new Set<string>()
  private readonly now: number
  private readonly runs: Map<string, Run>
  private readonly mailboxes: KnownMailboxes

  constructor(runs: ReadonlyMap<string, Run>, { now, known }: MailboxLook, depths: Depths) {
    this.now = now
    this.runs = new Map(runs)
    this.mailboxes = new KnownMailboxes(known, depths)
  }

  /** The row as it is by now. */
  run(id: string): Run | undefined {
    return this.runs.get(id)
  }

  outcomeOf(draft: NewMessage): DeliveryOutcome | undefined {
    return this.mailboxes.outcomeOf(draft)
  }

  depth(run: Run, most: number): number {
    return this.mailboxes.depth(run, most)
  }

  receive(draft: NewMessage, before: Run): DeliveryOutcome {
    const { id, runId, kind, name, data, policy } = draft
    const { run, outcome, isWoken } = withMessage(before, name, this.now)
    this.runs.set(runId, run)
    this.mailboxes.note(draft, outcome)
    this.fresh.push({ id, runId, kind, name, data, ...policyColumns(policy), position: run.inbox, outcome })
    if (isWoken) this.woken.add(runId)
    return outcome
  }
}
