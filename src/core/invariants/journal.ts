// The invariants of a journal, and of the fields of a row that follow from it.

import type { Entry } from '../model/entry.ts'
import { delaysEnd } from '../model/transition.ts'
import type { UndoState } from '../model/run.ts'
import { firstTwice, isKind, outcomesOf, sinceBase, type RunInvariant, type RunState } from './invariant.ts'

export const historyGapless: RunInvariant = {
  name: 'history_gapless',
  kind: 'S',
  about: 'The entries of a journal are numbered 1, 2, 3 … without a gap.',
  check({ entries }) {
    const at = entries.findIndex(({ seq }, index) => seq !== index + 1)
    return at === -1 ? null : `entry ${at + 1} has the number ${entries[at]?.seq}`
  },
}

export const seqCountsEntries: RunInvariant = {
  name: 'seq_counts_entries',
  kind: 'S',
  about: 'The `seq` of a run is the number of its entries.',
  check({ run, entries }) {
    return run.seq === entries.length ? null : `seq is ${run.seq}, and there are ${entries.length} entries`
  },
}

export const historySingleWriter: RunInvariant = {
  name: 'history_single_writer',
  kind: 'S',
  about: 'No transition is in a journal twice: each has its own id, on its first entry.',
  check({ entries }) {
    const twice = firstTwice(entries.flatMap(({ transition }) => (transition === null ? [] : [transition])))
    return twice === undefined ? null : `transition ${twice} was appended twice`
  },
}

export const historyBeginsWithStart: RunInvariant = {
  name: 'history_begins_with_start',
  kind: 'S',
  about: 'The first entry, and no other, is `started`, and it has the id of the start.',
  check({ entries }) {
    const [first] = entries
    if (first?.kind !== 'started') return `the first entry is ${first?.kind ?? 'missing'}`
    if (first.transition === null) return 'the first entry does not say which start it came from'
    const other = entries.findLast(({ kind }) => kind === 'started')
    return other === first ? null : `entry ${other?.seq} is another start`
  },
}

export const baseIsInput: RunInvariant = {
  name: 'base_is_input',
  kind: 'S',
  about:
    'The `base` of a run is its last `started` or `continued` entry, or a snapshot after it, and the run is of the type and version that it names.',
  check({ run, entries }) {
    const input = entries.findLast((entry) => isKind(entry, 'started', 'continued'))
    const isSnapshot = input !== undefined && run.base > input.seq && entries[run.base - 1]?.kind === 'snapshot'
    if (input?.seq !== run.base && !isSnapshot) {
      return `base is ${run.base}, and the last input is entry ${input?.seq ?? 'none'}`
    }
    if (input === undefined || !isKind(input, 'continued')) return null
    const { type, version } = input.meta
    const isSame = type === run.type && version === run.version
    return isSame ? null : `it goes on as ${type} ${version}, and the row says ${run.type} ${run.version}`
  },
}

const written = ['succeeded', 'failed', 'cancelled', 'paused'] as const

export const stateIsFold: RunInvariant = {
  name: 'state_is_fold',
  kind: 'S',
  about: 'A run is over, or paused, exactly if its last entry says so.',
  check({ run: { status }, entries }) {
    const last = entries.at(-1)?.kind
    const message = written.find((kind) => kind === last)
    const found = written.find((kind) => kind === status)
    return message === found ? null : `it is ${status}, and its last entry is ${last ?? 'missing'}`
  },
}

export const undoIsFold: RunInvariant = {
  name: 'undo_is_fold',
  kind: 'S',
  about:
    'The `undo` state of a run follows from its journal since its `base`; a cancellation may make it due without an entry.',
  check(state) {
    const { undo, status } = state.run
    const folded = foldedUndo(sinceBase(state))
    if (undo === folded) return null
    // A holder that takes over a cancellation, or ends it, need not write that it began.
    const isCancelled = status === 'cancelling' || status === 'cancelled'
    if (isCancelled && undo === 'due' && folded === 'possible') return null
    return `undo is ${undo}, and the journal says ${folded}`
  },
}

function foldedUndo(entries: readonly Entry[]): UndoState {
  let undo: UndoState = 'none'
  for (const entry of entries) {
    if (isKind(entry, 'failing', 'cancelling')) return 'due'
    if (delaysEnd(entry)) undo = 'possible'
  }
  return undo
}

