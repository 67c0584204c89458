// Shows a body its recorded journal and says whether the two agree. Nothing is begun, written or sent.
//
// Entries that the end of a run brought about are taken out before, so that no undo work is ever begun: the body is replayed,
// and its end is compared with the recorded one. A cancellation, a timeout and a dead process are not caused by the body, and
// mean nothing here.

import { blankCompletionTokens } from '../../core/completion/blank-completion-tokens.ts'
import { jsonCodec } from '../../core/payload/codec.ts'
import type { Definition } from '../../core/definition/definition.ts'
import type { Entry } from '../../core/model/entry.ts'
import { isHoldfastError, type ErrorCode } from '../../core/errors/error.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import { nowhere } from '../../core/payload/place.ts'
import type { Run } from '../../core/model/run.ts'
import { isSameValue } from '../../core/payload/same-value.ts'
import type { BodyOutcome, ReplayResult } from './replay-result.ts'
import { replayInstance } from './replay-instance.ts'
import { replayDry, type Lent, type DryReplay } from './dry-replay.ts'

export type { Lent } from './dry-replay.ts'
export type { BodyOutcome, ReplayResult, UnfinishedBody } from './replay-result.ts'

/**
 * Replays a run against a definition of its type. `entries` is its whole journal, or all of it from its `base` on. Code of
 * the body outside of steps is executed, and its resources are acquired and released.
 */
export async function replayRun(
  definition: Definition,
  run: Run,
  entries: readonly Entry[],
  lent: Lent,
): Promise<ReplayResult> {
  if (definition.style === 'decider') return replayInstance(definition, run, entries, lent)
  const payloads = lent.payloads.inline()
  try {
    const journal = await fetched(run.id, presentIncarnation(entries), lent.payloads, payloads)
    const before = await readPast(run.id, journal, payloads)
    const shown = journal.filter(({ kind }) => !ofEnds.has(kind))
    const now = await replayDry(definition, run, shown, { ...lent, payloads })
    const isSame = typeof lent.tokenKey === 'string' ? isSameValue : isSameButForTokens
    return compare(before, now, isSame)
  } catch (error) {
    return { outcome: 'throws', error }
  }
}

function presentIncarnation(entries: readonly Entry[]): readonly Entry[] {
  const first = entries.findLastIndex(({ kind }) => kind === 'started' || kind === 'continued')
  return entries.slice(Math.max(first, 0))
}

/** The entries that an end leaves: the replayed body has not come to it. */
const ofEnds: ReadonlySet<Entry['kind']> = new Set([
  'failing',
  'cancelling',
  'undone',
  'undo-attempt-failed',
  'undo-failed',
  'succeeded',
  'failed',
  'cancelled',
])

/** These are never kept elsewhere, and are read as they stand. */
const staysInline: ReadonlySet<Entry['kind']> = new Set(['recorded', 'issued'])

/** The same entries with every payload at hand, so that nothing but the body can keep the replay waiting. */
async function fetched(
  runId: string,
  entries: readonly Entry[],
  from: Payloads,
  to: Payloads,
): Promise<readonly Entry[]> {
  const all: Entry[] = []
  for (const entry of entries) {
    const { kind, seq, name, data } = entry
    if (data === null || staysInline.has(kind)) all.push(entry)
    else all.push({ ...entry, data: await to.keep(await from.fetch(data), to.place(runId, seq, kind, name)) })
  }
  return all
}

/** How far the body came, according to its journal. */
interface Past {
  /** How the body ended; null if it did not, or if the run ended for another reason. */
  readonly end: BodyOutcome | null
  /** The last thing that the body did was to throw. */
  readonly hasThrown: boolean
  /** The last outcome that the body was shown. */
  readonly lastOutcome: number | null
}

/** The engine itself ends a run with these. */
const notOfBodies: readonly ErrorCode[] = [
  'RUN_TIMEOUT',
  'RUN_EXPIRED',
  'RUN_CRASHED',
  'RUN_EXISTS',
  'ENTRY_REJECTED',
  'PAYLOAD_CORRUPT',
  'BUG',
]

/** Entries that settle a call of the body. */
const settling: ReadonlySet<Entry['kind']> = new Set([
  'step-succeeded',
  'step-failed',
  'woken',
  'signal-sent',
  'broadcast-sent',
  'replied',
])

/** Entries of events from outside, during which the body stays where it is. */
const beside: ReadonlySet<Entry['kind']> = new Set([
  'begun',
  'abandoned',
  'crashed',
  'paused',
  'resumed',
  'retried',
  'amended',
  'cancelling',
  'cancelled',
  'undone',
  'undo-attempt-failed',
  'undo-failed',
])

async function readPast(runId: string, journal: readonly Entry[], payloads: Payloads): Promise<Past> {
  let [end, hasThrown, lastOutcome]: [Past['end'], boolean, Past['lastOutcome']] = [null, false, null]
  for (const entry of journal) {
    const { kind, seq, name, data } = entry
    const place = payloads.place(runId, seq, kind, name)
    const read = async (): Promise<unknown> => payloads.decode(await payloads.fetch(data ?? ''), place)
    if (kind === 'retried') end = null
    if (beside.has(kind)) continue
    hasThrown = kind === 'attempt-failed' && name === null
    if (settling.has(kind)) lastOutcome = seq
    if (kind === 'succeeded') end = { status: 'succeeded', output: await read() }
    if (kind !== 'failed' && kind !== 'failing') continue
    const error = await read()
    const isOfBody = !isHoldfastError(error) || !notOfBodies.includes(error.code)
    end = isOfBody ? { status: 'failed', error } : null
    hasThrown = isOfBody
  }
  return { end, hasThrown, lastOutcome }
}

function compare({ end, hasThrown, lastOutcome }: Past, now: DryReplay, isSame: typeof isSameValue): ReplayResult {
  if (now.status === 'drifted') return { outcome: 'drift', drift: now.drift }
  if (now.status === 'failed' && isHoldfastError(now.error, 'PAYLOAD_CORRUPT')) {
    return { outcome: 'throws', error: now.error }
  }
  if (end !== null) {
    if (end.status === 'succeeded' && now.status === 'succeeded' && isSame(end.output, now.output)) return same
    if (end.status === 'failed' && now.status === 'failed') return same
    return { outcome: 'ends-otherwise', recorded: end, now }
  }
  if (now.status !== 'failed') return same
  // The step has just failed for good, and its run was about to: that is no difference of this code.
  const isExpected = now.cause !== null && now.cause === lastOutcome
  return hasThrown || isExpected ? same : { outcome: 'throws', error: now.error }
}

/** Without the key of the tokens, a body gets other tokens than those in its recorded result. */
function isSameButForTokens(one: unknown, other: unknown): boolean {
  if (isSameValue(one, other)) return true
  const codec = jsonCodec()
  const blanked = (value: unknown): string => blankCompletionTokens(codec.encode(value, nowhere))
  return blanked(one) === blanked(other)
}

const same: ReplayResult = { outcome: 'same' }
