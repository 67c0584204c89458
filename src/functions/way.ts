// The ways in which a wait can end, before it is registered: what is asked for, under which tag, and what the body gets when
// it comes true. A wait has one way, a race several.

import type { Definition } from '../core/definition.ts'
import { isTopic, type Topic } from '../core/declared-topic.ts'
import type { WokenMeta } from '../core/entry.ts'
import { HoldfastError, messageOf } from '../core/error.ts'
import { atMost } from '../core/limits.ts'
import type { Crowded } from '../core/message.ts'
import type { NewRun } from '../core/new-run.ts'
import { validate, type Schema } from '../core/schema.ts'
import type { TopicRules } from '../core/topic.ts'

export interface Way {
  readonly tag: string
  readonly ask: Ask
  /** What the body gets: `value` is what the message brought. Throws, or rejects with, what the body is to catch. */
  readonly read: (meta: WokenMeta, value: unknown) => unknown
}

export type Ask =
  | { readonly kind: 'time'; readonly at: number }
  | DelayAsk
  | { readonly kind: 'signal'; readonly name: string; readonly topic?: TopicRules }
  | { readonly kind: 'run'; readonly runId: string }
  | ChildAsk

/** A time that counts from when it was first registered, alone or in a race. */
export interface DelayAsk {
  readonly kind: 'delay'
  readonly ms: number
  /** The wait that it was first registered with. */
  begun: { readonly registeredAt: number | null } | null
}

/** Another run is to be started, and waited for if it is a `child`. However often it is waited for, it is started once. */
export interface ChildAsk {
  readonly kind: 'child' | 'start'
  readonly workflow: Definition
  readonly input: unknown
  readonly options: Readonly<Record<string, unknown>>
  readonly onParentEnd: OnParentEnd
  /** The run, as soon as it was prepared. */
  prepared: NewRun | Promise<NewRun> | null
  /** Its id, as soon as it is known: then it was started, or will be by whoever asked first. */
  runId: string | null
}

/** What becomes of a child when the run that started it ends first. */
export type OnParentEnd = 'cancel' | 'abandon' | 'wait'

/** What a sleep gives back: when it was due, and when the run saw that it was. */
export interface SleepResult {
  readonly scheduledAt: Date
  readonly firedAt: Date
}

/** How another run has ended. */
export type RunOutcome<Output = unknown> =
  | { readonly status: 'succeeded'; readonly output: Output }
  | { readonly status: 'failed'; readonly error: unknown }
  | { readonly status: 'cancelled'; readonly reason: string | null }

export function timeWay(ask: Extract<Ask, { kind: 'time' | 'delay' }>): Way {
  return {
    tag: 'sleep',
    ask,
    read: ({ trueAt, seenAt }): SleepResult => ({ scheduledAt: new Date(trueAt), firedAt: new Date(seenAt) }),
  }
}

export function signalWay(sender: string | Topic, schema: Schema | undefined): Way {
  const name = isTopic(sender) ? sender.name : sender
  const checked = (value: unknown): unknown =>
    schema === undefined ? value : validate(schema, value, `Signal "${name}"`)
  if (!isTopic(sender)) return { tag: 'signal', ask: { kind: 'signal', name }, read: (_, value) => checked(value) }
  return {
    tag: 'signal',
    ask: { kind: 'signal', name, topic: sender.rules },
    read: ({ by }, value) => {
      if (by?.crowded !== undefined) throw topicCrowded(name, by.crowded)
      const accepted = sender.validate(value)
      return accepted instanceof Promise ? accepted.then(checked) : checked(accepted)
    },
  }
}

function topicCrowded(topic: string, { subscribers }: Crowded): HoldfastError {
  return new HoldfastError(
    'TOPIC_FULL',
    `No more runs can wait on the topic "${topic}": it takes ${atMost({ subscribers }, 'subscribers')}. ` +
      'Wait again later, or raise the limit.',
    { details: { topic, limit: 'subscribers', most: subscribers } },
  )
}

/** The end of any run, as data. */
export function runWay(runId: string): Way {
  return { tag: 'run', ask: { kind: 'run', runId }, read: (meta, value) => outcomeOf(runId, meta, value) }
}

/** The output of a run that this one starts; its failure is an error. */
export function childWay(ask: ChildAsk): Way {
  const { type } = ask.workflow
  return {
    tag: 'child',
    ask,
    read: (meta, value) => {
      const runId = startedId(ask, meta)
      const outcome = outcomeOf(runId, meta, value)
      if (outcome.status === 'succeeded') return outcome.output
      throw outcome.status === 'failed'
        ? childFailed(runId, type, outcome.error)
        : childCancelled(runId, type, outcome.reason)
    },
  }
}

/** The id of a run that this one starts. */
export function startWay(ask: ChildAsk): Way {
  return { tag: 'start', ask, read: (meta) => ({ id: startedId(ask, meta) }) }
}

function startedId({ workflow: { type }, runId }: ChildAsk, { by }: WokenMeta): string {
  const id = by?.name ?? runId ?? ''
  if (by?.refused === undefined) return id
  const { taken, by: other } = by.refused
  throw new HoldfastError(
    'CHILD_REFUSED',
    `A run of "${type}" could not be started: run ${other} has the same ${taken}. Wait for that one with ctx.waitFor, or ` +
      'choose another.',
    { details: { runId: id, type, taken, by: other } },
  )
}

function outcomeOf(runId: string, { by }: WokenMeta, value: unknown): RunOutcome {
  const { status, reason } = by?.ended ?? { status: 'not-found', reason: null }
  if (status === 'succeeded') return { status, output: value }
  if (status === 'failed') return { status, error: value }
  if (status === 'cancelled') return { status, reason }
  throw new HoldfastError('RUN_NOT_FOUND', `There is no run ${runId} in this store to wait for.`, {
    details: { runId },
  })
}

function childFailed(runId: string, type: string, cause: unknown): HoldfastError {
  return new HoldfastError('CHILD_FAILED', `Child ${runId} of "${type}" failed: ${messageOf(cause)}`, {
    cause,
    details: { runId, type, status: 'failed' },
  })
}

function childCancelled(runId: string, type: string, reason: string | null): HoldfastError {
  const told = reason === null ? '' : `: ${reason}`
  return new HoldfastError('CHILD_CANCELLED', `Child ${runId} of "${type}" was cancelled${told}`, {
    details: { runId, type, status: 'cancelled', reason },
  })
}
