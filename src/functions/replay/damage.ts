// Signs that a journal was tampered with: rows that are not entries, and entries that do not belong to the call that they
// name. The run is then paused as it is, before its body is called.

import type { Entry } from '../../core/model/entry.ts'
import { bug } from '../../core/errors/error.ts'
import { isWinnerOf } from '../../core/model/wait-condition.ts'

/** An entry, as far as it matters when its payload cannot be read. */
export type RecordedPlace = Pick<Entry, 'name' | 'seq'>

export interface DamagedEntry {
  readonly entry: RecordedPlace
  readonly why: string
}

type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>

/** The input of a run. Of a row that is damaged nothing is read. */
export function inputOf(first: Entry | undefined): EntryOf<'started' | 'continued'> {
  if (first?.kind === 'started' || first?.kind === 'continued') return first
  if (first?.kind !== 'damaged') throw bug('A journal must begin with its input', { first })
  return { ...first, kind: 'started', name: null, meta: null, data: '' }
}

/** A wait can only be ended by one of its own conditions. */
export function damageOfWoken(waited: EntryOf<'waiting'>, woken: EntryOf<'woken'>): DamagedEntry | null {
  if (isWinnerOf(waited.meta.conditions, woken.meta)) return null
  return { entry: woken, why: 'the wait was ended by a condition that it does not have' }
}

/** A result is bound to the name of its entry, which is that of the step whose result it is. A wait is only ever dropped. */
export function damageOfAmended(
  outcome: { readonly kind: string; readonly name: string },
  amended: EntryOf<'amended'>,
): DamagedEntry | null {
  if (outcome.kind !== 'woken' && amended.name === outcome.name) return null
  return { entry: amended, why: 'the outcome that it repairs is another one' }
}
