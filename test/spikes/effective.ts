// The journal as it counts: what was dropped does not exist.

import type { Entry } from '../../src/core/model/entry.ts'

/** The journal without what was dropped, nor the attempts that led there. */
export function effective(entries: readonly Entry[]): readonly Entry[] {
  const dropped = new Map<string | null, number>()
  for (const { kind, meta } of entries) {
    if (kind !== 'amended' || !meta.dropped) continue
    const entry = entries.find(({ seq }) => seq === meta.seq)
    if (entry !== undefined) dropped.set(entry.name, entry.seq)
  }
  const isDropped = ({ kind, name, seq }: Entry): boolean => {
    const last = dropped.get(name)
    return last !== undefined && (seq === last || (seq < last && kind === 'attempt-failed'))
  }
  return dropped.size === 0 ? entries : entries.filter((entry) => !isDropped(entry))
}
