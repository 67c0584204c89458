// What readers of instances are shown.

import type { StateInfo, TransitionInfo } from '../../core/definition/state-machine.ts'
import type { HoldfastError } from '../../core/errors/error.ts'
import type { InputSource } from '../../core/model/entry.ts'
import type { RunStatus } from '../../core/model/run.ts'

/** An event with its time and its cause. */
export interface HistoricEvent<Event = unknown> {
  /** The number of its entry in the journal. Numbers grow, and other entries stand between. */
  readonly seq: number
  readonly at: Date
  readonly event: Event
  /** The input that it followed from. */
  readonly cause: EventCause
}

export interface EventCause {
  /** The type of the input; null if it was the one that the run was started with. */
  readonly input: string | null
  /** Where that came from: a call, a message, an effect, a timer, or the start of the run. */
  readonly from: InputSource
  /** The id of the command, if its sender gave one. */
  readonly commandId: string | null
}

/** A timer that gave up: its input could not be decided. */
export interface TimerFailure {
  /** The number of its entry in the journal. */
  readonly seq: number
  readonly at: Date
  /** What `retryDeadTimer` and `discardDeadTimer` call it: its key, or `#` and the number of the entry that armed it. */
  readonly name: string
  /** Its key; null if it had none. */
  readonly key: string | null
  /** How often it was tried. */
  readonly attempts: number
  readonly error: unknown
}

/** The inputs that were enqueued and are not decided yet. */
export interface Backlog {
  readonly inputs: number
  /** There are more: only the first 1,000 messages were counted. */
  readonly isCapped: boolean
  /** When the oldest of them came; null if there is none. */
  readonly since: Date | null
}

/** A side effect that has no outcome yet. */
export interface PendingEffectView {
  /** Its type and the number of its entry: `charge#17`. */
  readonly name: string
  readonly type: string
  readonly seq: number
  readonly createdAt: Date | null
  /** The run that performs it; null while it waits for one of the same order. */
  readonly run: { readonly id: string; readonly status: RunStatus; readonly dueAt: Date | null } | null
}

/** A timer that is set. */
export interface PendingTimerView {
  readonly key: string | null
  readonly dueAt: Date | null
  /** How often its input could not be decided. */
  readonly failures: number
}

export interface Inspection<State = unknown, Event = unknown> {
  readonly type: string
  readonly version: number
  readonly id: string
  readonly runId: string
  readonly status: RunStatus
  /** The number of the last entry that was folded. */
  readonly seq: number
  readonly createdAt: Date
  readonly endedAt: Date | null
  /** Undefined until its first input is accepted. */
  readonly state: State | undefined
  /** The state in the words of `view`; null if the decider has none. */
  readonly info: StateInfo | null
  /** The inputs that `view` says may follow. */
  readonly transitions: readonly TransitionInfo[]
  /** Its last events, in order. */
  readonly history: readonly HistoricEvent<Event>[]
  readonly effects: readonly PendingEffectView[]
  readonly timers: readonly PendingTimerView[]
  readonly backlog: Backlog
  /** The event that this code cannot read: all of the above is as it was before it. Null if all was read. */
  readonly unreadable: HoldfastError | null
}

/** A step that instances took, or an input that was rejected in a status. */
export interface ObservedTransition {
  readonly from: string
  /** The type of the input. */
  readonly input: string
  /** The status after it: the same, unless it was accepted. */
  readonly to: string
  readonly outcome: 'accepted' | 'rejected' | 'failed'
  readonly count: number
  readonly firstAt: Date
  readonly lastAt: Date
  /** Types of effects that were asked for. */
  readonly effects: readonly string[]
  /** Keys of timers that were set; `#` for those without a key. */
  readonly timers: readonly string[]
}

export interface Observed {
  /** How many instances were read. */
  readonly instances: number
  /** There are more. */
  readonly isCapped: boolean
  /** Statuses in which instances were over. */
  readonly terminal: readonly string[]
  /** Statuses in which instances began. */
  readonly initial: readonly string[]
  readonly transitions: readonly ObservedTransition[]
}
