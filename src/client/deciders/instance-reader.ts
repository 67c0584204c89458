// How instances of deciders are read.

import type { DeciderTypes, TypedDecider } from '../../core/definition/decider-model.ts'
import type { InputSource } from '../../core/model/entry.ts'
import type { AbortOption } from '../abort-option.ts'
import type { RunHandle } from '../run-handle.ts'

export interface EventsOptions extends AbortOption {
  /** Only those after the entry of this number. @default 0, all */
  readonly after?: number
  /** How many at most. @default all */
  readonly limit?: number
}

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

type Named<Types extends DeciderTypes> = TypedDecider<Types>

/** Each method takes the decider, or its name, and the id of an instance. */
export interface InstanceReader {
  /** The fold of all events of an instance; undefined if there is none of this id. */
  state<Types extends DeciderTypes>(
    decider: Named<Types>,
    id: string,
    options?: AbortOption,
  ): Promise<Types['state'] | undefined>
  state(decider: string, id: string, options?: AbortOption): Promise<unknown>
  /** The events of an instance in order; none if there is none of this id. */
  events<Types extends DeciderTypes>(
    decider: Named<Types>,
    id: string,
    options?: EventsOptions,
  ): Promise<readonly Types['event'][]>
  events(decider: string, id: string, options?: EventsOptions): Promise<readonly unknown[]>
  /** The same with their times and causes. */
  history<Types extends DeciderTypes>(
    decider: Named<Types>,
    id: string,
    options?: EventsOptions,
  ): Promise<readonly HistoricEvent<Types['event']>[]>
  history(decider: string, id: string, options?: EventsOptions): Promise<readonly HistoricEvent[]>
  /**
   * A handle on the run of an instance: its `result()` is the last state, once it is over. Rejects with RUN_NOT_FOUND if there is
   * none of this id.
   *
   * @example
   * const run = await holdfast.instance(order, '42')
   * console.log(await run.result({ timeout: '1 min' }))
   */
  instance<Types extends DeciderTypes>(
    decider: Named<Types>,
    id: string,
    options?: AbortOption,
  ): Promise<RunHandle<Types['state']>>
  instance(decider: string, id: string, options?: AbortOption): Promise<RunHandle<unknown>>
  /** The timers of an instance that gave up, in order: nothing tries them again. None if there is no instance of this id. */
  deadTimers(decider: TypedDecider | string, id: string, options?: AbortOption): Promise<readonly TimerFailure[]>
  /** How many inputs were enqueued and are not decided yet. */
  backlog(decider: TypedDecider | string, id: string, options?: AbortOption): Promise<Backlog>
}
