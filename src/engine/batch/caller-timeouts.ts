// How long callers wait for the items that they submitted to a batch.
//
//   waiting → sent      a flush that holds it goes to the store; from here on it may take effect
//   sent    → answered  the store has answered for it
//   waiting → given up  the store has not answered anything for the storage timeout, or the caller aborts: it is never sent
//   sent    → given up  this has had no answer for the storage timeout, or the caller aborts: it is not sent again, but may
//                       have taken effect
//
// A long queue in front of a store that answers is no reason to give up: each item waits for its turn. Nor is the item of
// another caller: a flush that took the store too long is cut into pieces (`slow-path.ts`), and the time of all its items
// counts anew from then on. The time of an item that goes alone does not: that is the item which takes too long, or one
// behind it. An item that is given up is rejected with STORE_UNAVAILABLE, which names the id under which it can be repeated.

import { Deferred } from '../../core/runtime/deferred.ts'
import { formatMs } from '../../core/definition/duration.ts'
import { bug, HoldfastError, isAboutStore, isHoldfastError, messageOf } from '../../core/errors/error.ts'
import type { Cancel, Clock } from '../../core/runtime/ports.ts'
import { isTooSlow } from '../../core/errors/too-slow.ts'
import type { BatchOptions } from '../../store.ts'
import type { Batcher } from './batcher.ts'
import type { Taker } from './lanes.ts'

/** The name of an item in errors, and how its caller repeats it without doing it twice. */
export interface Called {
  readonly what: string
  readonly again: string
  readonly details: Readonly<Record<string, unknown>>
}

/** A caller and its item. Callers form a list in the order in which they came: no map of them is kept. */
export class Caller<Given> implements Taker<unknown> {
  readonly given: Given
  readonly since: number
  private readonly callerTimeouts: CallerTimeouts<Given>
  /** The promise of the caller. */
  readonly answered = new Deferred<unknown>()
  /** When it first went to the store. */
  sentAt: number | null = null
  /** Since when it waits for an answer that no other caller's item delays. */
  countedFrom: number | null = null
  /** False once it has got its answer, or was rejected. */
  isWaiting = true
  deafen: Cancel | null = null
  before: Caller<Given> | null = null
  behind: Caller<Given> | null = null

  constructor(callerTimeouts: CallerTimeouts<Given>, given: Given, since: number) {
    this.callerTimeouts = callerTimeouts
    this.given = given
    this.since = since
  }

  resolve(result: unknown): void {
    this.callerTimeouts.leave(this)
    this.answered.resolve(result)
  }

  reject(error: unknown): void {
    this.fail(this.callerTimeouts.errorFor(this, error))
  }

  fail(error: unknown): void {
    this.callerTimeouts.leave(this)
    this.answered.reject(error)
  }
}

/** The answer of a flush for an item that was not done, because its caller gave up or the store refuses everything. */
export class NotDone {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

export interface CallerTimeoutsOptions<Given> {
  readonly clock: Clock
  readonly limitMs: () => number
  readonly called: (given: Given) => Called
}

export class CallerTimeouts<Given> {
  private readonly clock: Clock
  private readonly limitMs: () => number
  private readonly called: (given: Given) => Called
  private first: Caller<Given> | null = null
  private last: Caller<Given> | null = null
  /** When the store last answered a flush. */
  private answeredAt = Number.NEGATIVE_INFINITY
  /** The last error of the store since then. */
  private lastError: unknown = null
  private cancel: Cancel | null = null

  constructor({ clock, limitMs, called }: CallerTimeoutsOptions<Given>) {
    this.clock = clock
    this.limitMs = limitMs
    this.called = called
  }

  /**
   * Submits a value, as soon as there is room, as the item that `made` makes of its caller. Settles with its answer, or when
   * the caller waits no longer.
   */
  submit<Item, Answer, Result>(
    batcher: Batcher<Item, Answer, Result>,
    given: Given,
    made: (caller: Caller<Given>) => Item,
    abortSignal?: AbortSignal,
  ): Promise<Result> {
    if (abortSignal?.aborted === true) return Promise.reject(this.aborted(given, false, abortSignal))
    const caller = new Caller(this, given, this.clock.monotonic())
    if (abortSignal !== undefined) caller.deafen = this.hear(caller, abortSignal)
    this.enter(caller)
    if (batcher.isFull) void enterLater(batcher, caller, made)
    else batcher.enter(made(caller), caller)
    return caller.answered.promise as Promise<Result>
  }

