// Signals to runs and broadcasts to topics: the payload is checked and encoded here, and the store's answer becomes an outcome. No
// message is lost: it lies in a mailbox or in its topic, or the outcome says why not.

import { isTopic, checkSignalName, type Topic } from '../../core/definition/declared-topic.ts'
import { someTime, toMs, type Duration } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { checkKey } from '../../core/model/key.ts'
import { atMost, type Limits } from '../../core/definition/limits.ts'
import { isPassedOnId, sentPrefix } from '../../core/model/message.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import { messagePlaceOf, topicPlace, type Place } from '../../core/payload/place.ts'
import { refusalOf } from '../../core/payload/refusal.ts'
import type { RunStatus } from '../../core/model/run.ts'
import { quotedText } from '../../core/text/printable.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import type { OutgoingMessage } from '../../engine/batch/message-sender.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../store.ts'
import { abortable, checkAbortSignal, type AbortOption } from '../abort-option.ts'
import { knownId, resolve, type Target } from './signal-target.ts'

export interface SignalOptions extends AbortOption {
  /** Makes a repeated signal harmless: a run takes each id once, and answers as the first time. @default a new one */
  readonly id?: string
}

export interface BroadcastOptions extends SignalOptions {
  /** No run gets it after that. @default never */
  readonly expiresIn?: Duration
}

/** The outcome of a signal. `repeated`: its id was known, and nothing has changed. */
export type SignalOutcome =
  /** The run was waiting, and goes on. */
  | { readonly outcome: 'delivered'; readonly runId: string; readonly repeated?: true }
  /** It lies in the mailbox, for when the run waits for it. */
  | { readonly outcome: 'queued'; readonly runId: string; readonly signalId: string; readonly repeated?: true }
  /** The run is over. Sent in the name of a topic, it does what that says: `onUnread`. */
  | {
      readonly outcome: 'target-terminated'
      readonly runId: string
      readonly status: RunStatus
      readonly repeated?: true
    }
  | { readonly outcome: 'target-not-found' }

/** The outcome of a broadcast. `repeated`: its id was known, and nothing has changed. */
export type BroadcastOutcome =
  /** How many runs were waiting for it. */
  | { readonly outcome: 'delivered'; readonly runs: number; readonly repeated?: true }
  /** No run was waiting. Later subscribers get it for as long as its topic keeps it. */
  | { readonly outcome: 'queued'; readonly signalId: string; readonly repeated?: true }

/** A payload that has been checked, and whose destination is not known yet. */
export interface SignalPayload {
  readonly id: string
  readonly name: string
  readonly topic: Topic | null
  readonly value: unknown
}

/** A request that is ready for the store, and what its answer means. */
export interface PreparedSend<Outcome> {
  /** Null if the target does not exist. */
  readonly message: OutgoingMessage | null
  readonly abortSignal: AbortSignal | undefined
  readonly outcome: (delivered: Delivered) => Outcome | Promise<Outcome>
}

/** Ids that begin like this are made by the engine, for its own messages. */
const reservedIds = ['token:', 'ended:', 'refused:', 'broadcast:', sentPrefix]

/** Checks the payload of a signal. Throws INVALID_NAME, INVALID_OPTION or INVALID_INPUT. @internal */
export async function signalPayloadOf(
  engine: Engine,
  named: string | Topic,
  payload: unknown,
  id: string | undefined,
): Promise<SignalPayload> {
  const topic = isTopic(named) ? named : null
  const name = checkSignalName(topic === null ? named : topic.name, 'A signal')
  const checked = id === undefined ? engine.transitionId() : checkSignalId(id)
  return { id: checked, name, topic, value: topic === null ? payload : await topic.validate(payload) }
}

/** The content as a message to that run. @internal */
export async function messageTo(
  { payloads, limits }: Engine,
  runId: string,
  content: SignalPayload,
): Promise<NewMessage> {
  const { id, name, topic, value } = content
  const kind = topic === null ? 'signal' : 'topic-signal'
  const place = messagePlaceOf(payloads.namespace, { kind, runId, name, id })
  const data = await payloads.keep(payloadText(payloads, value, place, { kind: 'signal', name }), place)
  return { id, runId, kind, name, data, policy: topic?.policy ?? null, mostUnread: limits.mailbox }
}

function payloadText(
  payloads: Payloads,
  value: unknown,
  place: Place,
  { kind, name }: { readonly kind: 'signal' | 'topic'; readonly name: string },
): string {
  try {
    return payloads.encode(value, place)
  } catch (error) {
    throw refusalOf(error, `The payload of ${kind} ${quotedText(name)}`)
  }
}

async function readySignal(
  engine: Engine,
  target: Target,
  content: SignalPayload,
  abortSignal: AbortSignal | undefined,
): Promise<PreparedSend<SignalOutcome>> {
  const runId = await abortable('signal()', abortSignal, () => resolve(engine, target))
  if (runId === null) return { message: null, abortSignal, outcome: () => ({ outcome: 'target-not-found' }) }
  const message = await messageTo(engine, runId, content)
  // A message with a policy was already settled on delivery. One without is discarded if its run has ended.
  const mayLookAgain = knownId(target) === null && message.policy === null
  return {
    message,
    abortSignal,
    outcome: async (delivered) => {
      const outcomeOf = (id: string, of: Delivered): SignalOutcome => signalOutcome(engine.limits, id, content.id, of)
      if (delivered.outcome !== 'target-terminated' || !mayLookAgain) return outcomeOf(runId, delivered)
      const now = await abortable('signal()', abortSignal, () => resolve(engine, target))
      if (now === null || now === runId) return outcomeOf(runId, delivered)
      return outcomeOf(now, await engine.send(await messageTo(engine, now, content), abortSignal))
    },
  }
}

