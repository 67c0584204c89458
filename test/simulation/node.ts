// What simulated programs are made of: plain data, so that a seed can draw them and a shrinker can take them apart.

import { topic } from '../../src/core/definition/declared-topic.ts'

export interface StepNode {
  readonly do: 'step'
  /** Unique within its program. */
  readonly name: string
  readonly ms: number
  /** So many attempts fail. */
  readonly fails: number
  readonly attempts: number
  readonly retryMs: number
  readonly timeoutMs: number | null
  readonly undo: 'none' | 'well' | 'badly' | 'second try'
  /** Stops when it is asked to; otherwise it goes on to its end. */
  readonly heeds: boolean
  /** So many times it ends the process that performs it. */
  readonly kills: number
  /** Its function asks the context for a value, which is refused; the body takes one before and one after it. */
  readonly asks: boolean
}

/** Waits for a signal, or for what is sent to a topic, and perhaps no longer than so. */
export interface WaitNode {
  readonly do: 'wait'
  readonly on: SignalName | TopicName
  readonly ms: number | null
}

/** Starts another program and waits for it, or for some time. */
export interface ChildNode {
  readonly do: 'child'
  readonly program: number
  readonly ms: number | null
  readonly onParentEnd: 'cancel' | 'abandon' | 'wait'
}

/** Makes a wait, does something else, and only then awaits it, lets it race, or leaves it. */
export interface EarlyNode {
  readonly do: 'early'
  readonly wait: { readonly do: 'sleep'; readonly ms: number } | ChildNode
  readonly part: readonly Node[]
  readonly fate: 'awaited' | 'raced' | 'left'
}

/** Starts others that wait for the end of this run, and goes on. */
export interface CrowdNode {
  readonly do: 'crowd'
  readonly members: readonly Pick<ChildNode, 'program' | 'onParentEnd'>[]
}

/** Sends to itself, and reads that; to the run that it knows of; or to a topic. */
export interface SendNode {
  readonly do: 'send'
  readonly to: 'self' | 'leader' | TopicName
}

export const signalNames = ['red', 'blue'] as const
export type SignalName = (typeof signalNames)[number]

export const topics = {
  news: topic<Payload>('news', { retain: 500 }),
  jobs: topic<Payload>('jobs', { delivery: 'one' }),
} as const
export type TopicName = keyof typeof topics

/** What is sent: a number that nothing else has. */
export interface Payload {
  readonly sent: string
}

export type Node =
  | StepNode
  | { readonly do: 'sleep'; readonly ms: number }
  | { readonly do: 'value'; readonly of: 'now' | 'random' | 'uuid' }
  | { readonly do: 'note'; readonly of: 'log' | 'progress' }
  | { readonly do: 'patched'; readonly name: string }
  | { readonly do: 'together'; readonly parts: readonly (readonly Node[])[] }
  | { readonly do: 'try'; readonly part: readonly Node[]; readonly caught: readonly Node[] }
  | { readonly do: 'throw'; readonly message: string }
  /** So many values at once, and so many steps, which have no effect. */
  | { readonly do: 'many'; readonly count: number }
  | WaitNode
  | ChildNode
  | EarlyNode
  | CrowdNode
  /** Waits for the end of the run that it knows of. */
  | { readonly do: 'watch' }
  | SendNode
