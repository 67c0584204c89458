// Control of single runs: cancel, pause, resume, retry, remove. The store decides by the rules of the core; here its answers become
// outcomes and errors, and a run that is performed in this process learns of its command at once.

import { formatMs } from '../../core/definition/duration.ts'
import { HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import { createBackoff, withTimeout } from '../../core/runtime/backoff.ts'
import { isTerminal, type PauseReason, type Run, type RunStatus } from '../../core/model/run.ts'
import type { Busy } from '../../store.ts'
import type { CancelMode, PauseNote, Control, ControlResult, ControlCommand } from '../../core/rules/control.ts'
import { checkOptions, didYouMean, shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { lastEntryRequests } from '../../engine/store/journal-pages.ts'
import { amendments, causeOf, type Amendment } from './amend.ts'
import { abortable, checkAbortSignal, type AbortOption } from '../abort-option.ts'
import { runNotFound } from '../run-reference.ts'
import { found, granted, wrongStatus } from './control-errors.ts'

export interface CancelOptions extends AbortOption {
  /**
   * `cooperative`: steps under way may end and are recorded, then everything is undone. `now`: the run is cancelled at
   * once, nothing is undone, and what its holder still does is not recorded. @default 'cooperative'
   */
  readonly mode?: CancelMode
  /** Why; it stands in the journal. */
  readonly reason?: string
}

export interface CancelOutcome {
  /** `cancelling`: its holder stops it and undoes its steps. */
  readonly outcome: 'cancelled' | 'cancelling' | 'already-ended'
  readonly status: RunStatus
}

export interface PauseOptions extends AbortOption {
  /** @default 'operator' */
  readonly reason?: Exclude<PauseReason, 'crashes'>
  /** Why, in words; it stands in the journal. */
  readonly note?: string
}

export interface PauseOutcome {
  /** `pausing`: it is being performed, and stops at its next checkpoint. */
  readonly outcome: 'paused' | 'pausing'
  readonly status: RunStatus
}

export interface ResumeOptions extends AbortOption {
  readonly note?: string
  /** Repairs of the journal: each drops an outcome, or puts another result in its place. */
  readonly amend?: readonly Amendment[]
}

export interface NoteOptions extends AbortOption {
  readonly note?: string
}

export type ResumeOutcome = { readonly outcome: 'resumed'; readonly status: RunStatus }
export type RetryOutcome = { readonly outcome: 'retried'; readonly status: RunStatus }

export interface RemoveOptions extends AbortOption {
  readonly reason?: string
}

const longestText = 1_000

/** @internal */
export async function cancelRun(engine: Engine, id: string, options: CancelOptions = {}): Promise<CancelOutcome> {
  const request = { ...cancelRequest(options), ...named(engine, id) }
  return cancelledOf(id, await controlOne(engine, request, options))
}

/** The outcome of a cancellation. Throws RUN_NOT_FOUND. */
export function cancelledOf(id: string, given: ControlResult): CancelOutcome {
  const answer = found(id, given)
  const { status } = answer.run
  if (answer.outcome === 'refused') return { outcome: 'already-ended', status }
  return { outcome: status === 'cancelled' ? 'cancelled' : 'cancelling', status }
}

export function cancelRequest(options: CancelOptions): Control {
  checkOptions(options, ['mode', 'reason', 'abortSignal'], 'cancel()')
  const { mode = 'cooperative', reason } = options
  if (mode !== 'cooperative' && mode !== 'now') {
    throw new HoldfastError('INVALID_OPTION', `cancel({ mode }) is 'cooperative' or 'now'. Got ${shown(mode)}.`)
  }
  return { kind: 'cancel', mode, reason: textOf(reason, 'reason') }
}

/** @internal */
export async function pauseRun(engine: Engine, id: string, options: PauseOptions = {}): Promise<PauseOutcome> {
  checkOptions(options, ['reason', 'note', 'abortSignal'], 'pause()')
  const { reason, text } = pauseRequest(options)
  const controlled = await steerAt(engine, id, text, options, (seq) => ({
    kind: 'pause',
    reason,
    ...pauseNote(engine, id, seq, text),
  }))
  const answer = granted(id, controlled, 'paused')
  return { outcome: answer.outcome === 'done' ? 'paused' : 'pausing', status: answer.run.status }
}

/** Pauses, all with the same reason and note. @internal */
export function pauseRequests(
  engine: Engine,
  options: PauseOptions,
): (runs: readonly Run[]) => readonly ControlCommand[] {
  const { reason, text } = pauseRequest(options)
  const isBound = text !== null && engine.payloads.areBound
  return (runs) =>
    runs.map(({ id, seq }) => {
      const said = pauseNote(engine, id, isBound ? seq : null, text)
      return { kind: 'pause', reason, ...said, ...named(engine, id) }
    })
}

interface PauseRequest {
  readonly reason: PauseReason
  readonly text: string | null
}

function pauseRequest({ reason = 'operator', note }: PauseOptions): PauseRequest {
  if (reason !== 'operator' && reason !== 'maintenance') {
    const known = ['operator', 'maintenance']
    throw new HoldfastError(
      'INVALID_OPTION',
      `pause({ reason }) is 'operator' or 'maintenance'; say more in a note. Got ${shown(reason)}.` +
        didYouMean(reason, known),
    )
  }
  return { reason, text: textOf(note, 'note') }
}

function pauseNote({ payloads }: Engine, id: string, seq: number | null, text: string | null): PauseNote {
  if (seq === null) return { note: text }
  return { ...payloads.note(id, seq + 1, 'paused', text), requestNote: payloads.requestNote(id, seq + 1, text), seq }
}

/** How often a run is read again that has moved on since its `seq` was read. */
const looks = 10

/**
 * Sends a command that may have to name the `seq` of the run, because its note is encrypted for an entry: null if it need not.
 */
async function steerAt(
  engine: Engine,
  id: string,
  note: string | null,
  options: AbortOption,
  requestAt: (seq: number | null) => Control,
): Promise<ControlResult> {
  const isBound = note !== null && engine.payloads.areBound
  for (let look = 1; ; look += 1) {
    const [run] = isBound ? await abortable('This call', options.abortSignal, () => engine.store.get([id])) : []
    if (isBound && run === undefined) throw runNotFound(id)
    const answer = await controlOne(engine, { ...requestAt(run?.seq ?? null), ...named(engine, id) }, options)
    const hasChanged = answer.outcome === 'refused' && answer.reason === 'changed'
    if (!isBound || !hasChanged || look === looks) return answer
  }
}

/** @internal */
export async function resumeRun(engine: Engine, id: string, options: ResumeOptions = {}): Promise<ResumeOutcome> {
  checkOptions(options, ['note', 'amend', 'abortSignal'], 'resume()')
  const note = textOf(options.note, 'note')
  const { amend, seq } = await abortable('resume()', options.abortSignal, () =>
    amendments(engine, id, options.amend ?? []),
  )
  const resumeAt = (at: number | null): Control => {
    const said = at === null ? { note } : engine.payloads.note(id, at + amend.length + 1, 'resumed', note)
    return { kind: 'resume', ...said, amend, seq: at }
  }
  const controlled =
    seq === null
      ? await steerAt(engine, id, note, options, resumeAt)
      : await controlOne(engine, { ...resumeAt(seq), ...named(engine, id) }, options)
  const answer = granted(id, controlled, 'resumed')
  return { outcome: 'resumed', status: answer.run.status }
}

/** Resumptions without repairs, all with the same note. @internal */
export function resumeRequests(
  engine: Engine,
  note: string | undefined,
): (runs: readonly Run[]) => readonly ControlCommand[] {
  const text = textOf(note, 'note')
  const isBound = text !== null && engine.payloads.areBound
  return (runs) =>
    runs.map(({ id, seq }) => {
      const said = engine.payloads.note(id, seq + 1, 'resumed', text)
      return { kind: 'resume', ...said, amend: [], seq: isBound ? seq : null, ...named(engine, id) }
    })
}

/** @internal */
export async function retryRun(engine: Engine, id: string, options: NoteOptions = {}): Promise<RetryOutcome> {
  checkOptions(options, ['note', 'abortSignal'], 'retry()')
  const { abortSignal } = options
  const [run] = await abortable('retry()', abortSignal, () => engine.store.get([id]))
  if (run === undefined) throw runNotFound(id)
  const [request] = await abortable('retry()', abortSignal, () => retryRequests(engine, [run], options))
  if (request === undefined) throw wrongStatus(run, 'not-failed', 'retried')
  const answer = granted(id, await controlOne(engine, request, options), 'retried')
  return { outcome: 'retried', status: answer.run.status }
}

/** Requests to retry those that failed: the outcome that ended each of them is dropped, so that it comes anew. @internal */
export async function retryRequests(
  engine: Engine,
  runs: readonly Run[],
  { note }: NoteOptions,
): Promise<readonly ControlCommand[]> {
  const failed = runs.filter(({ status }) => status === 'failed')
  const loaded = await engine.store.load(lastEntryRequests(failed))
  return failed.map(({ id, seq }, index) => {
    const cause = causeOf(loaded[index]?.entries[0])
    const drop = { kind: 'amended', name: null, data: null } as const
    const amend = cause === null ? [] : [{ ...drop, meta: { seq: cause, dropped: true } }]
    const said = engine.payloads.note(id, seq + amend.length + 1, 'retried', textOf(note, 'note'))
    return { kind: 'retry', ...said, amend, seq, ...named(engine, id) }
  })
}

/** @internal */
export async function removeRun(engine: Engine, id: string, options: RemoveOptions = {}): Promise<void> {
  checkOptions(options, ['reason', 'abortSignal'], 'remove()')
  const request = { ...removeRequest(options), ...named(engine, id) }
  granted(id, await controlOne(engine, request, options), 'removed')
}

export function removeRequest({ reason }: RemoveOptions): Control {
  return { kind: 'remove', reason: textOf(reason, 'reason') }
}

async function controlOne(engine: Engine, request: ControlCommand, options: AbortOption): Promise<ControlResult> {
  const [answer] = (await controlAll(engine, [request], options)) as [ControlResult | Busy]
  if (answer.outcome !== 'busy') return answer
  throw new HoldfastError(
    'STORE_UNAVAILABLE',
    `Another transaction has locked run ${request.runId}. Try again when that transaction is over.`,
    { details: { runId: request.runId } },
  )
}

/**
 * Sends commands to the store, and notifies the worker of this process. A run that stays locked for about the storage timeout is
 * answered `busy`; with `waitsForLocks: false`, every locked run is, at once.
 * @internal
 */
export async function controlAll(
  engine: Engine,
  requests: readonly ControlCommand[],
  options: AbortOption,
  { waitsForLocks = true } = {},
): Promise<readonly (ControlResult | Busy)[]> {
  engine.assertOpen()
  const abortSignal = checkAbortSignal(options.abortSignal)
  return answeredInTime(engine, abortSignal, (isPending) =>
    tryToControl(engine, requests, { waitsForLocks, isPending }),
  )
}

function notifyLocalWorker(engine: Engine, answers: readonly (ControlResult | Busy)[]): void {
  let isReady = false
  for (const answer of answers) {
    if (answer.outcome !== 'done' && answer.outcome !== 'requested') continue
    engine.localWorker?.controlled(answer.run)
    if (isTerminal(answer.run.status) || answer.run.deletedAt !== null) engine.runEnds.hinted(answer.run.id)
    isReady ||= answer.run.readiness === 'ready'
  }
  if (isReady) engine.onReady()
}

const tries = 5

/** For this part of the storage timeout a locked run is asked for again: the last answer takes time, too. */
const partForLocks = 0.9
/** A run that is locked for long is asked for a few times a second. */
const pausesForLocks = { firstMs: 10, longestMs: 250 } as const

interface Tries {
  readonly waitsForLocks: boolean
  readonly isPending: () => boolean
}

/**
 * Asks an unavailable store again under the same ids, and so for runs that another transaction has locked, without the others.
 * Locked runs are given up shortly before the storage timeout: `busy` is an answer, and the timeout would be none.
 */
async function tryToControl(
  engine: Engine,
  requests: readonly ControlCommand[],
  { waitsForLocks, isPending }: Tries,
): Promise<readonly (ControlResult | Busy)[]> {
  const { clock } = engine.ports
  const pause = createBackoff(engine.ports, pausesForLocks)
  const end = clock.monotonic() + (waitsForLocks ? partForLocks * engine.storageMs : 0)
  const answers = new Map<ControlCommand, ControlResult | Busy>()
  let open = requests
  for (let failures = 0; open.length > 0;) {
    try {
      const pending = open
      const sent = await engine.store.control(pending)
      sent.forEach((answer, at) => answers.set(pending[at] as ControlCommand, answer))
      notifyLocalWorker(engine, sent)
      open = pending.filter((request) => answers.get(request)?.outcome === 'busy')
    } catch (error) {
      failures += 1
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || failures === tries || !isPending()) throw error
    }
    const leftMs = Math.ceil(end - clock.monotonic())
    const isOver = answers.size > 0 && leftMs <= 0
    if (open.length === 0 || isOver || !isPending()) break
    await (leftMs > 0 ? withTimeout(clock, leftMs, pause()) : pause())
  }
  return requests.map((request) => answers.get(request) as ControlResult | Busy)
}

/** Settles as the work does, or rejects when the storage timeout is over or the signal fires. */
function answeredInTime<Answer>(
  engine: Engine,
  abortSignal: AbortSignal | undefined,
  work: (isPending: () => boolean) => Promise<Answer>,
): Promise<Answer> {
  if (abortSignal?.aborted === true) return Promise.reject(unanswered(false, 'its abortSignal has fired', abortSignal))
  return new Promise((resolve, reject) => {
    let isPending = true
    const over = (): void => {
      isPending = false
      cancel()
      abortSignal?.removeEventListener('abort', aborted)
    }
    const rejectAsUnknown = (why: string): void => {
      over()
      reject(unanswered(true, why, abortSignal))
    }
    const aborted = (): void => rejectAsUnknown('its abortSignal fired')
    const { storageMs } = engine
    const cancel = engine.ports.clock.after(storageMs, () => rejectAsUnknown(`${formatMs(storageMs)} had passed`))
    abortSignal?.addEventListener('abort', aborted, { once: true })
    work(() => isPending)
      .then(resolve, reject)
      .finally(over)
  })
}

function unanswered(sent: boolean, why: string, abortSignal: AbortSignal | undefined): HoldfastError {
  const message = sent
    ? `The store had not answered when ${why}. The command may or may not have taken effect; look at the run before you repeat it.`
    : `No command was sent, because ${why}.`
  return new HoldfastError('STORE_UNAVAILABLE', message, { cause: abortSignal?.reason as unknown, details: { sent } })
}

function named(engine: Engine, runId: string): { readonly id: string; readonly runId: string } {
  return { id: engine.transitionId(), runId }
}

/** A lone surrogate cannot be encoded, and a database may take NUL for the end of a text. */
function isStorable(text: string): boolean {
  return !text.includes('\0') && !/\p{Surrogate}/u.test(text)
}

function textOf(text: string | undefined, what: string): string | null {
  if (text === undefined) return null
  if (typeof text === 'string' && text.length <= longestText && isStorable(text)) return text
  throw new HoldfastError('INVALID_OPTION', `The ${what} must be a text of at most ${longestText} characters.`)
}