export const oneOutcome: RunInvariant = {
  name: 'one_outcome',
  kind: 'S',
  about: 'A step has one outcome since the `base` of its run, unless a repair dropped an earlier one.',
  check(state) {
    const twice = firstTwice(outcomesOf(sinceBase(state), 'step-succeeded', 'step-failed').map(({ name }) => name))
    return twice === undefined ? null : `step ${twice} has two outcomes`
  },
}

export const amendsOutcome: RunInvariant = {
  name: 'amends_outcome',
  kind: 'S',
  about: 'A repair names an earlier outcome of a step or a wait.',
  check({ entries }) {
    for (const entry of entries) {
      if (!isKind(entry, 'amended')) continue
      const repaired = entries.find(({ seq }) => seq === entry.meta.seq)
      const isOutcome = repaired !== undefined && isKind(repaired, 'step-succeeded', 'step-failed', 'woken')
      if (!isOutcome || repaired.seq >= entry.seq) return `entry ${entry.seq} repairs ${entry.meta.seq}`
    }
    return null
  },
}

export const cancelWinsOrLosesOnce: RunInvariant = {
  name: 'cancel_wins_or_loses_once',
  kind: 'S',
  about: 'A run ends once: after `succeeded`, `failed` or `cancelled` nothing follows but, after `failed`, a retry.',
  check({ entries }) {
    for (const [index, { kind, seq }] of entries.entries()) {
      if (!isEnd(kind)) continue
      const after = entries.slice(index + 1)
      if (after.length === 0) return null
      const next = after.find((entry) => !isKind(entry, 'amended'))
      if (kind !== 'failed' || next?.kind !== 'retried') return `${next?.kind ?? 'a repair'} follows ${kind} at ${seq}`
    }
    return null
  },
}

function isEnd(kind: Entry['kind']): boolean {
  return kind === 'succeeded' || kind === 'failed' || kind === 'cancelled'
}

/** The step of each undo, in the order of the undos. */
function undos(state: RunState): readonly { readonly name: string; readonly seq: number; readonly step: number }[] {
  const since = sinceBase(state)
  const steps = outcomesOf(since, 'step-succeeded', 'step-failed', 'abandoned').filter(({ meta }) => meta.undo === true)
  return since.flatMap((entry) => {
    if (!isKind(entry, 'undone', 'undo-failed')) return []
    const step = steps.findLast(({ name, seq }) => name === entry.name && seq < entry.seq)
    return [{ name: entry.name, seq: entry.seq, step: step?.seq ?? 0 }]
  })
}

export const undoNamesStep: RunInvariant = {
  name: 'undo_names_step',
  kind: 'S',
  about: 'Only a step that may have happened is undone, after its run began to fail or to be cancelled.',
  check(state) {
    const orphan = undos(state).find(({ step }) => step === 0)
    if (orphan !== undefined) return `entry ${orphan.seq} undoes ${orphan.name}, which is not recorded`
    const early = state.entries.find((entry) => isKind(entry, 'undone', 'undo-failed') && entry.seq < state.run.base)
    if (early !== undefined) return `entry ${early.seq} undoes something, and then the run continued as new`
    const { undo, status } = state.run
    const isDue = undo === 'due' || status === 'cancelling' || status === 'cancelled'
    return isDue || undos(state).length === 0 ? null : `something is undone of a run that is ${status}`
  },
}

export const undoOnce: RunInvariant = {
  name: 'undo_once',
  kind: 'S',
  about: 'Each step is undone, or its undo is given up, once.',
  check(state) {
    const twice = firstTwice(undos(state).map(({ name }) => name))
    return twice === undefined ? null : `${twice} is undone twice`
  },
}

export const undoInReverse: RunInvariant = {
  name: 'undo_in_reverse',
  kind: 'S',
  about: 'Steps are undone in the reverse order of their entries.',
  check(state) {
    const all = undos(state)
    const at = all.findIndex(({ step }, index) => index > 0 && step > (all[index - 1]?.step ?? 0))
    return at === -1 ? null : `${all[at]?.name} is undone after ${all[at - 1]?.name}, which came before it`
  },
}
