// Dead letters: messages that their run did not read before it ended, and that their topic keeps. They can be listed, sent again
// and discarded. Sending again writes the destination first, under an id that follows from the letter, and
// only then settles the letter: a crash in between leaves it dead, and sending it once more changes nothing.

import { checkSignalName, isTopic, type Topic } from '../../core/definition/declared-topic.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { retriedId } from '../../core/model/message.ts'
import { isPrintable } from '../../core/text/printable.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import { messagePlaceOf, messagePlace, topicPlace, type Place } from '../../core/payload/place.ts'
import { isTerminal, type RunStatus } from '../../core/model/run.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import type { DeadLetter, Page, StoreAdmin } from '../../store.ts'
import { abortable, assertNotAborted, reading, type AbortOption } from '../abort-option.ts'
import { adminOf } from '../../engine/store/store-admin.ts'
import { checkLetterCursor, checkWhole, mostOnPage } from '../read/cursor.ts'
import { idOf, type RunReference } from '../run-reference.ts'
import { broadcastOutcome, signalOutcome, type BroadcastOutcome, type SignalOutcome } from './send.ts'

/** A dead letter by its name. */
export interface DeadLetterReference {
  /** The run that it was for. */
  readonly runId: string
  readonly id: string
}

export interface DeadLetterView extends DeadLetterReference {
  /** The name of the topic in whose name it was sent, or that passed it on. */
  readonly name: string
  /** The payload; if it cannot be read, the error that says so. */
  readonly payload: unknown
  /** When it was sent. */
  readonly at: Date
  /** How its run stands, and since when that has been over. */
  readonly status: RunStatus
  readonly endedAt: Date | null
}

export interface DeadLetterOptions extends AbortOption {
  /** Only those of this topic. */
  readonly name?: string | Topic
  /** Only those that were for this run. */
  readonly run?: RunReference
  /** How many on one page, at most 200. @default 50 */
  readonly limit?: number
  /** What the page before gave as `next`. */
  readonly after?: string
}

export interface DeadLetterPage {
  /** Newest first. */
  readonly letters: readonly DeadLetterView[]
  /** Where the next page begins; null if this is the last. */
  readonly next: string | null
}

export interface RetryDeadLetterOptions extends AbortOption {
  /** Where it goes: to its topic, or to a run. */
  readonly to: Topic | RunReference
}

/** The outcome of sending a letter again. It is dead no more if, and only if, it was delivered or queued. */
export type RetryDeadLetterOutcome = SignalOutcome | BroadcastOutcome | { readonly outcome: 'not-dead' }

/** @internal */
export async function listDeadLetters(engine: Engine, options: DeadLetterOptions = {}): Promise<DeadLetterPage> {
  checkOptions(options, ['name', 'run', 'limit', 'after', 'abortSignal'], 'deadLetters()')
  const { name, run, limit = 50, after, abortSignal } = options
  checkWhole(limit, 'deadLetters({ limit })', { least: 1, most: mostOnPage })
  if (after !== undefined) checkLetterCursor(after, 'deadLetters({ after })')
  engine.assertOpen()
  const filter = {
    ...(name === undefined ? {} : { name: checkSignalName(isTopic(name) ? name.name : name, 'A topic') }),
    ...(run === undefined ? {} : { runId: idOf(run) }),
  }
  // One more than is asked for says whether there is another page.
  const page: Page = { limit: limit + 1, ...(after === undefined ? {} : { after }) }
  const admin = lettersOf(engine)
  const found = await abortable('deadLetters()', abortSignal, () => admin.deadLetters(filter, page))
  const letters = found.slice(0, limit)
  const last = letters.at(-1)
  return {
    letters: await Promise.all(letters.map((letter) => viewOf(engine, letter))),
    next: found.length > limit && last !== undefined ? pageKey(last) : null,
  }
}

/** Sends a dead letter again, to its topic or to a run. @internal */
export async function retryDeadLetter(
  engine: Engine,
  reference: DeadLetterReference,
  options: RetryDeadLetterOptions,
): Promise<RetryDeadLetterOutcome> {
  checkOptions(options, ['to', 'abortSignal'], 'retryDeadLetter()')
  const { to, abortSignal } = options
  const target = isTopic(to) ? to : idOf(to)
  engine.assertOpen()
  const named = checkReference(reference)
  // Wherever the caller gives up, the letter is still dead or has arrived: a repetition changes nothing.
  return abortable('retryDeadLetter()', abortSignal, async () => {
    const letter = await letterOf(engine, named)
    if (letter === null) return { outcome: 'not-dead' }
    assertNotAborted('retryDeadLetter()', abortSignal)
    const outcome =
      typeof target === 'string' ? await toRun(engine, letter, target) : await toTopic(engine, letter, target)
    const isSent = outcome.outcome === 'delivered' || outcome.outcome === 'queued'
    if (isSent) await lettersOf(engine).settleDeadLetter(named, 'retried')
    return outcome
  })
}

