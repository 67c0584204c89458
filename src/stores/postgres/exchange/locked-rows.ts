// The rows that the rules of the exchange get in one transaction: those that were locked and read before they run.
// `lock-request.ts` requests them.

import type { Chore } from '../../../core/model/chore.ts'
import type { UnitOfWork, KeptBroadcast, WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import type { Entry } from '../../../core/model/entry.ts'
import type { Message } from '../../../core/model/message.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Broadcast } from '../../../core/model/topic.ts'
import type { Crowd } from './lock-request.ts'

export type LastEntry = ReturnType<UnitOfWork['lastEntry']>

/** The rows that were locked and read. A requested row that is not there is known not to exist. */
export interface LockedRows {
  /** The ids of runs that were to be locked. */
  readonly requested: ReadonlySet<string>
  /** Runs that were to be locked, and that another transaction has locked. */
  readonly lockedOut: ReadonlySet<string>
  /** Topics that were to be locked, and that another transaction has locked. */
  readonly lockedOutTopics: ReadonlySet<string>
  readonly runs: ReadonlyMap<string, Run>
  /** Last entries of runs that are over. */
  readonly lasts: ReadonlyMap<string, LastEntry>
  /** By run, of all that may end: the next page. */
  readonly unread: ReadonlyMap<string, readonly Message[]>
  /** Runs that have more unread than was looked at. */
  readonly cutUnread: ReadonlySet<string>
  /** By `run` and its id; by `all`, `one` or `late` and the name of the topic. */
  readonly waits: ReadonlyMap<string, readonly WaitRow[]>
  /** Runs, topics and queues on which more wait than were looked at. */
  readonly cutWaits: ReadonlySet<string>
  /** The positions of topics that are locked. */
  readonly topics: ReadonlyMap<string, number>
  /** By topic and id, of those that were asked for. */
  readonly broadcasts: ReadonlyMap<string, Broadcast | undefined>
  /** By delivery and topic. */
  readonly backlogs: ReadonlyMap<string, readonly Broadcast[]>
  /** Backlogs of which there is more than was looked at. */
  readonly cutBacklogs: ReadonlySet<string>
  /** By topic and position, of those that decide whether a topic is full. */
  readonly kept: ReadonlyMap<string, KeptBroadcast>
  /** How far back each topic was read for that: this many broadcasts, from as many back as it may keep. */
  readonly keptRead: readonly { readonly topic: string; readonly most: number; readonly sends: number }[]
  /** By topic, of those that were asked for. */
  readonly crowds: ReadonlyMap<string, Crowd>
  /** By run and id, of those that were asked for: whether they are there. */
  readonly messages: ReadonlyMap<string, boolean>
  /** By run, of those that were asked for: how many messages are unread, counted up to a bound. */
  readonly depths: ReadonlyMap<string, number>
  /** The entries with which the run of a chore has sent messages: a page. */
  readonly sentEntries: readonly Entry[]
  /** By kind and target, of those that were asked for. */
  readonly chores: ReadonlyMap<string, Chore | undefined>
  /** The broadcasts that a chore passes on, and the later ones; or those that a subscriber missed. */
  readonly passedOn: readonly Broadcast[]
}
