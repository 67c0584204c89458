// Looks at a read-committed store past every plan: which runs a commit has changed, and whose request that was. One event of
// the world lets at most one transaction commit, so that every committed state is seen, and every step between two of them.

import type { Entry } from '../../src/core/model/entry.ts'
import type { TakenMessage } from '../../src/core/invariants/invariant.ts'
import type { Message } from '../../src/core/model/message.ts'
import { holds, type Lease, type Run } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { NewRun, Store } from '../../src/store.ts'
import type { ReadCommittedStore } from '../read-committed/store.ts'
import { messageOf, runOf, type RunRow } from '../read-committed/database/tables.ts'
import type { RunState, Violation } from '../../src/testing/invariants/index.ts'
import { isUnseen } from './seen-run.ts'

/** A run as it lies in a store. */
export interface Lying {
  readonly id: string
  readonly entries: readonly Entry[]
  view(): Run
  messages(): readonly Message[]
  taken(): readonly TakenMessage[]
}

type Released = Lease & { readonly runId: string }

export class Commits {
  private readonly insides: ReadCommittedStore['insides']
  private readonly seen = new Map<string, RunRow>()
  /** By run: what was ever sent for it. */
  private readonly transitions = new Map<string, Transition[]>()
  private readonly releases = new Map<string, Released[]>()
  private readonly starts = new Map<string, NewRun[]>()
  private method: keyof Store | null = null

  constructor({ insides }: ReadCommittedStore) {
    this.insides = insides
  }

  /** A request has reached the store. */
  sent(method: keyof Store, [request]: readonly unknown[]): void {
    if (method === 'commit') {
      for (const one of request as readonly Transition[]) {
        keep(this.transitions, one.runId, one)
        if (one.settles) keep(this.transitions, one.settles.runId, one.settles)
      }
    }
    if (method === 'release') for (const one of request as readonly Released[]) keep(this.releases, one.runId, one)
    if (method === 'start') for (const one of request as readonly NewRun[]) keep(this.starts, one.id, one)
  }

  /** A transaction goes on with this statement: if it is the last one, something is committed. */
  executes(statement: string): void {
    if (!statement.endsWith('commit')) return
    const [name] = statement.split('.')
    this.method = name === 'chore' ? 'doChores' : (name as keyof Store)
  }

  /** The method that has committed since this was last asked; null if none has. */
  committed(): keyof Store | null {
    const { method } = this
    this.method = null
    return method
  }

  /** The runs that have changed since this was last asked. */
  changed(): readonly Lying[] {
    const { db, tables } = this.insides
    const tx = db.begin('checker')
    const found: Lying[] = []
    for (const row of tx.select(tables.runs, {})) {
      const { id } = row
      if (this.seen.get(id) === row) continue
      this.seen.set(id, row)
      const entries = tx.select(tables.journal, { at: ['run', [id]], order: (a, b) => a.entry.seq - b.entry.seq })
      const kept = tx.select(tables.messages, { at: ['run', [id]], order: (a, b) => a.position - b.position })
      const messages = kept.filter(({ takenBy }) => takenBy === null)
      found.push({
        id,
        entries: entries.map(({ entry }) => entry),
        view: () => runOf(row),
        messages: () => messages.map(messageOf),
        taken: () =>
          kept.flatMap(({ id: message, position, takenBy }) =>
            takenBy === null ? [] : [{ id: message, position, takenBy }],
          ),
      })
    }
    tx.rollBack()
    return found
  }

  /** Whether a session is known and was not ended. Who is dead stays dead, so that a rescue may rely on an older look. */
  isAlive(session: string): boolean {
    const { db, tables } = this.insides
    const tx = db.begin('checker')
    const [row] = tx.select(tables.sessions, { at: ['id', [session]] })
    tx.rollBack()
    return row !== undefined && row.endedAt === null
  }

  /** Who may have made this step: the lease that was shown, if a caller showed one. */
  callerOf(method: keyof Store, before: RunState | null, after: RunState): { session: string | null; token?: number } {
    const nobody = { session: null }
    const { id } = after.run
    switch (method) {
      case 'claim':
        return { session: after.run.session }
      case 'beat':
        return { session: before?.run.session ?? null }
      case 'start':
        return this.starts.get(id)?.find((one) => one.transition === after.entries[0]?.transition)?.lease ?? nobody
      case 'release':
        return this.releases.get(id)?.find((lease) => before !== null && holds(before.run, lease)) ?? nobody
      case 'commit':
        return (before === null ? undefined : this.transitionOf(before, after))?.guard.lease ?? nobody
      default:
        return nobody
    }
  }

  /** Whether a run was parked although a message came that its holder did not know of. */
  lostWakeUp(before: RunState, after: RunState): Violation | null {
    if (after.run.status !== 'waiting' || before.run.session === null || after.run.session !== null) return null
    // Another run of the same commit has notified it, and so has woken it.
    if (after.run.readiness === 'ready') return null
    const parkIf = this.transitionOf(before, after)?.parkIf ?? null
    if (parkIf === null || !isUnseen(after, parkIf)) return null
    const message = `parked by one who knew ${parkIf.inbox} messages of ${after.run.inbox}, and wants one of the others`
    return { name: 'no_lost_wakeup', runId: after.run.id, message: message }
  }

  private transitionOf(before: RunState, after: RunState): Transition | undefined {
    const { seq } = before.run
    const id = after.entries[seq]?.transition
    return this.transitions
      .get(after.run.id)
      ?.findLast((one) =>
        id === undefined
          ? one.append.length === 0 && one.guard.seq === seq && holds(before.run, one.guard.lease)
          : one.id === id,
      )
  }
}

function keep<Item>(map: Map<string, Item[]>, key: string, item: Item): void {
  const items = map.get(key)
  if (items === undefined) map.set(key, [item])
  else items.push(item)
}
