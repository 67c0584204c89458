// How instances of deciders are read.

import type { DeciderTypes, TypedDecider } from '../../core/definition/decider-model.ts'
import type { AbortOption } from '../abort-option.ts'
import type { Backlog, HistoricEvent, Inspection, Observed, TimerFailure } from './instance-views.ts'
import type { RunHandle } from '../run-handle.ts'

export interface StateOptions extends AbortOption {
  /**
   * The state at an earlier time: after the entry of this number, as `history` gives it, or at this time of the store. Then the
   * journal is read from its beginning. @default now
   */
  readonly at?: number | Date
}

export interface EventsOptions extends AbortOption {
  /** Only those after the entry of this number. @default 0, all */
  readonly after?: number
  /** How many at most. @default all */
  readonly limit?: number
}

export interface InspectOptions extends AbortOption {
  /** How many of its last events `history` has. @default 100 */
  readonly limit?: number
}

export interface ObserveOptions extends AbortOption {
  /** How many instances are read at most, the newest first. @default 1_000 */
  readonly limit?: number
}

type Named<Types extends DeciderTypes> = TypedDecider<Types>

/** Each method takes the decider, or its name, and the id of an instance. */
export interface InstanceReader {
  /** The fold of all events of an instance; undefined if there is none of this id. */
  state<Types extends DeciderTypes>(
    decider: Named<Types>,
    id: string,
    options?: StateOptions,
  ): Promise<Types['state'] | undefined>
  state(decider: string, id: string, options?: StateOptions): Promise<unknown>
  /**
   * An instance as a whole: its state, its last events, and its pending effects, timers and inputs; undefined if there is none of
   * this id. An event that this code cannot read is in it, and does not make the call fail.
   */
  inspect<Types extends DeciderTypes>(
    decider: Named<Types>,
    id: string,
    options?: InspectOptions,
  ): Promise<Inspection<Types['state'], Types['event']> | undefined>
  inspect(decider: string, id: string, options?: InspectOptions): Promise<Inspection | undefined>
  /**
   * What instances did, counted by status and input: the newest thousand unless `limit` says otherwise, read from their journals.
   * Rejects with INVALID_OPTION if the decider has no `view`.
   */
  observe(decider: TypedDecider | string, options?: ObserveOptions): Promise<Observed>
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
  /**
   * The timers of an instance that gave up, in order, and were not armed again since. None if there is no instance of this id.
   *
   * @example
   * for (const { name } of await holdfast.deadTimers(order, '42')) await holdfast.retryDeadTimer(order, '42', name)
   */
  deadTimers(decider: TypedDecider | string, id: string, options?: AbortOption): Promise<readonly TimerFailure[]>
  /**
   * Arms a timer that gave up once more: it is due at once, and its attempts are counted anew. `not-dead` if it is not among
   * `deadTimers`, or its instance is over. Rejects with WRONG_STATUS while the instance is paused.
   */
  retryDeadTimer(
    decider: TypedDecider | string,
    id: string,
    name: string,
    options?: AbortOption,
  ): Promise<{ readonly outcome: 'retried' | 'not-dead' }>
  /** Takes a timer that gave up from `deadTimers`; its journal keeps it. Otherwise as `retryDeadTimer`. */
  discardDeadTimer(
    decider: TypedDecider | string,
    id: string,
    name: string,
    options?: AbortOption,
  ): Promise<{ readonly outcome: 'discarded' | 'not-dead' }>
  /** How many inputs were enqueued and are not decided yet. */
  backlog(decider: TypedDecider | string, id: string, options?: AbortOption): Promise<Backlog>
}
