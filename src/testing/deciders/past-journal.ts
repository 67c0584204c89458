// The journal of an instance to which some events have happened, as one decided input. Events are those of this code, or kept
// ones that older code has written.

import { isPlainObject } from '../../core/text/suggest.ts'
import type { Entry } from '../../core/model/entry.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import type { DeciderRules } from '../../deciders/rules.ts'
import { versionOf } from '../../deciders/past/past.ts'

/** An event as older code wrote it: its version, and its form and type at that time. */
export interface KeptEvent {
  readonly version: number
  readonly event: { readonly type: string; readonly [field: string]: unknown }
}

/** What is known of the instance. */
export interface KnownPast {
  /** Events of this code, or kept ones. */
  readonly events: readonly unknown[]
  /** The keys of timers that are set and not due. */
  readonly timers: readonly string[]
}

export const testRunId = '00000000-0000-7000-8000-000000000000'

/** No timer of the past is due. */
const laterMs = 365 * 86_400_000

export function journalOf(
  { events, timers }: KnownPast,
  { past }: Pick<DeciderRules, 'past'>,
  { payloads, at }: { readonly payloads: Payloads; readonly at: number },
): readonly Entry[] {
  const drafts = [
    { kind: 'started', name: null, meta: null, value: null },
    { kind: 'input', name: null, meta: { from: { kind: 'start' }, outcome: 'accepted' } },
    ...events.map((given) => {
      const { event, version } = isKept(given) ? given : { event: given as KeptEvent['event'], version: null }
      const meta = { version: version ?? versionOf(past, event.type) }
      return { kind: 'event', name: event.type, meta, value: event } as const
    }),
    ...timers.map((key) => ({ kind: 'timer', name: key, meta: { at: null, afterMs: laterMs }, value: null }) as const),
  ] as const
  return drafts.map((draft, index) => {
    const seq = index + 1
    const { kind, name, meta } = draft
    const data = 'value' in draft ? payloads.encode(draft.value, payloads.place(testRunId, seq, kind, name)) : null
    return { kind, name, meta, data, seq, at, transition: seq === 1 ? 'given' : null } as Entry
  })
}

function isKept(given: unknown): given is KeptEvent {
  if (!isPlainObject(given) || 'type' in given) return false
  const { version, event } = given as Partial<KeptEvent>
  return Number.isSafeInteger(version) && isPlainObject(event)
}