/** @internal */
export async function prepareBroadcast(
  engine: Engine,
  topic: Topic,
  payload: unknown,
  options: BroadcastOptions = {},
): Promise<PreparedSend<BroadcastOutcome>> {
  const message = await broadcastOf(engine, topic, payload, options)
  const { abortSignal } = options
  return { message, abortSignal, outcome: (delivered) => broadcastOutcome(engine.limits, message, delivered) }
}

/** @internal */
export async function broadcastOf(
  engine: Engine,
  topic: Topic,
  payload: unknown,
  options: BroadcastOptions,
): Promise<NewBroadcast> {
  checkOptions(options, ['id', 'expiresIn', 'abortSignal'], 'broadcast()')
  checkAbortSignal(options.abortSignal)
  if (!isTopic(topic)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `A broadcast goes to a topic that was declared: const priceChanged = topic('price-changed'). Got ${shown(topic)}.`,
    )
  }
  const { id, value } = await signalPayloadOf(engine, topic, payload, options.id)
  const expiresInMs =
    options.expiresIn === undefined ? null : toMs(options.expiresIn, 'broadcast(…, { expiresIn })', someTime)
  const { payloads, limits } = engine
  const place = topicPlace(payloads.namespace, topic.name, id)
  const data = await payloads.keep(payloadText(payloads, value, place, { kind: 'topic', name: topic.name }), place)
  return { id, topic: topic.rules, data, policy: topic.policy, expiresInMs, mostKept: limits.retained }
}

/** Sends a request that is ready. Requests of the same turn go to the store together, in their order. @internal */
export async function send<Outcome>(
  engine: Engine,
  { message, abortSignal, outcome }: PreparedSend<Outcome>,
): Promise<Outcome> {
  return outcome(message === null ? { outcome: 'target-not-found' } : await engine.send(message, abortSignal))
}

/** @internal */
export async function signalRun(
  engine: Engine,
  target: Target,
  named: string | Topic,
  payload?: unknown,
  options: SignalOptions = {},
): Promise<SignalOutcome> {
  return send(engine, await checkedSignal(engine, target, named, payload, options))
}

/** A signal that has been checked, all of it. @internal */
export async function checkedSignal(
  engine: Engine,
  target: Target,
  named: string | Topic,
  payload: unknown,
  options: SignalOptions = {},
): Promise<PreparedSend<SignalOutcome>> {
  engine.assertOpen()
  checkOptions(options, ['id', 'abortSignal'], 'signal()')
  const abortSignal = checkAbortSignal(options.abortSignal)
  knownId(target)
  return readySignal(engine, target, await signalPayloadOf(engine, named, payload, options.id), abortSignal)
}

/** Throws MAILBOX_FULL if it was not accepted. */
export function signalOutcome(limits: Limits, runId: string, signalId: string, delivered: Delivered): SignalOutcome {
  if (delivered.outcome === 'target-not-found') return { outcome: 'target-not-found' }
  if (delivered.outcome === 'full') throw mailboxFull(limits, runId, signalId)
  const repeated = delivered.repeated === true ? ({ repeated: true } as const) : {}
  if (delivered.outcome === 'target-terminated') {
    return { outcome: 'target-terminated', runId, status: delivered.status, ...repeated }
  }
  if (delivered.outcome === 'delivered') return { outcome: 'delivered', runId, ...repeated }
  return { outcome: 'queued', runId, signalId, ...repeated }
}

/** Throws TOPIC_FULL if it was not accepted. */
export function broadcastOutcome(
  limits: Limits,
  { id: signalId, topic }: Pick<NewBroadcast, 'id' | 'topic'>,
  delivered: Delivered,
): BroadcastOutcome {
  if (delivered.outcome === 'full') throw topicFull(limits, topic.name, signalId)
  const repeated = 'repeated' in delivered && delivered.repeated ? ({ repeated: true } as const) : {}
  if (delivered.outcome !== 'delivered') return { outcome: 'queued', signalId, ...repeated }
  return { outcome: 'delivered', runs: delivered.runs ?? 0, ...repeated }
}

function mailboxFull(limits: Limits, runId: string, signalId: string): HoldfastError {
  return new HoldfastError(
    'MAILBOX_FULL',
    `The mailbox of run ${runId} is full: it takes ${atMost(limits, 'mailbox')} unread messages. Send it again once the run has ` +
      'read some of them, or raise the limit.',
    { details: { runId, signalId, limit: 'mailbox', most: limits.mailbox } },
  )
}

function topicFull(limits: Limits, topic: string, signalId: string): HoldfastError {
  return new HoldfastError(
    'TOPIC_FULL',
    `The topic ${quotedText(topic)} is full: it keeps ${atMost(limits, 'retained')} broadcasts for later subscribers. Send it again once ` +
      'some of them were taken or have aged, or raise the limit.',
    { details: { topic, signalId, limit: 'retained', most: limits.retained } },
  )
}

function checkSignalId(id: string): string {
  checkKey(id, 'The id of a signal')
  const reserved = reservedIds.find((prefix) => id.startsWith(prefix))
  if (isPassedOnId(id)) {
    const message = `The id of a signal cannot end like that of one that was passed on to a topic. Got ${shown(id)}.`
    throw new HoldfastError('INVALID_NAME', message)
  }
  if (reserved === undefined) return id
  throw new HoldfastError(
    'INVALID_NAME',
    `The id of a signal cannot begin with "${reserved}": ids of the engine do. Got ${shown(id)}.`,
  )
}
