// The journal of an instance of the simulation: commands that it knows, effects that it has asked for, and their outcomes.

import type { Draft, Entry } from '../../src/core/model/entry.ts'
import { isOfAccounts } from './account.ts'
import { effectType } from '../../src/core/rules/effect-type.ts'
import type { Message } from '../../src/core/model/message.ts'
import type { RunStatus } from '../../src/core/model/run.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { NewRun } from '../../src/store.ts'

const decider = 'sim.instance'

/** Instances, and their effects. */
export const selectors = [
  { type: decider, version: 1 },
  { type: effectType(decider, 'act'), version: 1 },
] as const

/** Runs of no program: instances and their effects. */
export function isOfInstances(type: string): boolean {
  return selectors.some((one) => one.type === type) || isOfAccounts(type)
}

export interface Journal {
  readonly run: { readonly id: string; readonly seq: number; readonly status?: RunStatus }
  readonly entries: readonly Entry[]
  readonly messages?: readonly Message[]
}

/** A run that performs an effect. */
export type PlannedEffect = NewRun

interface Known {
  readonly name: string
  /** The run that performs it. */
  readonly child: string
  readonly outcomes: number
}

export function effectsOf(entries: readonly Entry[]): readonly Known[] {
  return entries.flatMap((entry) => {
    if (entry.kind !== 'effect') return []
    const { name } = entry
    const isOutcome = ({ kind }: Entry): boolean => kind === 'effect-succeeded' || kind === 'effect-failed'
    const outcomes = entries.filter((one) => isOutcome(one) && one.name === name).length
    return [{ name, child: JSON.parse(entry.data) as string, outcomes }]
  })
}

/** Whether a command was decided. */
export function isKnown(entries: readonly Entry[], command: string): boolean {
  return entries.some((entry) => entry.kind === 'input' && entry.meta.command === command)
}

interface Asked {
  readonly id: string
  readonly commands: readonly string[]
  /** Runs of effects that are over. */
  readonly ended?: readonly string[]
  readonly effect: PlannedEffect | null
  readonly isOver: boolean
}

/** What follows from commands and ends: a transition without a lease. */
export function decided({ run, entries }: Journal, { id, commands, ended = [], effect, isOver }: Asked): Transition {
  const append: Draft[] = commands.flatMap((command) => inputOf(command, isKnown(entries, command)))
  for (const child of ended) append.push(...outcomeOf(entries, child, 'succeeded'))
  const name = `act#${run.seq + append.length + 1}`
  if (effect !== null) append.push({ kind: 'effect', name, meta: null, data: JSON.stringify(effect.id) })
  if (isOver) append.push({ kind: 'succeeded', name: null, meta: null, data: '1' })
  const metadata = JSON.stringify({ id: run.id, effect: name })
  const child = effect === null ? null : { ...effect, metadata }
  const starts = child === null ? [] : [{ run: child, awaited: true, onParentEnd: 'cancel' } as const]
  return {
    id,
    runId: run.id,
    guard: { seq: run.seq, lease: null },
    append,
    status: isOver ? 'succeeded' : 'waiting',
    due: null,
    parkIf: null,
    undo: null,
    continues: null,
    takes: [],
    outbound: effect === null ? null : { starts, watches: [], unwatches: [] },
  }
}

function inputOf(command: string, isRepeated: boolean): readonly Draft[] {
  const from = { kind: 'message', id: command } as const
  const name = 'Do'
  if (isRepeated) return [{ kind: 'input', name, meta: { from, outcome: 'duplicate' }, data: null }]
  return [
    { kind: 'input', name, meta: { from, outcome: 'accepted', command }, data: '1' },
    { kind: 'event', name: 'Done', meta: null, data: '1' },
  ]
}

/** The outcome of an effect; if it is known, only that it came again. */
function outcomeOf(entries: readonly Entry[], child: string, kind: 'succeeded' | 'failed'): readonly Draft[] {
  const effect = effectsOf(entries).find((one) => one.child === child)
  if (effect === undefined || effect.outcomes > 0) return inputOf(`again ${child}`, true)
  const meta = { attempt: 1, ms: 1 }
  const { name } = effect
  return kind === 'succeeded'
    ? [{ kind: 'effect-succeeded', name, meta, data: null }]
    : [{ kind: 'effect-failed', name, meta, data: '"no"' }]
}

/** What an instance makes of the end of an effect; null if it is over. */
export function outcome(
  { run, entries }: Journal,
  { id, child, kind }: { readonly id: string; readonly child: string; readonly kind: 'succeeded' | 'failed' },
): Transition {
  const made = decided({ run, entries }, { id, commands: [], effect: null, isOver: false })
  return { ...made, append: outcomeOf(entries, child, kind) }
}
