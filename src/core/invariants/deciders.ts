// The invariants of instances of deciders: what their journals say of timers and effects is what their rows do. Nothing here
// folds states or asks for order keys: that would need the code of the decider.

import { dueAt } from '../model/due.ts'
import type { Entry } from '../model/entry.ts'
import { effectType, isEffectType } from '../rules/effect-type.ts'
import type { ExchangeInvariant } from './exchange.ts'
import { isKind, type EntryOf, type RunInvariant, type RunState } from './invariant.ts'

export const dueIsEarliestTimer: RunInvariant = {
  name: 'due_is_earliest_timer',
  kind: 'S',
  about:
    'A waiting instance that has armed timers, was never retried and has no unread message is due when the first timer is that is still armed.',
  check({ run: { status, due, deletedAt }, entries, messages }, now) {
    if (status !== 'waiting' || deletedAt !== null || messages.length > 0) return null
    if (!entries.some(({ kind }) => kind === 'timer') || entries.some(({ kind }) => kind === 'retried')) return null
    const first = firstTimer(entries)
    if (due === first || (due !== null && first !== null && due <= now && first <= now)) return null
    return `its first timer is due at ${first ?? 'no time'}, and the run at ${due ?? 'no time'}`
  },
}

/** When the first of the armed timers is due; null if none is armed. */
function firstTimer(entries: readonly Entry[]): number | null {
  const armed = new Map<string, number>()
  for (const entry of entries) {
    if (isKind(entry, 'timer')) armed.set(entry.name, dueAt(entry.meta, entry.at) ?? entry.at)
    else if (isKind(entry, 'timer-cancelled', 'timer-failed')) armed.delete(entry.name)
    else if (isKind(entry, 'input') && entry.meta.from.kind === 'timer') armed.delete(entry.meta.from.name)
    else if (isKind(entry, 'attempt-failed') && entry.name !== null) {
      // Its input could not be decided: it is tried again.
      armed.set(entry.name, entry.at + entry.meta.delayMs)
    }
  }
  return armed.size === 0 ? null : Math.min(...armed.values())
}

export const effectRunsFollowJournal: ExchangeInvariant = {
  name: 'effect_runs_follow_journal',
  kind: 'S',
  about:
    'The first effect of a live instance that has no outcome has its run, unless a message may yet report it, while later ones may wait for their turn; and the run of an effect has an entry that asks for it.',
  check(_, states) {
    const performed = new Set(states.map(performs))
    const asked = new Set<string>()
    const ids = new Set(states.map(({ run }) => run.id))
    for (const state of states) for (const effect of effectsOf(state)) asked.add(asks(state, effect))
    return states.flatMap((state) => {
      const { run } = state
      const pending = firstPending(state)
      if (pending !== undefined && !performed.has(asks(state, pending))) {
        return [{ runId: run.id, message: `no run performs its effect ${pending.name}` }]
      }
      const performing = performs(state)
      const isOrphan = performing !== null && run.parentId !== null && ids.has(run.parentId) && !asked.has(performing)
      return isOrphan ? [{ runId: run.id, message: 'its instance has not asked for this effect' }] : []
    })
  },
}

function effectsOf({ entries }: RunState): readonly EntryOf<'effect'>[] {
  return entries.filter((entry) => isKind(entry, 'effect'))
}

function firstPending(state: RunState): EntryOf<'effect'> | undefined {
  const { run, entries, messages } = state
  if (run.endedAt !== null || run.deletedAt !== null || messages.length > 0) return undefined
  const over = new Set(entries.flatMap((entry) => (isOutcome(entry) ? [entry.name] : [])))
  return effectsOf(state).find(({ name }) => !over.has(name))
}

function isOutcome(entry: Entry): entry is EntryOf<'effect-succeeded' | 'effect-failed'> {
  return isKind(entry, 'effect-succeeded', 'effect-failed')
}

/** The instance, the type of the run and the effect that an entry asks for. */
function asks({ run }: RunState, { name }: EntryOf<'effect'>): string {
  return `${run.id} ${effectType(run.type, name.slice(0, name.lastIndexOf('#')))} ${name}`
}

/** The same, of a run that performs an effect; null of others. */
function performs({ run: { type, parentId, metadata } }: RunState): string | null {
  if (!isEffectType(type) || parentId === null || metadata === null) return null
  const { effect } = JSON.parse(metadata) as { readonly effect?: unknown }
  return typeof effect === 'string' ? `${parentId} ${type} ${effect}` : null
}
