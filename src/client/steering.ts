// What people do to runs from outside: cancel, pause, let go on, remove. The store decides by the rules of the core; here
// its answers become outcomes and errors, and a run that moves in this process learns of it at once.

import { HoldfastError, isHoldfastError } from '../core/error.ts'
import { growingPauses } from '../core/pause.ts'
import { isTerminal, type PauseReason, type Run, type RunStatus } from '../core/run.ts'
import type { CancelMode, Steer, Steered, SteerRefusal, SteerRequest } from '../core/steering.ts'
import { checkOptions, didYouMean, shown } from '../core/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import { noMail } from '../engine/mail.ts'
import { amendments, causeOf, type Amendment } from './amending.ts'
import { runNotFound } from './run-reference.ts'

export interface CancelOptions {
  /**
   * `cooperative`: what is being done may end and is recorded, then everything is undone. `now`: the run is cancelled at
   * once, nothing is undone, and whatever its holder still does is not recorded. @default 'cooperative'
   */
  readonly mode?: CancelMode
  /** Why; it stands in the journal. */
  readonly reason?: string
}

export interface Cancelled {
  /** `cancelling`: its holder stops it and undoes what there is to undo. */
  readonly outcome: 'cancelled' | 'cancelling' | 'already-ended'
  readonly status: RunStatus
}

export interface PauseOptions {
  /** @default 'operator' */
  readonly reason?: PauseReason
  /** Why, in words; it stands in the journal. */
  readonly note?: string
}

export interface Paused {
  /** `pausing`: it is being performed, and stops at its next checkpoint. */
  readonly outcome: 'paused' | 'pausing'
  readonly status: RunStatus
}

export interface ResumeOptions {
  readonly note?: string
  /** Repairs of the journal: an outcome that counts no more, or another result in its place. */
  readonly amend?: readonly Amendment[]
}

export interface NoteOptions {
  readonly note?: string
}

/** What became of a run that was let go on. */
export interface Revived<Outcome> {
  readonly outcome: Outcome
  readonly status: RunStatus
}

export interface RemoveOptions {
  readonly reason?: string
}

const longestText = 1_000

export async function cancelRun(engine: Engine, id: string, options: CancelOptions = {}): Promise<Cancelled> {
  return cancelledOf(id, await steerOne(engine, { ...cancelRequest(options), ...named(engine, id) }))
}

/** What the answer to a cancellation means. Throws RUN_NOT_FOUND. */
export function cancelledOf(id: string, given: Steered): Cancelled {
  const answer = found(id, given)
  const { status } = answer.run
  if (answer.outcome === 'refused') return { outcome: 'already-ended', status }
  return { outcome: status === 'cancelled' ? 'cancelled' : 'cancelling', status }
}

export function cancelRequest(options: CancelOptions): Steer {
  checkOptions(options, ['mode', 'reason'], 'cancel()')
  const { mode = 'cooperative', reason } = options
  if (mode !== 'cooperative' && mode !== 'now') {
    throw new HoldfastError('INVALID_OPTION', `cancel({ mode }) is 'cooperative' or 'now'. Got ${shown(mode)}.`)
  }
  return { kind: 'cancel', mode, reason: textOf(reason, 'reason') }
}

export async function pauseRun(engine: Engine, id: string, options: PauseOptions = {}): Promise<Paused> {
  checkOptions(options, ['reason', 'note'], 'pause()')
  const { reason = 'operator', note } = options
  if (reason !== 'operator' && reason !== 'maintenance') {
    const known = ['operator', 'maintenance']
    throw new HoldfastError(
      'INVALID_OPTION',
      `pause({ reason }) is 'operator' or 'maintenance'; say more in a note. Got ${shown(reason)}.` +
        didYouMean(reason, known),
    )
  }
  const request = { kind: 'pause', reason, note: textOf(note, 'note'), ...named(engine, id) } as const
  const answer = granted(id, await steerOne(engine, request), 'paused')
  return { outcome: answer.outcome === 'done' ? 'paused' : 'pausing', status: answer.run.status }
}

export async function resumeRun(engine: Engine, id: string, options: ResumeOptions = {}): Promise<Revived<'resumed'>> {
  checkOptions(options, ['note', 'amend'], 'resume()')
  const note = textOf(options.note, 'note')
  const { amend, seq } = await amendments(engine, id, options.amend ?? [])
  const answer = granted(
    id,
    await steerOne(engine, { kind: 'resume', note, amend, seq, ...named(engine, id) }),
    'resumed',
  )
  return { outcome: 'resumed', status: answer.run.status }
}

