// The administrative queries of a store, for people and pages, beside the port by which runs move.

import type { Fate, Message } from './message.ts'
import type { Run, RunStatus } from './run.ts'

/** Queries for people and pages. They may be slow; nothing that moves runs depends on them. */
export interface StoreAdmin {
  /** Runs that match all of the filter, newest first: by id, which says when it was made. */
  find(filter: RunFilter, page: Page): Promise<readonly Run[]>

  /** How many match, counted no further than to `atMost`. */
  count(filter: RunFilter, atMost: number): Promise<number>

  /** Messages that gave up because their run had ended, the newest first. */
  deadLetters(filter: DeadLetterFilter, page: Page): Promise<readonly DeadLetter[]>

  /** A dead letter is dead no more: it was sent again, or is not wanted. False if it was not dead. */
  settleDeadLetter(letter: { readonly runId: string; readonly id: string }, fate: Fate): Promise<boolean>

  /** The keys other than these that live runs were last written with. It counts no further than to `atMost` runs in all. */
  otherKeys(keys: readonly string[], atMost: number): Promise<readonly KeyCount[]>

  /**
   * Replaces the texts of payloads of one run by others that must mean the same: they were encrypted anew. All of them or
   * none, and only while the run has no holder and its journal ends where the caller has read it. An entry that has no
   * payload, or that is not there, is skipped, and so is such a message.
   */
  rewritePayloads(request: PayloadRewrite): Promise<PayloadsRewritten>

  /**
   * Checks the invariants of every committed state, after any crash or race: all invariants of docs/invariants.md that are
   * about states. It reads everything, and changes nothing.
   */
  doctor(): Promise<readonly InvariantCheck[]>
}

export interface KeyCount {
  readonly key: string
  /** How many live runs were last written with it. */
  readonly runs: number
}

export interface PayloadRewrite {
  readonly runId: string
  /** The `seq` of the run when its payloads were read. */
  readonly seq: number
  /** The key that its payloads need from here on; null if none. */
  readonly keyId: string | null
  readonly entries: readonly { readonly seq: number; readonly data: string }[]
  readonly messages: readonly { readonly id: string; readonly data: string }[]
}

/** `held`: the run has a holder. `changed`: its journal has grown since it was read. In both cases nothing was written. */
export type PayloadsRewritten = 'written' | 'held' | 'changed' | 'not-found'

export interface DeadLetterFilter {
  /** The name of the signal or topic. */
  readonly name?: string
  readonly runId?: string
}

/** A message that its run had not read when it ended, or that came later, and whose policy is to keep it. */
export interface DeadLetter extends Message {
  /** The status that its run had reached. */
  readonly status: RunStatus
  readonly endedAt: number | null
}

export interface InvariantCheck {
  /** The invariant. */
  readonly name: string
  /** The ids of runs for which it does not hold, 20 at most, in order. None means that all is well. */
  readonly offenders: readonly string[]
}

/** Everything that is given must match; lists match any of their members. Deleted runs match only when asked for. */
export interface RunFilter {
  readonly ids?: readonly string[]
  readonly types?: readonly string[]
  /** `billing.` matches every type that begins with it. */
  readonly typePrefix?: string
  readonly statuses?: readonly RunStatus[]
  readonly key?: string
  readonly idempotencyKey?: string
  readonly tag?: string
  readonly version?: number
  readonly parentId?: string
  /** Created at this time or later, by the time in the id. */
  readonly createdFrom?: number
  /** Created before this time, by the time in the id. */
  readonly createdBefore?: number
  readonly deleted?: boolean
}

export interface Page {
  readonly limit: number
  /** The id of the last run of the page before. */
  readonly after?: string
}
