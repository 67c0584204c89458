// The cases of a wait, before it is registered: the condition, its tag, and how the body's value is read when it comes true.
// A wait has one case, a race several.

import type { Definition } from '../../core/definition/definition.ts'
import { isTopic, type Topic } from '../../core/definition/declared-topic.ts'
import type { WokenMeta } from '../../core/model/entry.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import { atMost } from '../../core/definition/limits.ts'
import type { Crowded } from '../../core/model/message.ts'
import type { NewRun } from '../../core/model/new-run.ts'
import { validate, type Schema } from '../../core/definition/schema.ts'
import type { TopicRules } from '../../core/model/topic.ts'
import { quotedText, visible } from '../../core/text/printable.ts'

export interface WaitCase {
  readonly tag: string
  readonly spec: WaitSpec
  /**
   * Reads the value for the body: `value` is the payload of the message. Throws, or rejects with, the error that the body is
   * to catch.
   */
  readonly read: (meta: WokenMeta, value: unknown) => unknown
}

export type WaitSpec =
  | { readonly kind: 'time'; readonly at: number }
  | DelaySpec
  | { readonly kind: 'signal'; readonly name: string; readonly topic?: TopicRules }
  | { readonly kind: 'run'; readonly runId: string }
  | ChildSpec

/** A time that counts from when it was first registered, alone or in a race. */
export interface DelaySpec {
  readonly kind: 'delay'
  readonly ms: number
  /** The wait that it was first registered with. */
  begun: { readonly registeredAt: number | null } | null
}

/** Another run is to be started, and waited for if it is a `child`. However often it is waited for, it is started once. */
export interface ChildSpec {
  readonly kind: 'child' | 'start'
  readonly workflow: Definition
  readonly input: unknown
  readonly options: Readonly<Record<string, unknown>>
  readonly onParentEnd: OnParentEnd
  /** The run, as soon as it was prepared. */
  prepared: NewRun | Promise<NewRun> | null
  /** Its id, as soon as it is known: then it was started, or will be by the first wait that asked for it. */
  runId: string | null
}

/** What happens to a child when the run that started it ends first. */
export type OnParentEnd = 'cancel' | 'abandon' | 'wait'

/** The result of a sleep: when it was due, and when the run saw that it was. */
export interface SleepResult {
  readonly scheduledAt: Date
  readonly firedAt: Date
}

/** How another run has ended. */
export type RunOutcome<Output = unknown> =
  | { readonly status: 'succeeded'; readonly output: Output }
  | { readonly status: 'failed'; readonly error: unknown }
  | { readonly status: 'cancelled'; readonly reason: string | null }

export function timeCase(spec: Extract<WaitSpec, { kind: 'time' | 'delay' }>): WaitCase {
  return {
    tag: 'sleep',
    spec,
    read: ({ trueAt, seenAt }): SleepResult => ({ scheduledAt: new Date(trueAt), firedAt: new Date(seenAt) }),
  }
}

/** `wrap` makes what the body gets of the id of a message and its payload. @default the payload */
export function signalCase(sender: string | Topic, schema: Schema | undefined, wrap?: WrapMessage): WaitCase {
  const name = isTopic(sender) ? sender.name : sender
  const checked = (value: unknown): unknown =>
    schema === undefined ? value : validate(schema, value, `Signal ${quotedText(name)}`)
  const wrapped = ({ by }: WokenMeta, value: unknown): unknown => {
    if (wrap === undefined) return value
    const id = by?.id ?? ''
    return value instanceof Promise ? value.then((later: unknown) => wrap(id, later)) : wrap(id, value)
  }
  if (!isTopic(sender)) {
    return {
      tag: 'signal',
      spec: { kind: 'signal', name },
      read: (meta, value) => {
        if (meta.by?.kind === 'failure') throw value
        return wrapped(meta, checked(value))
      },
    }
  }
  return {
    tag: 'signal',
    spec: { kind: 'signal', name, topic: sender.rules },
    read: (meta, value) => {
      if (meta.by?.crowded !== undefined) throw topicCrowded(name, meta.by.crowded)
      const accepted = sender.validate(value)
      return wrapped(meta, accepted instanceof Promise ? accepted.then(checked) : checked(accepted))
    },
  }
}

export type WrapMessage = (id: string, value: unknown) => unknown

function topicCrowded(topic: string, { subscribers }: Crowded): HoldfastError {
  return new HoldfastError(
    'TOPIC_FULL',
    `No more runs can wait on the topic ${quotedText(topic)}: it takes ${atMost({ subscribers }, 'subscribers')}. ` +
      'Wait again later, or raise the limit.',
    { details: { topic, limit: 'subscribers', most: subscribers } },
  )
}

/** The end of any run, as data. */
export function runCase(runId: string): WaitCase {
  return { tag: 'run', spec: { kind: 'run', runId }, read: (meta, value) => outcomeOf(runId, meta, value) }
}

/** The output of a run that this one starts; its failure is an error. */
export function childCase(spec: ChildSpec): WaitCase {
  const { type } = spec.workflow
  return {
    tag: 'child',
    spec,
    read: (meta, value) => {
      const runId = startedId(spec, meta)
      const outcome = outcomeOf(runId, meta, value)
      if (outcome.status === 'succeeded') return outcome.output
      throw outcome.status === 'failed'
        ? childFailed(runId, type, outcome.error)
        : childCancelled(runId, type, outcome.reason)
    },
  }
}

/** The id of a run that this one starts. */
export function startCase(spec: ChildSpec): WaitCase {
  return { tag: 'start', spec, read: (meta) => ({ id: startedId(spec, meta) }) }
}

function startedId({ workflow: { type }, runId }: ChildSpec, { by }: WokenMeta): string {
  const id = by?.name ?? runId ?? ''
  if (by?.refused === undefined) return id
  const { taken, by: other } = by.refused
  throw new HoldfastError(
    'CHILD_REFUSED',
    `A run of ${quotedText(type)} could not be started: run ${visible(other)} has the same ${taken}. Wait for that one with ctx.waitFor, or ` +
      'choose another.',
    { details: { runId: id, type, taken, by: other } },
  )
}

function outcomeOf(runId: string, { by }: WokenMeta, value: unknown): RunOutcome {
  const { status, reason } = by?.ended ?? { status: 'not-found', reason: null }
  if (status === 'succeeded') return { status, output: value }
  if (status === 'failed') return { status, error: value }
  if (status === 'cancelled') return { status, reason }
  throw new HoldfastError('RUN_NOT_FOUND', `There is no run ${visible(runId)} in this store to wait for.`, {
    details: { runId },
  })
}

function childFailed(runId: string, type: string, cause: unknown): HoldfastError {
  return new HoldfastError(
    'CHILD_FAILED',
    `Child ${visible(runId)} of ${quotedText(type)} failed: ${messageOf(cause)}`,
    {
      cause,
      details: { runId, type, status: 'failed' },
    },
  )
}

function childCancelled(runId: string, type: string, reason: string | null): HoldfastError {
  const text = reason === null ? '' : `: ${visible(reason)}`
  return new HoldfastError('CHILD_CANCELLED', `Child ${visible(runId)} of ${quotedText(type)} was cancelled${text}`, {
    details: { runId, type, status: 'cancelled', reason },
  })
}
