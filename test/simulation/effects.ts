// What the steps of all processes did to the world outside, and whether that was right: never twice at a time under a valid
// lease, always under the same key, not before everything that the body knew was durable, not before its time, and, if it can be
// undone, not before the journal says that it begins.

import type { Entry } from '../../src/core/model/entry.ts'
import { holds, type Lease, type Run } from '../../src/core/model/run.ts'
import type { Incarnation } from './process.ts'
import type { Beginning, Taken } from './program.ts'
import type { Violation } from '../../src/testing/invariants/index.ts'

export interface Effect extends Beginning {
  readonly n: number
  readonly by: Incarnation
  readonly lease: Lease | undefined
  readonly beganAt: number
  /** It is going on, and its lease has held ever since it began. */
  isExclusive: boolean
  isOver: boolean
  isDone: boolean
}

/** What effects need to know of the store. */
export interface Facts {
  readonly storeNow: number
  run(
    id: string,
  ): { readonly run: Run; readonly entries: readonly Entry[]; readonly numbers: ReadonlySet<number> } | undefined
}

export class Effects {
  readonly all: Effect[] = []
  private readonly going = new Set<Effect>()
  private readonly keys = new Map<string, string>()
  private readonly values = new Map<string, string>()
  private readonly facts: Facts
  private readonly report: (violation: Violation) => void

  constructor(facts: Facts, report: (violation: Violation) => void) {
    this.facts = facts
    this.report = report
  }

  begins(by: Incarnation, beginning: Beginning): number {
    const { runId, round, step, kind, key } = beginning
    const lease = by.leases.get(runId)
    const known = this.facts.run(runId)
    const isHeld = lease !== undefined && known !== undefined && holds(known.run, lease)
    const n = this.all.length + 1
    const beganAt = this.facts.storeNow
    const effect: Effect = { ...beginning, n, by, lease, beganAt, isExclusive: isHeld, isOver: false, isDone: false }
    this.all.push(effect)
    this.checkKey(`${runId} ${round} ${step} ${kind}`, key, runId)
    if (known === undefined)
      this.report({ name: 'effect_of_no_run', runId, message: `${step} of a run that is not there` })
    else this.checkBeginning(effect, known, isHeld)
    this.going.add(effect)
    return n
  }

  /** How often a step of a run has begun. */
  begun(runId: string, step: string): number {
    let count = 0
    for (const effect of this.all)
      if (effect.runId === runId && effect.step === step && effect.kind === 'do') count += 1
    return count
  }

  ends(n: number, isDone: boolean): void {
    const effect = this.all[n - 1]
    if (effect === undefined) return
    effect.isOver = true
    effect.isDone = isDone
    this.going.delete(effect)
  }

  /** A body took a value. One that its journal has is the same on every replay. */
  took(by: Incarnation, { runId, round, place, value }: Taken): void {
    const known = this.facts.run(runId)
    const lease = by.leases.get(runId)
    if (known === undefined || lease === undefined || !holds(known.run, lease)) return
    const key = `${runId} ${round} ${place}`
    const before = this.values.get(key)
    this.values.set(key, value)
    if (before === undefined || before === value) return
    const isRecorded = known.entries.some(({ kind, data }) => kind === 'recorded' && data === JSON.stringify(before))
    if (isRecorded) this.report({ name: 'value_is_stable', runId, message: `${place} was ${before} and now ${value}` })
  }

  /** A process is no more: nothing that it did goes on. */
  died(by: Incarnation): void {
    for (const effect of this.going) if (effect.by === by) this.going.delete(effect)
  }

  /** The store has changed: leases may have been lost. */
  changed(): void {
    for (const effect of this.going) {
      if (!effect.isExclusive) continue
      const known = this.facts.run(effect.runId)
      if (known === undefined || effect.lease === undefined || !holds(known.run, effect.lease))
        effect.isExclusive = false
    }
  }

  private checkKey(of: string, key: string, runId: string): void {
    const known = this.keys.get(of)
    if (known === undefined) this.keys.set(of, key)
    else if (known !== key) {
      this.report({ name: 'idempotency_key_stable', runId, message: `${of} had the key ${known} and now ${key}` })
    }
  }