export async function retryRun(engine: Engine, id: string, options: NoteOptions = {}): Promise<Revived<'retried'>> {
  checkOptions(options, ['note'], 'retry()')
  const [run] = await engine.store.get([id])
  if (run === undefined) throw runNotFound(id)
  const [request] = await retryRequests(engine, [run], options)
  if (request === undefined) throw wrongStatus(run, 'not-failed', 'retried')
  const answer = granted(id, await steerOne(engine, request), 'retried')
  return { outcome: 'retried', status: answer.run.status }
}

/** Requests to retry those that failed: the outcome that ended each of them is dropped, so that it comes anew. */
export async function retryRequests(
  engine: Engine,
  runs: readonly Run[],
  { note }: NoteOptions,
): Promise<readonly SteerRequest[]> {
  const failed = runs.filter(({ status }) => status === 'failed')
  const loaded = await engine.store.load(
    failed.map(({ id, seq }) => ({ runId: id, after: seq - 1, limit: 1, mail: noMail })),
  )
  return failed.map(({ id, seq }, index) => {
    const cause = causeOf(loaded[index]?.entries[0])
    const drop = { kind: 'amended', name: null, data: null } as const
    const amend = cause === null ? [] : [{ ...drop, meta: { seq: cause, dropped: true } }]
    return { kind: 'retry', note: textOf(note, 'note'), amend, seq, ...named(engine, id) }
  })
}

export async function removeRun(engine: Engine, id: string, options: RemoveOptions = {}): Promise<void> {
  checkOptions(options, ['reason'], 'remove()')
  const request = { kind: 'remove', reason: textOf(options.reason, 'reason'), ...named(engine, id) } as const
  granted(id, await steerOne(engine, request), 'removed')
}

async function steerOne(engine: Engine, request: SteerRequest): Promise<Steered> {
  const [answer] = await steerAll(engine, [request])
  return answer as Steered
}

const tries = 5

/** Steers, and tells whoever in this process must know. A store that is away is asked again under the same ids. */
export async function steerAll(engine: Engine, requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
  engine.assertOpen()
  const pause = growingPauses(engine.ports)
  let answers: readonly Steered[] | null = null
  for (let attempt = 1; answers === null; attempt += 1) {
    try {
      answers = await engine.store.steer(requests)
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || attempt === tries) throw error
      await pause()
    }
  }
  let isReady = false
  for (const answer of answers) {
    if (answer.outcome !== 'done' && answer.outcome !== 'wished') continue
    engine.desk?.steered(answer.run)
    if (isTerminal(answer.run.status)) engine.endings.hinted(answer.run.id)
    isReady ||= answer.run.readiness === 'ready'
  }
  if (isReady) engine.onReady()
  return answers
}

function named(engine: Engine, runId: string): { readonly id: string; readonly runId: string } {
  return { id: engine.transitionId(), runId }
}

function found(id: string, answer: Steered): Exclude<Steered, { outcome: 'not-found' }> {
  if (answer.outcome === 'not-found') throw runNotFound(id)
  return answer
}

function granted(id: string, given: Steered, done: string): Extract<Steered, { outcome: 'done' | 'wished' }> {
  const answer = found(id, given)
  if (answer.outcome === 'refused') throw wrongStatus(answer.run, answer.reason, done)
  if (answer.outcome === 'key-taken') {
    throw new HoldfastError(
      'RUN_EXISTS',
      `Run ${id} cannot be ${done}: run ${answer.by} is live and has its key ${shown(answer.run.key)}. ` +
        'Wait for its end, or cancel it.',
      { details: { runId: answer.by, key: answer.run.key } },
    )
  }
  return answer
}

const hints: Readonly<Record<SteerRefusal, string>> = {
  ended: 'Nothing moves a run that is over.',
  cancelling: 'No way leads back from a cancellation.',
  'not-paused': 'Only a paused run can be resumed.',
  'not-failed': 'Only a failed run can be retried.',
  undone: 'What its steps did was undone: start a new run.',
  changed: 'Its journal has moved on since it was read: look again.',
  deleted: 'It was removed: start a new run.',
}

function wrongStatus(run: Run, reason: SteerRefusal, done: string): HoldfastError {
  return new HoldfastError('WRONG_STATUS', `Run ${run.id} is ${run.status} and cannot be ${done}. ${hints[reason]}`, {
    details: { runId: run.id, status: run.status, reason },
  })
}

/** Half of a pair cannot be encoded, and a database may take NUL for an end. */
function isStorable(text: string): boolean {
  return !text.includes('\0') && !/\p{Surrogate}/u.test(text)
}

function textOf(text: string | undefined, what: string): string | null {
  if (text === undefined) return null
  if (typeof text === 'string' && text.length <= longestText && isStorable(text)) return text
  throw new HoldfastError('INVALID_OPTION', `The ${what} must be a text of at most ${longestText} characters.`)
}
