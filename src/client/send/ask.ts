// Asks a run: a signal that it answers. The answer is an entry of the journal of the run, so it is durable with the commit that
// gives it, and any process that asks again with the same id finds it there. A run that ends without an answer never gives
// one, and its callers learn that.

import { formatMs, toMs, type Duration } from '../../core/definition/duration.ts'
import type { Topic } from '../../core/definition/declared-topic.ts'
import type { Entry } from '../../core/model/entry.ts'
import { HoldfastError, isHoldfastError, messageOf } from '../../core/errors/error.ts'
import { isTerminal, type Run } from '../../core/model/run.ts'
import { withTimeout } from '../../core/runtime/backoff.ts'
import { Deferred } from '../../core/runtime/deferred.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import { quotedText } from '../../core/text/printable.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import type { RunEnd, Watcher } from '../../engine/run-ends.ts'
import { loadJournal } from '../../engine/store/journal-pages.ts'
import { messagesAtOnce } from '../../store.ts'
import { abortable, checkAbortSignal } from '../abort-option.ts'
import { readData } from '../read/run-view.ts'
import { runNotFound, runRemoved } from '../run-reference.ts'
import { checkedSignal, send } from './send.ts'
import { type KeyReference, knownId, resolve, type Target } from './signal-target.ts'

export interface AskOptions {
  /** Asking again with the same id asks nothing new, and gives the answer to the first. @default a new one */
  readonly id?: string
  /** Give up waiting after this, with ASK_TIMEOUT; the run may still answer. @default no limit */
  readonly timeout?: Duration
  /** Give up waiting when it fires, with ASK_TIMEOUT. @default none */
  readonly abortSignal?: AbortSignal
}

/** What is asked, and of whom. */
interface Asked {
  readonly id: string
  readonly name: string
  readonly runId: string
}

type Reply = Extract<Entry, { kind: 'replied' }>

/** @internal */
export async function askRun(
  engine: Engine,
  target: Target,
  named: string | Topic,
  payload?: unknown,
  options: AskOptions = {},
): Promise<unknown> {
  checkOptions(options, ['id', 'timeout', 'abortSignal'], 'ask()')
  const { id = engine.transitionId(), timeout } = options
  const abortSignal = checkAbortSignal(options.abortSignal)
  const timeoutMs = timeout === undefined ? null : toMs(timeout, 'The timeout of ask()')
  const since = engine.ports.clock.monotonic()
  const wait = await sendQuestion(engine, target, named, payload, { id, abortSignal })
  if (timeoutMs !== null) wait.limit(timeoutMs, engine.ports.clock.monotonic() - since)
  if (abortSignal !== undefined) wait.heed(abortSignal)
  const reply = await wait.begin()
  const { runId, name } = wait.asked
  const answer = await readData(runId, reply, engine.payloads)
  if (reply.meta.refused !== true) return answer
  const message = `Run ${runId} refused to answer ${quotedText(name)}: ${messageOf(answer)}`
  throw new HoldfastError('ASK_REFUSED', message, { cause: answer, details: { runId, id } })
}

interface Question {
  readonly id: string
  readonly abortSignal: AbortSignal | undefined
}

async function sendQuestion(
  engine: Engine,
  target: Target,
  named: string | Topic,
  payload: unknown,
  { id, abortSignal }: Question,
): Promise<AnswerWait> {
  const abort = abortSignal === undefined ? {} : { abortSignal }
  try {
    const prepared = await checkedSignal(engine, target, named, payload, { id, ...abort })
    // The answer comes behind what the journal has now, unless this was asked before.
    const before = await abortable('ask()', abortSignal, () => placeOf(engine, target))
    const sent = await send(engine, prepared)
    if (sent.outcome === 'target-not-found') throw noSuchRun(target, before?.id)
    const name = typeof named === 'string' ? named : named.name
    const isFresh = before?.id === sent.runId && sent.repeated !== true
    return new AnswerWait(engine, { id, name, runId: sent.runId }, isFresh ? before.seq : 0)
  } catch (error) {
    if (abortSignal?.aborted !== true || !isHoldfastError(error, 'STORE_UNAVAILABLE')) throw error
    const message = `ask() was given up when its abortSignal fired. ${messageOf(error)}`
    const details = { id, sent: error.details['sent'] }
    throw new HoldfastError('ASK_TIMEOUT', message, { cause: abortSignal.reason as unknown, details })
  }
}

function noSuchRun(target: Target, known: string | undefined): HoldfastError {
  const id = known ?? knownId(target)
  if (id !== null) return runNotFound(id)
  const { type, key } = target as KeyReference
  const message = `There is no run of type ${shown(type)} with the key ${shown(key)} in this store.`
  return new HoldfastError('RUN_NOT_FOUND', message, { details: { type, key } })
}

async function placeOf(engine: Engine, target: Target): Promise<Pick<Run, 'id' | 'seq'> | undefined> {
  const id = await resolve(engine, target)
  if (id === null) return undefined
  const [run] = await engine.store.get([id])
  return run
}

/** The first look at a run comes soon, and then less and less often. */
const [firstLookMs, longestLookMs] = [20, 1_000]