  private checkBeginning(effect: Effect, known: NonNullable<ReturnType<Facts['run']>>, isHeld: boolean): void {
    const { runId, step, kind, attempt } = effect
    const label = `${step} (${kind}, attempt ${attempt}) in ${effect.by.label}`
    const missing = effect.seen.find((n) => !known.numbers.has(n))
    if (missing !== undefined) {
      this.report({
        name: 'effect_after_durable',
        runId,
        message: `${label} began before result ${missing} was recorded`,
      })
    }
    if (kind === 'undo' && effect.result !== null && !known.numbers.has(effect.result)) {
      this.report({
        name: 'undo_of_recorded',
        runId,
        message: `${label} undoes result ${effect.result}, which was never recorded`,
      })
    }
    if (!isHeld) return
    for (const other of this.going) {
      if (other.isExclusive && other.runId === runId && other.key === effect.key) {
        const name = 'effects_exclusive_under_lease'
        this.report({
          name,
          runId,
          message: `${label} began while attempt ${other.attempt} in ${other.by.label} went on`,
        })
      }
    }
    this.checkNamed(effect, known, label)
    this.checkTime(effect, known.entries, label)
    this.checkUndoing(effect, known, label)
  }

  /** No attempt of a step that can be undone before the journal says so, after all that it says of earlier ones. */
  private checkNamed(
    { kind, step, isUndoable, runId }: Effect,
    { run, entries }: NonNullable<ReturnType<Facts['run']>>,
    label: string,
  ): void {
    if (kind !== 'do' || !isUndoable) return
    const last = entries
      .slice(run.base - 1)
      .findLast((entry) => ofAttempts.has(entry.kind) && isOf(entry.name ?? '', step))
    if (last?.kind !== 'begun')
      this.report({ name: 'begun_before_it_begins', runId, message: `${label} began after ${last?.kind ?? 'nothing'}` })
  }

  /** No attempt before the delay that the last one announced is over. */
  private checkTime({ step, kind, runId, beganAt }: Effect, entries: readonly Entry[], label: string): void {
    for (let index = entries.length - 1; index >= 0; index -= 1) {
      const entry = entries[index] as Entry
      if (entry.kind === 'continued' || entry.kind === 'retried') return
      const isDelay = entry.kind === (kind === 'do' ? 'attempt-failed' : 'undo-attempt-failed')
      if (!isDelay || entry.name === null || !isOf(entry.name, step)) continue
      const { delayMs } = entry.meta as { readonly delayMs: number }
      const early = entry.at + delayMs - beganAt
      if (early > 0) this.report({ name: 'retry_never_early', runId, message: `${label} began ${early} ms early` })
      return
    }
  }

  private checkUndoing(
    { kind, step, runId }: Effect,
    { run, entries }: NonNullable<ReturnType<Facts['run']>>,
    label: string,
  ) {
    const since = entries.slice(run.base - 1)
    if (kind === 'do') {
      // What was under way when its process died is attempted once more, so that it is known what to undo.
      const end = since.find((entry) => entry.kind === 'failing' || entry.kind === 'cancelling')?.seq ?? Infinity
      const wasBegun = since.some((entry) => entry.kind === 'begun' && entry.seq < end && isOf(entry.name, step))
      if (run.undo === 'due' && !wasBegun) this.report({ name: 'nothing_begins_while_undoing', runId, message: label })
      return
    }
    const isDue = run.status === 'cancelling' || since.some((entry) => entry.kind === 'failing')
    if (!isDue) this.report({ name: 'undo_only_when_due', runId, message: label })
    if (since.some((entry) => entry.kind === 'undone' && isOf(entry.name, step))) {
      this.report({ name: 'undone_once', runId, message: `${label} although that is undone` })
    }
  }
}

/** What is said of the attempts of a step. */
const ofAttempts = new Set<Entry['kind']>(['begun', 'attempt-failed', 'step-succeeded', 'step-failed', 'abandoned'])

/** An identity is the name of a step, maybe inside of branches. */
export function isOf(identity: string, step: string): boolean {
  return identity === step || identity.endsWith(`/${step}`)
}
