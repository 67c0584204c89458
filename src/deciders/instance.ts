// One instance in memory: its fold, and the batches that are decided and not committed yet. See `DeciderInstance` for how its
// caller uses it.

import type {
  Accepted,
  Answer,
  ArmedTimer,
  Decided,
  DeciderInstance,
  Failed,
  InstanceOptions,
  KnownCommand,
  Offer,
  PendingEffect,
  Rejected,
} from '../core/definition/decider-model.ts'
import { bug, HoldfastError, isHoldfastError, messageOf } from '../core/errors/error.ts'
import type { Entry } from '../core/model/entry.ts'
import { effectRunId } from '../core/deciding/effect-run.ts'
import type { Random } from '../core/runtime/ports.ts'
import { canonicalText } from '../core/payload/same-value.ts'
import { Batch } from './decide/batch.ts'
import type { Asking } from './decide/run-requests.ts'
import { Full } from './decide/transition-draft.ts'
import { Fold } from './fold/fold.ts'
import { JournalTexts } from './fold/journal-texts.ts'
import { fingerprint, isSnapshot, restore, snapshotOf, type Snapshot } from './fold/snapshot.ts'
import type { Moment } from './fold/timers.ts'
import { readEventOf } from './past/read-event.ts'
import { upcastState } from './past/upcast-state.ts'
import type { DeciderRules } from './rules.ts'
import { watchedRules } from './watched-rules.ts'

/** A batch that is decided and not committed. */
interface Pending {
  readonly since: Moment
  /** How many changes of the fold it made. */
  readonly changes: number
}

export class Instance implements DeciderInstance {
  private readonly rules: DeciderRules
  /** The same, so that a test sees what its functions use. */
  private readonly watched: DeciderRules
  private readonly fold: Fold
  private readonly texts: JournalTexts
  private readonly random: Random
  private readonly fingerprint: string
  private readonly pending: Pending[] = []
  private readonly pendingAnswers = new Map<number, Answer>()
  private readonly digest: InstanceOptions['ports']['digest']
  private readonly asking: Asking
  /** The names of effects by the runs that perform them, as far as they were asked for. */
  private effectRuns: Map<string, string> | null = null
  /** Why it is of no use any more. */
  private broken: Error | null = null

  constructor(rules: DeciderRules, { runId, id, payloads, ports, prepare }: InstanceOptions) {
    const { digest, random, bodies } = ports
    this.rules = rules
    this.random = random
    this.digest = digest
    this.asking = { runId, prepare: prepare ?? null }
    this.texts = new JournalTexts(payloads, runId)
    const contentOf = (input: unknown): string | null => {
      const text = canonicalText(input)
      return text === null ? null : digest.sha256(text)
    }
    this.watched = watchedRules(rules, bodies)
    this.fold = new Fold({
      rules: this.watched,
      texts: this.texts,
      id,
      contentOf: rules.dedup === null ? null : contentOf,
    })
    this.fingerprint = fingerprint(rules, digest)
  }

  get seq(): number {
    return this.fold.seq
  }

  get state(): unknown {
    return this.fold.state
  }

  get hasBegun(): boolean {
    return this.fold.first?.isAccepted === true
  }

  get isOver(): boolean {
    return this.fold.isOver
  }

  get timers(): readonly ArmedTimer[] {
    return this.fold.timers.shown()
  }

  get effects(): readonly PendingEffect[] {
    return [...this.fold.effects.values()]
      .map(({ name, type, seq, since }) => ({ name, type, seq, createdAt: since.at }))
      .sort((one, other) => one.seq - other.seq)
  }

  effectOf(runId: string): string | null {
    const { effects, dead } = this.fold
    const known = this.effectRuns?.get(runId)
    if (known !== undefined) return effects.has(known) || dead.has(known) ? known : null
    const found = new Map<string, string>()
    for (const { name, seq } of [...effects.values(), ...dead.values()]) {
      found.set(effectRunId(this.digest, this.asking.runId, seq), name)
    }
    this.effectRuns = found
    return found.get(runId) ?? null
  }

  find(command: string): KnownCommand | null {
    return this.fold.commands.byId.get(command) ?? null
  }

  apply(entries: readonly Entry[]): 'folded' | 'stale' {
    this.assertUsable()
    if (this.pending.length > 0) throw bug('A journal is read while a batch is pending', { seq: this.seq })
    let rest = entries
    const [first] = entries
    if (this.seq === 0 && first?.kind === 'snapshot') {
      const snapshot = this.readSnapshot(first)
      if (snapshot === null) return 'stale'
      restore(this.fold, snapshot, first)
      rest = entries.slice(1)
    }
    try {
      for (const entry of rest) {
        if (entry.seq !== this.seq + 1) throw bug(`Entry ${entry.seq} follows entry ${this.seq}`)
        this.fold.apply(entry, { at: entry.at })
      }
    } catch (error) {
      this.broken = error instanceof Error ? error : bug('Folding an entry threw no error', { error })
      throw error
    }
    this.fold.settle()
    return 'folded'
  }

