// The methods of a Holdfast for deciders. What changes something is refused inside of `decide` and `evolve`, and at once: its
// promise would be rejected only when they have returned.

import type { Definition } from '../../core/definition/definition.ts'
import { assertNotPure } from '../../core/runtime/pure-call.ts'
import type { Engine } from '../../engine/engine.ts'
import type { AbortOption } from '../abort-option.ts'
import { operation, type Operation } from '../operation.ts'
import type { Enqueuer, ExecuteOptions, Executor } from './executor.ts'
import { discardDeadTimer, readDeadTimers, retryDeadTimer } from './dead-timers.ts'
import { inspectInstance } from './inspect.ts'
import type { EventsOptions, InspectOptions, InstanceReader, ObserveOptions, StateOptions } from './instance-reader.ts'
import { observeInstances } from './observe.ts'
import { instanceHandle, readBacklog, readEvents, readHistory, readState } from './read-instance.ts'

export type DeciderMethods = Executor & Enqueuer & InstanceReader

type Named = Definition | string

/** @internal */
export function deciderMethods(engine: Engine, submit: (given: Operation) => Promise<unknown>): DeciderMethods {
  const execute = (decider: Named, input: unknown, options?: ExecuteOptions): Promise<unknown> => {
    assertNotPure('holdfast.execute()')
    return submit(operation.execute(decider, input, options))
  }
  const enqueue = (decider: Named, input: unknown, options?: ExecuteOptions): Promise<unknown> => {
    assertNotPure('holdfast.enqueue()')
    return submit(operation.enqueue(decider, input, options))
  }
  const methods = {
    execute,
    executeDynamic: execute,
    enqueue,
    state: (decider: Named, id: string, options?: StateOptions) => readState(engine, decider, id, options),
    inspect: (decider: Named, id: string, options?: InspectOptions) => inspectInstance(engine, decider, id, options),
    observe: (decider: Named, options?: ObserveOptions) => observeInstances(engine, decider, options),
    events: (decider: Named, id: string, options?: EventsOptions) => readEvents(engine, decider, id, options),
    history: (decider: Named, id: string, options?: EventsOptions) => readHistory(engine, decider, id, options),
    instance: (decider: Named, id: string, options?: AbortOption) => instanceHandle(engine, decider, id, options),
    deadTimers: (decider: Named, id: string, options?: AbortOption) => readDeadTimers(engine, decider, id, options),
    retryDeadTimer: (decider: Named, id: string, name: string, options?: AbortOption) =>
      retryDeadTimer(engine, { decider, id, name, options }),
    discardDeadTimer: (decider: Named, id: string, name: string, options?: AbortOption) =>
      discardDeadTimer(engine, { decider, id, name, options }),
    backlog: (decider: Named, id: string, options?: AbortOption) => readBacklog(engine, decider, id, options),
  }
  // The compiler knows what an operation of such a decider answers.
  return methods as unknown as DeciderMethods
}