  /**
   * Sends the items whose callers still wait. An error of the store that concerns all items rejects each caller at once;
   * sending them one by one would not help.
   */
  async flush<Answer>(
    callers: readonly Caller<Given>[],
    send: (given: readonly Given[]) => Promise<readonly Answer[]>,
    { mayWait = false, timeoutMs }: BatchOptions = {},
  ): Promise<readonly (Answer | NotDone)[]> {
    const now = this.clock.monotonic()
    const live: Given[] = []
    for (const caller of callers) {
      if (!caller.isWaiting) continue
      caller.sentAt ??= now
      caller.countedFrom ??= now
      live.push(caller.given)
    }
    const isWhole = live.length === callers.length
    const places = isWhole ? null : callers.map(({ isWaiting }) => isWaiting)
    if (live.length === 0) return callers.map(() => unwanted)
    try {
      const answers = await send(live)
      this.answeredAt = this.clock.monotonic()
      this.lastError = null
      if (answers.length !== live.length) throw bug(`${live.length} items got ${answers.length} answers`)
      if (places === null) return answers
      let at = 0
      return places.map((isLive) => (isLive ? (answers[at++] as Answer) : unwanted))
    } catch (error) {
      this.lastError = error
      const isCommon = callers.length > 1 && (!mayWait || timeoutMs !== undefined)
      if (isCommon && isTooSlow(error)) for (const caller of callers) caller.countedFrom = this.clock.monotonic()
      if (!isAboutStore(error)) throw error
      return callers.map(() => new NotDone(error))
    }
  }

  private readonly look = (): void => {
    this.cancel = null
    const now = this.clock.monotonic()
    const limitMs = this.limitMs()
    let nextMs = Number.POSITIVE_INFINITY
    for (let caller = this.first; caller !== null;) {
      const { behind, since, countedFrom } = caller
      const leftMs = (countedFrom ?? Math.max(since, this.answeredAt)) + limitMs - now
      if (leftMs > 0) nextMs = Math.min(nextMs, leftMs)
      else caller.fail(this.late(caller, limitMs))
      caller = behind
    }
    // At least one: a clock that lags behind its timers would let the same moment come again and again.
    if (nextMs < Number.POSITIVE_INFINITY) this.cancel = this.clock.after(Math.max(1, nextMs), this.look)
  }

  private hear(caller: Caller<Given>, abortSignal: AbortSignal): Cancel {
    const heard = (): void => {
      if (caller.isWaiting) caller.fail(this.aborted(caller.given, caller.sentAt !== null, abortSignal))
    }
    abortSignal.addEventListener('abort', heard, { once: true })
    return () => abortSignal.removeEventListener('abort', heard)
  }

  private enter(caller: Caller<Given>): void {
    caller.before = this.last
    if (this.last === null) this.first = caller
    else this.last.behind = caller
    this.last = caller
    this.cancel ??= this.clock.after(this.limitMs(), this.look)
  }

  /** That one waits no longer. */
  leave(caller: Caller<Given>): void {
    if (!caller.isWaiting) return
    caller.isWaiting = false
    caller.deafen?.()
    const { before, behind } = caller
    if (before === null) this.first = behind
    else before.behind = behind
    if (behind === null) this.last = before
    else behind.before = before
    caller.before = null
    caller.behind = null
    if (this.first !== null) return
    this.cancel?.()
    this.cancel = null
  }

  private late({ given, sentAt }: Caller<Given>, limitMs: number): HoldfastError {
    const waited = formatMs(limitMs)
    const heard = this.lastError === null ? '' : ` ${messageOf(this.lastError)}`
    const why = sentAt === null ? `could not be sent for ${waited}` : `was sent and not answered for ${waited}`
    const cause = this.lastError ?? undefined
    return this.error('STORE_UNAVAILABLE', given, { why, sent: sentAt !== null, cause, heard })
  }

  private aborted(given: Given, sent: boolean, { reason }: AbortSignal): HoldfastError {
    const why = `${sent ? 'was sent and not answered' : 'had not been sent'} when its abortSignal fired`
    return this.error('STORE_UNAVAILABLE', given, { why, sent, cause: reason as unknown, heard: '' })
  }

  /** A caller whose Holdfast was closed cannot know the outcome of an item that was sent. */
  errorFor({ given, sentAt }: Caller<Given>, error: unknown): unknown {
    if (!isHoldfastError(error, 'CLOSED') || sentAt === null) return error
    const why = 'was sent and not answered when this Holdfast was closed'
    return this.error('CLOSED', given, { why, sent: true, cause: error, heard: '' })
  }

  private error(
    code: 'STORE_UNAVAILABLE' | 'CLOSED',
    given: Given,
    { why, sent, cause, heard }: { why: string; sent: boolean; cause: unknown; heard: string },
  ): HoldfastError {
    const { what, again, details } = this.called(given)
    const became = sent ? 'it may have happened or not' : 'nothing has happened'
    return new HoldfastError(code, `${what} ${why}: ${became}. ${again}${heard}`, {
      cause,
      details: { ...details, sent },
    })
  }
}

async function enterLater<Given, Item, Answer, Result>(
  batcher: Batcher<Item, Answer, Result>,
  caller: Caller<Given>,
  made: (caller: Caller<Given>) => Item,
): Promise<void> {
  await batcher.room()
  if (caller.isWaiting) batcher.enter(made(caller), caller)
}

/** Its caller has given up and gets no answer. */
const unwanted = new NotDone(new HoldfastError('STORE_UNAVAILABLE', 'Its caller waits for it no longer.'))

/** The answer to an item, if it was done. */
export function done<Answer>(answer: Answer | NotDone): Answer {
  if (answer instanceof NotDone) throw answer.error
  return answer
}