  decide(offers: readonly Offer[], { now }: { readonly now: number }): Decided {
    this.assertUsable()
    const { fold, random, pendingAnswers, asking } = this
    const { log } = fold
    log.isOpen = true
    const before = log.length
    try {
      const batch = new Batch({ fold, random, now, pendingAnswers, asking })
      const decided = batch.decide(offers)
      const snapshotAt = this.addSnapshot(batch, decided.isCut)
      const due = fold.hasEnded ? null : fold.timers.nextDue()
      if (decided.append.length > 0) this.pending.push({ since: batch.since, changes: log.length - before })
      return { ...decided, due, snapshotAt }
    } catch (error) {
      log.back(before)
      throw error
    } finally {
      log.isOpen = this.pending.length > 0
    }
  }

  committed(at: number): void {
    const first = this.pending.shift()
    if (first === undefined) throw bug('A batch is committed that is not pending', { seq: this.seq })
    first.since.at = at
    this.fold.log.forget(first.changes)
    if (this.pending.length > 0) return this.fold.timers.refresh()
    this.fold.log.isOpen = false
    this.pendingAnswers.clear()
    this.fold.settle()
  }

  rollBack(): void {
    this.fold.log.back(0)
    this.fold.log.isOpen = false
    this.fold.timers.refresh()
    this.pending.length = 0
    this.pendingAnswers.clear()
  }

  recall({ seq, outcome }: KnownCommand, entries: readonly Entry[]): Accepted | Rejected | Failed {
    const [input, ...rest] = entries
    if (input?.kind !== 'input' || input.seq !== seq) throw bug(`Entry ${seq} is not the input of a known command`)
    if (outcome === 'accepted') {
      const end = rest.findIndex(({ kind }) => kind !== 'event')
      const events = end === -1 ? rest : rest.slice(0, end)
      return { outcome, events: events.flatMap((event) => this.readEvent(event)), state: this.state }
    }
    const [result] = rest
    if (outcome === 'rejected' && result?.kind === 'input-rejected') {
      return { outcome, rejection: this.texts.decode(result) }
    }
    if (result?.kind === 'input-failed') return { outcome: 'failed', error: failure(this.texts.decode(result)) }
    throw bug(`Entry ${seq + 1} is not the result of a known command`)
  }

  /** One event, or none if its type is retired. */
  private readEvent(entry: Entry): readonly unknown[] {
    if (entry.kind !== 'event') throw bug(`Entry ${entry.seq} is no event`)
    const read = readEventOf(this.watched, { ...entry, read: () => this.texts.decode(entry) }, this.fold.options.id)
    return read === null ? [] : [read.event]
  }

  /** The number of the snapshot that is appended; null if none is due, or if it cannot be stored: nothing depends on it. */
  private addSnapshot({ draft }: Batch, isCut: boolean): number | null {
    const { fold, rules } = this
    const isDue = rules.snapshotEvery !== null && fold.seq - fold.snapshotSeq >= rules.snapshotEvery
    // The times of another pending batch are not known, and could only be written late.
    if (!isDue || isCut || fold.hasEnded || this.pending.length > 0 || draft.append.length === 0) return null
    const mark = draft.mark()
    try {
      const seq = draft.next
      const {
        fingerprint: print,
        rules: { stateVersion },
      } = this
      draft.add({ kind: 'snapshot', name: null, meta: { fingerprint: print, stateVersion }, value: snapshotOf(fold) })
      return seq
    } catch (error) {
      draft.back(mark)
      if (error instanceof Full || isHoldfastError(error)) return null
      throw error
    }
  }

  private readSnapshot(entry: Extract<Entry, { kind: 'snapshot' }>): Snapshot | null {
    const { fingerprint: print, stateVersion } = entry.meta
    const isOfThisCode = print === this.fingerprint
    if (!isOfThisCode && this.rules.past.states === null) return null
    try {
      const value = this.texts.decode(entry)
      if (!isSnapshot(value)) return null
      if (isOfThisCode) return value
      const upcasted = upcastState(this.watched, stateVersion, value.state)
      return upcasted === null ? null : { ...value, ...upcasted }
    } catch {
      // Nothing depends on a snapshot: the journal has it all.
      return null
    }
  }

  private assertUsable(): void {
    if (this.broken !== null) throw this.broken
  }
}

function failure(error: unknown): HoldfastError {
  if (isHoldfastError(error)) return error
  return new HoldfastError('DECIDE_FAILED', messageOf(error), { cause: error })
}
