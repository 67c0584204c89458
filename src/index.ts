// Everything that an application imports from 'holdfast'.

export {
  createHoldfast,
  createMemoryStore,
  type Holdfast,
  type HoldfastOptions,
  type RunningWorker,
} from './holdfast.ts'
export { workflow, type Body, type Workflow, type WorkflowOptions } from './functions/workflow.ts'
export type { Context, Services, StepOptions } from './functions/context.ts'
export type { StepTools } from './functions/attempt.ts'
export type { TimeReached, Wait } from './functions/wait.ts'
export type { ResultOptions, RunHandle } from './client/run-handle.ts'
export type { RunReference, StartOptions } from './client/client.ts'
export type { JournalEntry, RunView } from './client/run-view.ts'
export type { TookOver } from './worker/rescuer.ts'
export type { WorkOptions } from './worker/worker.ts'
export { fatal, retryAfter } from './core/verdict.ts'
export { retryPresets, type Jitter, type Retry, type RetryOptions } from './core/retry.ts'
export type { Duration } from './core/duration.ts'
export { HoldfastError, isHoldfastError, type ErrorCode, type ErrorFamily } from './core/error.ts'
export { jsonCodec, type Codec, type JsonCodecOptions, type Place } from './core/codec.ts'
export type { Offload } from './core/payload.ts'
export type { Cancel, Clock, Logger, Ports, Random, Turns } from './core/ports.ts'
export type { RunStatus } from './core/run.ts'
export type { EntryKind } from './core/entry.ts'
export type { Store, StoreAdmin } from './store.ts'
export type { Schema } from './core/schema.ts'
