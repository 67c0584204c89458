// The findings of replays, grouped: runs that disagree with the code in the same way are one finding. The number of kept
// findings is bounded, however many runs there are.

import { isHoldfastError, messageOf, type HoldfastError } from '../../core/errors/error.ts'
import type { BodyOutcome, ReplayResult, UnfinishedBody } from '../../engine/replay/replay-run.ts'
import { disagreementOf } from '../../engine/replay/replay-mismatch.ts'
import { visible } from '../../core/text/printable.ts'
import { amount } from './text.ts'

/**
 * The kind of disagreement: that of `holdfast.replay`, or that there is no such workflow, or that a payload or an event cannot be
 * read.
 */
export type FindingKind =
  Exclude<ReplayResult['outcome'], 'same'> | 'unknown-workflow' | 'unreadable' | 'unreadable-event'

export interface Finding {
  readonly kind: FindingKind
  readonly type: string
  readonly version: number
  /** How many runs have it. */
  runs: number
  /** Some of them, the first that were found. */
  readonly ids: string[]
  /** The difference, of the first of them. */
  readonly message: string
}

interface Judged {
  readonly id: string
  readonly type: string
  readonly version: number
}

const mostFindings = 200
const mostIds = 100
const idsShown = 3

export class Findings {
  /** How many runs disagree. */
  runs = 0
  /** Runs that disagree in further ways, which are not kept. */
  unlisted = 0
  private readonly byKey = new Map<string, Finding>()

  get all(): readonly Finding[] {
    return [...this.byKey.values()].toSorted((one, other) => other.runs - one.runs)
  }

  /** Adds the result of a replay. */
  add(run: Judged, replayed: ReplayResult | HoldfastError): void {
    const found = findingOf(run, replayed)
    if (found === null) return
    this.runs += 1
    const key = JSON.stringify([run.type, run.version, found.kind, found.sameAs.replaceAll(run.id, '')])
    const known = this.byKey.get(key)
    if (known !== undefined) {
      known.runs += 1
      if (known.ids.length < mostIds) known.ids.push(run.id)
    } else if (this.byKey.size < mostFindings) {
      const { type, version } = run
      this.byKey.set(key, { kind: found.kind, type, version, runs: 1, ids: [run.id], message: found.message })
    } else this.unlisted += 1
  }
}

interface Found {
  readonly kind: FindingKind
  /** Runs with the same value have the same finding. */
  readonly sameAs: string
  readonly message: string
}

function findingOf(run: Judged, replayed: ReplayResult | HoldfastError): Found | null {
  if (isHoldfastError(replayed)) return { kind: 'unknown-workflow', sameAs: '', message: replayed.message }
  switch (replayed.outcome) {
    case 'same':
      return null
    case 'drift': {
      const { recorded, found, message } = replayed.drift
      const sameAs = JSON.stringify([recorded.kind, recorded.name, found])
      // The first line says what drift is, the last what to do with a run that is paused for it.
      return { kind: 'drift', sameAs, message: message.split('\n').slice(1, -1).join('\n') }
    }
    case 'ends-otherwise': {
      const { recorded, now } = replayed
      return { kind: 'ends-otherwise', sameAs: endsOf(recorded, now), message: disagreement(run, replayed) }
    }
    case 'folds-otherwise':
      return { kind: 'folds-otherwise', sameAs: '', message: disagreement(run, replayed) }
    case 'throws':
      return thrown(run, replayed)
  }
}

function thrown(run: Judged, replayed: Extract<ReplayResult, { outcome: 'throws' }>): Found {
  const { error } = replayed
  const message = disagreement(run, replayed)
  if (isHoldfastError(error, 'EVENT_UNREADABLE')) return unreadableEvent(error, message)
  const isUnreadable = isHoldfastError(error, 'PAYLOAD_CORRUPT') || isHoldfastError(error, 'STORE_UNAVAILABLE')
  if (!isUnreadable) return { kind: 'throws', sameAs: messageOf(error), message }
  return { kind: 'unreadable', sameAs: JSON.stringify([error.code, error.details['reason']]), message }
}

/** Of an event whose text cannot be read, the text is the reason. Otherwise the code is. */
function unreadableEvent(error: HoldfastError, message: string): Found {
  const { cause } = error
  if (isHoldfastError(cause, 'PAYLOAD_CORRUPT')) {
    return { kind: 'unreadable', sameAs: JSON.stringify([cause.code, cause.details['reason']]), message }
  }
  return { kind: 'unreadable-event', sameAs: JSON.stringify([error.details['event'], messageOf(cause)]), message }
}

function disagreement(run: Judged, replayed: ReplayResult): string {
  return disagreementOf(run, replayed)?.message ?? ''
}

/** Outputs differ from run to run; how a run ends does not. */
function endsOf(recorded: BodyOutcome, now: BodyOutcome | UnfinishedBody): string {
  return `${recorded.status} ${now.status}`
}

const headings: Readonly<Record<FindingKind, string>> = {
  drift: 'would drift',
  throws: 'would fail',
  'ends-otherwise': 'would end otherwise',
  'unknown-workflow': 'would find no code',
  unreadable: 'cannot be read',
  'unreadable-event': 'have an event that this build cannot read',
  'folds-otherwise': 'would have another state',
}

/** A finding in a few lines, safe to print. */
export function findingLines({ kind, type, version, runs, ids, message }: Finding): readonly string[] {
  const which = ids.slice(0, idsShown).map(visible).join(', ')
  const such = runs === ids.slice(0, idsShown).length ? which : `for example ${which}`
  // The text of a drift has lines of ours; any other message may quote an error, and is one line.
  const text = kind === 'drift' ? message.split('\n') : [message]
  const lines = text.map((line) => `  ${visible(line)}`)
  return [`${amount(runs, 'run')} of ${visible(type)} v${version} ${headings[kind]}: ${such}`, ...lines]
}