/** One wait for the answer of a run. */
class AnswerWait extends Deferred<Reply> implements Watcher {
  private readonly engine: Engine
  readonly asked: Asked
  /** Up to which entry the journal was read. */
  private read: number
  private pauseMs = firstLookMs
  private isOver = false
  private isLooking = false
  /** Something happened while the journal was read. */
  private isStale = false
  private cancelLook: Cancel | null = null
  private readonly cancels: Cancel[] = []

  constructor(engine: Engine, asked: Asked, read: number) {
    super()
    this.engine = engine
    this.asked = asked
    this.read = read
  }

  begin(): Promise<Reply> {
    const { engine, asked } = this
    this.cancels.push(engine.runMoves.watch(asked.runId, () => this.look()))
    engine.runEnds.watch(asked.runId, this)
    this.look()
    return this.promise
  }

  /** Gives up when that time is over, of which some has passed. */
  limit(ms: number, passed: number): void {
    const giveUp = (): void => void this.timeoutError(ms).then((error) => this.abandon(error))
    this.cancels.push(this.engine.ports.clock.after(Math.max(0, ms - passed), giveUp))
  }

  heed(abortSignal: AbortSignal): void {
    const { id, name, runId } = this.asked
    const heard = (): void => {
      const message = `Stopped waiting for the answer of run ${runId} to ${quotedText(name)}: the abortSignal fired. ${hope}`
      const cause: unknown = abortSignal.reason
      this.abandon(new HoldfastError('ASK_TIMEOUT', message, { cause, details: { runId, id } }))
    }
    if (abortSignal.aborted) return heard()
    abortSignal.addEventListener('abort', heard, { once: true })
    this.cancels.push(() => abortSignal.removeEventListener('abort', heard))
  }

  ended(_ending: RunEnd): void {
    this.look()
  }

  removed(run: Run): void {
    this.abandon(runRemoved(run))
  }

  closed(): void {
    const { runId } = this.asked
    const message = `This Holdfast was closed before run ${runId} answered. Ask again with the same id.`
    this.abandon(new HoldfastError('CLOSED', message, { details: { runId, id: this.asked.id } }))
  }

  private look(): void {
    this.isStale = true
    if (this.isLooking || this.isOver) return
    this.cancelLook?.()
    this.isLooking = true
    void this.lookOnce().then(
      () => this.looked(),
      (error: unknown) => {
        if (isHoldfastError(error, 'STORE_UNAVAILABLE')) this.looked()
        else this.abandon(error)
      },
    )
  }

  private looked(): void {
    this.isLooking = false
    if (this.isOver) return
    if (this.isStale) return this.look()
    this.cancelLook = this.engine.ports.clock.after(this.pauseMs, () => this.look())
    this.pauseMs = Math.min(this.pauseMs * 2, longestLookMs)
  }

  private async lookOnce(): Promise<void> {
    this.isStale = false
    const { engine, asked } = this
    const { runId } = asked
    const [run] = await engine.store.get([runId])
    if (run === undefined) throw runNotFound(runId)
    if (run.seq > this.read) {
      for await (const { entries } of loadJournal(engine.store, runId, { after: this.read })) {
        const reply = entries.find((entry): entry is Reply => entry.kind === 'replied' && entry.meta.to === asked.id)
        if (reply !== undefined) return this.answered(reply)
        this.read = entries.at(-1)?.seq ?? this.read
      }
    }
    if (isTerminal(run.status)) throw unanswered(asked, run)
    if (run.deletedAt !== null && run.session === null) throw runRemoved(run)
  }

  private answered(reply: Reply): void {
    this.over()
    this.resolve(reply)
  }

  /** What the run was doing when the time of the caller was over. */
  private async timeoutError(ms: number): Promise<HoldfastError> {
    const { store, ports } = this.engine
    const { id, name, runId } = this.asked
    const messages = { names: [name], limit: messagesAtOnce }
    const looked = Promise.all([store.get([runId]), store.load([{ runId, after: 0, limit: 0, messages }])])
    // Bounded, because the caller has already waited for its whole timeout.
    const found = await withTimeout(
      ports.clock,
      longestLookMs,
      looked.catch(() => undefined),
    )
    const status = found?.[0][0]?.status ?? 'of unknown status'
    const isUnread = found?.[1][0]?.messages.some((message) => message.id === id) === true
    const text = isUnread ? 'it has not read the question' : 'it has read the question, and not answered yet'
    return new HoldfastError(
      'ASK_TIMEOUT',
      `Run ${runId} has not answered ${quotedText(name)} within ${formatMs(ms)}: it is ${status}, and ${text}. ${hope}`,
      { details: { runId, id, status, read: !isUnread } },
    )
  }

  private abandon(error: unknown): void {
    if (this.isOver) return
    this.over()
    this.reject(error)
  }

  private over(): void {
    this.isOver = true
    this.cancelLook?.()
    for (const cancel of this.cancels) cancel()
    this.engine.runEnds.unwatch(this.asked.runId, this)
  }
}

const hope = 'Ask again with the same id to get the answer when it is there.'

function unanswered({ id, name, runId }: Asked, { status }: Run): HoldfastError {
  const message = `Run ${runId} has ${status === 'cancelled' ? 'been cancelled' : status} without having answered ${quotedText(name)}, and never will.`
  return new HoldfastError('ASK_UNANSWERED', message, { details: { runId, id, status } })
}
