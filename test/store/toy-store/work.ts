// The rows as the rules of starts, commits and control read and write them.

import {
  advanced,
  follow,
  left,
  newRow,
  startRun,
  uniqueText,
  type ControlWork,
  type Entry,
  type Followed,
  type Keyed,
  type NewRun,
  type Run,
  type RunStart,
  type Started,
  type StartingWork,
  type StartWork,
  type Transition,
  type Twin,
} from 'holdfast/store'
import { isLive, ToyUnitOfWork } from './unit-of-work.ts'

export class ToyWork extends ToyUnitOfWork implements StartWork, StartingWork, ControlWork {
  // Starts.

  twin({ id }: NewRun): Twin | undefined {
    const run = this.run(id)
    return run && { run, transition: this.entryAt(id, 1)?.transition }
  }

  sameStart({ type, idempotencyKey }: NewRun): Run | undefined {
    const isSame = ({ id, idempotencyKey: key, deletedAt }: Run): boolean =>
      key === idempotencyKey && deletedAt === null && this.tables.startedAs.get(id) === type
    return this.find(isSame)
  }

  keyRival(given: Keyed): Run | undefined {
    const text = uniqueText(given)
    if (text === null) return undefined
    return this.find((run) => run.id !== given.id && isLive(run) && uniqueText(run) === text)
  }

  hasEnded(session: string): boolean {
    return (this.tables.sessions.get(session)?.endedAt ?? null) !== null
  }

  insert(given: RunStart, isLeased: boolean): Run {
    this.tables.startedAs.set(given.id, given.type)
    this.tables.write(newRow(given, this.now, isLeased), [given.first], given.transition, this.now)
    for (const draft of given.messages ?? []) this.put(draft)
    return this.need(given.id)
  }

  // Commits.

  entryAt(runId: string, seq: number): Entry | undefined {
    return this.tables.journal(runId)[seq - 1]
  }

  keyHolder(run: Keyed): string | null {
    return this.keyRival(run)?.id ?? null
  }

  advance(run: Run, transition: Transition): Run {
    this.tables.write(advanced(run, transition, this.now), transition.append, transition.id, this.now)
    return this.need(run.id)
  }

  take(runId: string, ids: readonly string[], seq: number): void {
    for (const id of ids) this.settleMessage(runId, id, seq, null)
  }

  startChildren({ outbound }: Transition): readonly Started[] {
    return (outbound?.starts ?? []).map(({ run }) => startRun(this, run))
  }

  present({ id }: Run): Run {
    return this.need(id)
  }

  follow(decided: Transition): Followed {
    return follow(this, decided)
  }

  hasMessageAfter({ runId }: Transition, after: number, names: readonly string[] | null): boolean {
    return this.tables.unread(runId).some(({ position, name }) => position > after && (names?.includes(name) ?? true))
  }

  leave(_before: Run, kept: Run, transition: Transition, isReleased: boolean): Run {
    if (isReleased) this.tables.write(left(kept, transition, this.now), [], null, this.now)
    return this.need(kept.id)
  }

  hasTransition(runId: string, id: string): boolean {
    return this.tables.journal(runId).some(({ transition }) => transition === id)
  }

  private find(isMeant: (run: Run) => boolean): Run | undefined {
    for (const run of this.tables.runs.values()) if (isMeant(run)) return run
    return undefined
  }
}