/** Discards a dead letter, unless it is dead no more. @internal */
export async function discardDeadLetter(
  engine: Engine,
  reference: DeadLetterReference,
  options?: AbortOption,
): Promise<{ readonly outcome: 'discarded' | 'not-dead' }> {
  const { runId, id } = checkReference(reference)
  engine.assertOpen()
  const admin = lettersOf(engine)
  const isDone = await reading('discardDeadLetter()', options, () => admin.settleDeadLetter({ runId, id }, 'discarded'))
  return { outcome: isDone ? 'discarded' : 'not-dead' }
}

async function toTopic(engine: Engine, letter: DeadLetter, topic: Topic): Promise<BroadcastOutcome> {
  if (topic.name !== letter.name) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `This letter is of the topic ${shown(letter.name)}, and cannot go to ${shown(topic.name)}.`,
    )
  }
  const id = retriedId(letter)
  const data = await movedTo(engine, letter, topicPlace(engine.payloads.namespace, letter.name, id))
  const { rules, policy } = topic
  const message = { id, topic: rules, data, policy, expiresInMs: null, mostKept: engine.limits.retained }
  return broadcastOutcome(engine.limits, message, await engine.send(message))
}

async function toRun(engine: Engine, letter: DeadLetter, runId: string): Promise<SignalOutcome> {
  const [run] = await engine.store.get([runId])
  if (run === undefined) return { outcome: 'target-not-found' }
  // Sent there, it would be a dead letter once more.
  if (isTerminal(run.status)) return { outcome: 'target-terminated', runId, status: run.status }
  const { name, policy } = letter
  const to = { kind: 'topic-signal', runId, name, id: retriedId(letter) } as const
  const data = await movedTo(engine, letter, messagePlaceOf(engine.payloads.namespace, to))
  const { limits } = engine
  const delivered = await engine.send({ ...to, data, policy, mostUnread: limits.mailbox })
  const outcome = signalOutcome(limits, runId, to.id, delivered)
  // It ended meanwhile, and has the letter now: one of them is enough.
  if (outcome.outcome === 'target-terminated') await lettersOf(engine).settleDeadLetter(letter, 'retried')
  return outcome
}

/** The payload of a letter, written for its new place. */
async function movedTo({ payloads }: Engine, letter: DeadLetter, place: Place): Promise<string> {
  const value = await readLetter(payloads, letter)
  return payloads.keep(payloads.encode(value, place), place)
}

async function viewOf({ payloads }: Engine, letter: DeadLetter): Promise<DeadLetterView> {
  const { runId, id, name, at, status, endedAt } = letter
  // A letter that cannot be read must not fail the whole list.
  const payload = await readLetter(payloads, letter).catch((cause: unknown) => cause)
  return { runId, id, name, payload, at: new Date(at), status, endedAt: endedAt === null ? null : new Date(endedAt) }
}

async function readLetter(payloads: Payloads, letter: DeadLetter): Promise<unknown> {
  return payloads.decode(await payloads.fetch(letter.data), messagePlace(payloads.namespace, letter))
}

async function letterOf(engine: Engine, { runId, id }: DeadLetterReference): Promise<DeadLetter | null> {
  const admin = lettersOf(engine)
  for (let after: string | undefined; ;) {
    const page = await admin.deadLetters({ runId }, { limit: mostOnPage, ...(after === undefined ? {} : { after }) })
    const found = page.find((letter) => letter.id === id)
    if (found !== undefined) return found
    const last = page.at(-1)
    if (last === undefined || page.length < mostOnPage) return null
    after = pageKey(last)
  }
}

/** Throws INVALID_OPTION unless it names a letter. */
function checkReference(reference: DeadLetterReference): DeadLetterReference {
  const { runId, id }: { readonly runId?: unknown; readonly id?: unknown } = reference ?? {}
  const isNamed = typeof runId === 'string' && typeof id === 'string' && isPrintable(id)
  if (isNamed) return { runId, id }
  throw new HoldfastError(
    'INVALID_OPTION',
    `A dead letter is named by the run that it was for and its id: { runId, id }. Got ${shown(reference)}.`,
  )
}

function pageKey({ runId, id }: DeadLetterReference): string {
  return `${runId} ${id}`
}

/** The queries for dead letters, which a store of a third party may lack. Throws INVALID_OPTION then. */
function lettersOf(engine: Engine): StoreAdmin {
  const admin = adminOf(engine)
  if (typeof admin.deadLetters === 'function') return admin
  throw new HoldfastError('INVALID_OPTION', 'This store has no dead letters: it has no deadLetters().')
}
