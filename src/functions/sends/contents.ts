// What the calls of a body send: signals, broadcasts and answers, by the arguments of the call. Targets and payloads are checked
// and encoded as a client's are.

import { checkSignalName, isTopic, type Topic } from '../../core/definition/declared-topic.ts'
import { someTime, toMs } from '../../core/definition/duration.ts'
import { HoldfastError, isHoldfastError, messageOf } from '../../core/errors/error.ts'
import { checkKey } from '../../core/model/key.ts'
import { isRunId } from '../../core/model/run-id.ts'
import { sentMessageId } from '../../core/model/message.ts'
import { messagePlaceOf, topicPlace, type Place } from '../../core/payload/place.ts'
import { refusalOf } from '../../core/payload/refusal.ts'
import { runLine } from '../../core/rows/engine-notes.ts'
import { createBackoff } from '../../core/runtime/backoff.ts'
import { quotedText } from '../../core/text/printable.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import type { SendOptions, SendTarget } from '../api/context.ts'
import type { FrameState } from '../frame/frame-state.ts'
import type { Content, NewSend } from './send-call.ts'

/** A message of a call that has no identity yet: `name` is the one that the body uses. */
export type SendSpec = Pick<NewSend, 'name' | 'prepare' | 'refused'>

interface Named {
  readonly name: string
  readonly topic: Topic | null
}

/** The name of a signal that a body sends. Throws INVALID_NAME. */
export function signalNameOf(named: string | Topic): string {
  return checkSignalName(isTopic(named) ? named.name : named, 'A signal')
}

/** A signal to a run. Throws INVALID_OPTION, or INVALID_INPUT if its topic refuses the payload. */
export function signalContent(
  state: FrameState,
  target: SendTarget,
  named: string | Topic,
  payload: unknown,
): Content | Promise<Content> {
  const to = receiverOf(target)
  const topic = isTopic(named) ? named : null
  const what: Named = { name: signalNameOf(named), topic }
  const value = topic === null ? payload : topic.validate(payload)
  if (typeof to === 'string' && !(value instanceof Promise)) return signalTo(to, what, value)
  const found = typeof to === 'string' ? to : findReceiver(state, to)
  return Promise.all([found, value]).then(([runId, checked]) => signalTo(runId, what, checked))
}

/** Null if no run has the key: the entry says so, and nothing is sent. */
function signalTo(to: string | null, { name: signal, topic }: Named, value: unknown): Content {
  return ({ runId, writer, host: { payloads, limits, ports }, run }, name) => {
    // Nothing else is the id of a run, and a store of several shards could not even look for it.
    if (to === null || !isRunId(to)) {
      ports.logger.warn(runLine(run, `sends signal ${quotedText(signal)} to a run that does not exist.`), {
        run: runId,
      })
      return { kind: 'signal-sent', name, meta: null, data: null }
    }
    const kind = topic === null ? 'signal' : 'topic-signal'
    const id = sentMessageId(runId, writer.seq + 1)
    const place = messagePlaceOf(payloads.namespace, { kind, runId: to, name: signal, id })
    const data = textOf(payloads, value, place, `The payload of signal ${quotedText(signal)}`)
    const meta = { to, signal, kind, policy: topic?.policy ?? null, mostUnread: limits.mailbox } as const
    return { kind: 'signal-sent', name, meta, data }
  }
}

/** A broadcast to a topic. Throws INVALID_OPTION or INVALID_DURATION, and prepares with INVALID_INPUT a payload that is refused. */
export function broadcastOf(topic: Topic, payload: unknown, options: SendOptions): SendSpec {
  if (!isTopic(topic)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `ctx.broadcast goes to a topic that was declared: const priceChanged = topic('price-changed'). Got ${shown(topic)}.`,
    )
  }
  checkOptions(options, ['expiresIn'], 'ctx.broadcast')
  const { expiresIn } = options
  const expiresInMs = expiresIn === undefined ? null : toMs(expiresIn, 'ctx.broadcast(…, { expiresIn })', someTime)
  const prepare = (): Content | Promise<Content> => {
    const value = topic.validate(payload)
    if (!(value instanceof Promise)) return broadcastTo(topic, value, expiresInMs)
    return value.then((checked: unknown) => broadcastTo(topic, checked, expiresInMs))
  }
  return { name: topic.name, prepare }
}

function broadcastTo(topic: Topic, value: unknown, expiresInMs: number | null): Content {
  return ({ runId, writer, host: { payloads, limits } }, name) => {
    const place = topicPlace(payloads.namespace, topic.name, sentMessageId(runId, writer.seq + 1))
    const data = textOf(payloads, value, place, `The payload of topic ${quotedText(topic.name)}`)
    const meta = { topic: topic.rules, policy: topic.policy, expiresInMs, mostKept: limits.retained }
    return { kind: 'broadcast-sent', name, meta, data }
  }
}

function textOf(payloads: Payloads, value: unknown, place: Place, what: string): string {
  try {
    return payloads.encode(value, place)
  } catch (error) {
    throw refusalOf(error, what)
  }
}

interface Key {
  readonly type: string
  readonly key: string
}

/** The id of a target that is named by its id, or its key. Throws INVALID_OPTION. */
function receiverOf(target: SendTarget): string | Key {
  if (typeof target === 'string') return target
  const { id, type, workflow, key } = asRecord(target)
  if (typeof id === 'string') return id
  const named = type ?? (typeof workflow === 'object' ? asRecord(workflow)['type'] : workflow)
  if (typeof named === 'string' && typeof key === 'string')
    return { type: named, key: checkKey(key, 'The key of a run') }
  throw new HoldfastError(
    'INVALID_OPTION',
    `The target of ctx.signal is the id of a run, its handle, or { type, key }. Got ${shown(target)}.`,
  )
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

/** Looks up the run that has a key, for as long as it takes. */
async function findReceiver({ host, writer }: FrameState, key: Key): Promise<string | null> {
  const pause = createBackoff(host.ports)
  for (;;) {
    try {
      return await host.receiver(key)
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE') || writer.isLost) throw error
      await pause()
    }
  }
}

/** The answer to a message. An error that cannot be stored is replaced by its message. */
export function replyContent(to: string, value: unknown, refused: boolean): Content {
  return (state, name) => {
    const place = state.host.payloads.place(state.runId, state.writer.seq + 1, 'replied', name)
    const encode = (given: unknown): string =>
      textOf(state.host.payloads, given, place, `The answer to ${quotedText(name)}`)
    if (!refused) return { kind: 'replied', name, meta: { to }, data: encode(value) }
    let data: string
    try {
      data = encode(value)
    } catch {
      data = encode(new Error(messageOf(value)))
    }
    return { kind: 'replied', name, meta: { to, refused }, data }
  }
}
