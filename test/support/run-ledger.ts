// What a store does for the runs of one rig, and no more: rows and journals by the pure rules of the core (`endsLease`,
// `control`, `takeOver`), without batches, indexes or sessions. Every answer is immediate.

import type { Draft, Entry } from '../../src/core/model/entry.ts'
import type { Clock } from '../../src/core/runtime/ports.ts'
import type { Rewrite } from '../../src/core/rules/rewrite.ts'
import { holds, isTerminal, type Lease, type Run } from '../../src/core/model/run.ts'
import { control, type Control, type ControlResult } from '../../src/core/rules/control.ts'
import { giveBack, takeOver, timeOut, type CrashRule } from '../../src/core/rules/claims/takeover.ts'
import {
  assertLegal,
  delaysEnd,
  endsLease,
  objection,
  undoAfter,
  type Transition,
} from '../../src/core/model/transition.ts'
import { dueAt } from '../../src/core/model/due.ts'
import type { Committed } from '../../src/store.ts'

interface Row {
  run: Run
  readonly entries: Entry[]
}

const failures = { crashed: '"crashed"', 'timed-out': '"timed out"', expired: '"expired"' }

export class RunLedger {
  /** Keys of other live runs, by the type under which they are in the way of a run that begins anew. */
  readonly takenTypes = new Set<string>()
  /** What workflows say about crashes. */
  workflows: readonly CrashRule[] = []
  private readonly rows = new Map<string, Row>()
  private readonly clock: Clock

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Inserts a run that is leased at once. */
  insert(start: Pick<Run, 'id' | 'type' | 'version'>, lease: Lease, journal: readonly (Draft | Entry)[]): Run {
    const now = this.clock.now()
    const { session, token } = lease
    const entries = journal.map((draft, index): Entry => ({ at: now, transition: null, ...draft, seq: index + 1 }))
    const run: Run = {
      ...start,
      shard: 0,
      key: null,
      keyScope: 'workflow',
      idempotencyKey: null,
      parentId: null,
      tags: [],
      metadata: null,
      feed: false,
      keyId: null,
      status: 'running',
      readiness: 'leased',
      priority: 0,
      due: null,
      seq: entries.length,
      base: baseOf(entries),
      inbox: 0,
      wakeNames: null,
      watched: false,
      controlRequest: null,
      undo: undoOf(entries),
      crashes: 1,
      token,
      session,
      deadline: null,
      timeoutAt: null,
      expiresAt: null,
      createdAt: now,
      updatedAt: now,
      endedAt: null,
      deletedAt: null,
      deleteReason: null,
    }
    this.rows.set(run.id, { run, entries })
    return run
  }

  row(runId: string): Run {
    return this.find(runId).run
  }

  journal(runId: string): readonly Entry[] {
    return [...this.find(runId).entries]
  }

  async commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    return transitions.map((transition) => this.commitOne(transition))
  }

  /** Leases the run to a session, if it is due. */
  claim(runId: string, session: string): Run {
    const { run } = this.find(runId)
    const now = this.clock.now()
    if (run.due === null || run.due > now || run.deletedAt !== null) throw new Error('There is nothing to claim')
    const status = run.status === 'cancelling' ? 'cancelling' : 'running'
    const claim = { status, readiness: 'leased', due: null, session, token: run.token + 1 } as const
    return this.change(runId, { ...run, ...claim, crashes: run.crashes + 1 })
  }

  control(runId: string, request: Control): ControlResult {
    const steering = control(this.row(runId), request, this.clock.now())
    if (steering.write !== null) this.rewrite(runId, steering.write)
    return steering.answer
  }

  /** The holder of a run died. */
  takeOver(runId: string, maxCrashes = 1_000): void {
    const { workflows } = this
    this.rewrite(runId, takeOver(this.row(runId), { maxCrashes, workflows, failures }, this.clock.now()))
  }

  /** The time of a run that nobody holds is over. */
  timeOut(runId: string): void {
    const run = this.change(runId, { ...this.row(runId), timeoutAt: this.clock.now() })
    this.rewrite(runId, timeOut(run, { maxCrashes: 1_000, failures }, this.clock.now()))
  }

  release(runId: string): void {
    this.rewrite(runId, giveBack(this.row(runId), this.clock.now()))
  }

  /** Puts a message into the mailbox. */
  deliver(runId: string): void {
    const { run } = this.find(runId)
    this.change(runId, { ...run, inbox: run.inbox + 1 })
  }

  private commitOne(transition: Transition): Committed {
    const { runId, guard, append } = transition
    const row = this.find(runId)
    const { run } = row
    if (!holds(run, guard.lease)) return { outcome: 'refused', reason: 'lease-lost' }
    if (run.seq !== guard.seq) return { outcome: 'refused', reason: 'stale' }
    assertLegal(run.status, transition)
    const at = this.clock.now()
    const reason = objection(run, transition, at)
    if (reason === 'cancelling') return { outcome: 'refused', reason, controlRequest: run.controlRequest }
    if (reason !== null) return { outcome: 'refused', reason }
    if (transition.continues !== null && this.takenTypes.has(transition.continues.type)) {
      return { outcome: 'refused', reason: 'key-taken' }
    }
    this.append(row, append, transition.id)
    const released = endsLease(run, transition, () => true)
    const changed = this.change(runId, released ? release(row.run, transition, at) : keep(row.run, transition))
    return {
      outcome: 'committed',
      seq: changed.seq,
      at,
      inbox: run.inbox,
      released,
      controlRequest: changed.controlRequest,
    }
  }

  private append(row: Row, drafts: readonly Draft[], transition: string): void {
    const at = this.clock.now()
    for (const [index, draft] of drafts.entries()) {
      row.entries.push({ ...draft, seq: row.entries.length + 1, at, transition: index === 0 ? transition : null })
    }
    row.run = { ...row.run, seq: row.entries.length, crashes: 0 }
  }

  private rewrite(runId: string, { run, append }: Rewrite): void {
    const row = this.find(runId)
    const { crashes } = run
    this.append(row, append, `rewrite${row.entries.length}`)
    this.change(runId, { ...run, crashes })
  }

  private change(runId: string, run: Run): Run {
    const row = this.find(runId)
    row.run = run
    return run
  }

  private find(runId: string): Row {
    const row = this.rows.get(runId)
    if (row === undefined) throw new Error('There is no such run')
    return row
  }
}

function keep(run: Run, { undo, continues }: Transition): Run {
  if (continues === null) return { ...run, undo: undoAfter(run.undo, undo) }
  return { ...run, ...continues, base: run.seq, undo: 'none' }
}

function release(run: Run, { status, due, undo }: Transition, at: number): Run {
  if (status === null) throw new Error('A checkpoint releases nothing')
  const isOver = isTerminal(status)
  const next = isOver || status === 'paused' ? null : dueAt(due, at)
  const readiness = next === null ? 'idle' : next <= at ? 'ready' : 'timed'
  const controlRequest = status === 'cancelling' ? run.controlRequest : null
  const endedAt = isOver ? at : null
  return {
    ...run,
    status,
    due: next,
    readiness,
    controlRequest,
    endedAt,
    session: null,
    undo: undoAfter(run.undo, undo),
  }
}

function baseOf(entries: readonly Entry[]): number {
  return entries.findLast(({ kind }) => kind === 'continued')?.seq ?? 1
}

function undoOf(entries: readonly Entry[]): Run['undo'] {
  const since = entries.slice(baseOf(entries) - 1)
  if (since.some(({ kind }) => kind === 'failing' || kind === 'cancelling')) return 'due'
  return since.some(delaysEnd) ? 'possible' : 'none'
}
