// Everything that an application imports from 'holdfast'.

export {
  createHoldfast,
  createMemoryStore,
  type Holdfast,
  type HoldfastOptions,
  type RunningWorker,
} from './holdfast.ts'
export { workflow, type Body, type Workflow, type WorkflowOptions } from './functions/api/workflow.ts'
export {
  decider,
  decision,
  reject,
  type DeadTimer,
  type Decider,
  type DeciderOptions,
  type DeciderTypes,
  type DecideTools,
  type Decision,
  type DedupOptions,
  type EffectHandler,
  type EffectOption,
  type ErasedEvent,
  type Outcome,
  type Rejected,
  type SignalTarget,
  type TimerTime,
  type Typed,
} from './deciders/index.ts'
export {
  memoryProjection,
  projection,
  subscription,
  type AnyEvent,
  type EventSource,
  type EventTools,
  type MemoryProjection,
  type MemoryProjectionOptions,
  type Projection,
  type ProjectionOptions,
  type RebuildHooks,
  type SubscriptionOptions,
  type TransactionTools,
  type WorkedProjection,
} from './projections/definition.ts'
export {
  tableProjection,
  type TableProjection,
  type TableProjectionOptions,
  type TableRow,
} from './projections/table-projection.ts'
export type { ColumnType, ColumnTypes } from './projections/table-sql.ts'
export type { ProjectionView, ProjectOptions, RunningMemoryProjection } from './projections/projections.ts'
export type { ProjectionControl } from './projection-control.ts'
export type { RunningProjection } from './projections/running-projection.ts'
export type { Lag } from './projections/lag.ts'
export type { EffectTools, Executed, TypedDecider } from './core/definition/decider-model.ts'
export type { Enqueued, Enqueuer, ExecuteOptions, Executor } from './client/deciders/executor.ts'
export type {
  EventsOptions,
  InspectOptions,
  InstanceReader,
  ObserveOptions,
  StateOptions,
} from './client/deciders/instance-reader.ts'
export type {
  Backlog,
  EventCause,
  HistoricEvent,
  Inspection,
  Observed,
  ObservedTransition,
  PendingEffectView,
  PendingTimerView,
  TimerFailure,
} from './client/deciders/instance-views.ts'
export { diagram, type DiagramFormat, type DiagramOptions } from './client/deciders/diagram/diagram.ts'
export type { MachineTransition, StateInfo, StateMachine, TransitionInfo } from './core/definition/state-machine.ts'
export type { InputSource } from './core/model/entry.ts'
export type {
  ChildOptions,
  Context,
  Message,
  MessageOptions,
  ReceiveOptions,
  SendOptions,
  SendTarget,
  StepOptions,
  TransactionStepOptions,
  UntilOptions,
} from './functions/api/context.ts'
export type { Services } from './core/definition/services.ts'
export type { Transaction, Transactions } from './core/definition/transactions.ts'
export type { StepTools } from './core/runtime/attempt.ts'
export type { AllResult, RaceResult, TokenWait, Wait } from './functions/waits/wait.ts'
export type { OnParentEnd, RunOutcome, SleepResult } from './functions/waits/wait-case.ts'
export type { ResultOptions, RunHandle } from './client/run-handle.ts'
export type { ActiveRun, VersionChoice, VersionFor } from './client/client.ts'
export type { JournalOptions, JournalPagesOptions } from './client/read/journal.ts'
export type { RunReference } from './client/run-reference.ts'
export type { StartOptions } from './client/start/start-options.ts'
export type { Starter } from './client/start/starts.ts'
export type { TransactionClient } from './client/using.ts'
export type { Sender } from './client/send/sends.ts'
export {
  operation,
  type OperationResult,
  type Operation,
  type OperationKind,
  type SettledOperation,
} from './client/operation.ts'
export type { BroadcastOptions, BroadcastOutcome, SignalOptions, SignalOutcome } from './client/send/send.ts'
export type { SendOrStartOptions, SendOrStartOutcome } from './client/start/send-or-start.ts'
export type { AskOptions } from './client/send/ask.ts'
export type { CompleteOptions, CompleteOutcome } from './client/send/complete.ts'
export type { KeyReference, Target } from './client/send/signal-target.ts'
export type {
  DeadLetterOptions,
  DeadLetterPage,
  DeadLetterReference,
  DeadLetterView,
  RetryDeadLetterOptions,
  RetryDeadLetterOutcome,
} from './client/send/dead-letters.ts'
export { topic, type Topic, type TopicOptions } from './core/definition/declared-topic.ts'
export type { TransactionRunner } from './engine/store/transact.ts'
export type { ExportedRun } from './client/read/export-run.ts'
export type { BodyOutcome, ReplayResult, UnfinishedBody } from './engine/replay/replay-run.ts'
export type { RekeyResult, RekeyOptions } from './client/control/rekey.ts'
export type { JournalEntry, PauseView, RunView, UnreadableView, ControlRequestView } from './client/read/run-view.ts'
export type { UnreadMessages, UnreadName } from './client/read/unread.ts'
export type { AbortOption } from './client/abort-option.ts'
export type { CountResult, CountOptions, Filter, FindOptions, RunPage } from './client/read/find.ts'
export type { ResumeManyOptions } from './client/control/bulk-control.ts'
export type { BulkOptions, BulkOutcome } from './client/control/bulk-pages.ts'
export type {
  CancelOutcome,
  CancelOptions,
  NoteOptions,
  PauseOutcome,
  PauseOptions,
  RemoveOptions,
  ResumeOptions,
  ResumeOutcome,
  RetryOutcome,
} from './client/control/run-control.ts'
export type { Amendment } from './client/control/amend.ts'
export type { StartBuilder } from './client/start/start-builder.ts'
export type { RecoveryCount } from './worker/rescuer.ts'
export type { WorkOptions } from './worker/work-options.ts'
export { fatal, retryAfter } from './core/definition/retry-mark.ts'
export { retryPresets, type Jitter, type Retry, type RetryOptions } from './core/definition/retry.ts'
export type { Duration } from './core/definition/duration.ts'
export { HoldfastError, isHoldfastError, type ErrorCode, type ErrorFamily } from './core/errors/error.ts'
export { jsonCodec, type Codec, type JsonCodecOptions, type Place } from './core/payload/codec.ts'
export type { PlaceKind } from './core/payload/place.ts'
export type { Limits } from './core/definition/limits.ts'
export type { Offload } from './core/payload/payload.ts'
export type { Cancel, Clock, Logger, Ports, Random, Turns } from './core/runtime/ports.ts'
export type { PauseReason, RunStatus } from './core/model/run.ts'
export { compositeValue, type KeyScope } from './core/model/key.ts'
export type { CancelMode } from './core/rules/control.ts'
export type { Drift, EntryKind, FoundCall } from './core/model/entry.ts'
export type {
  InvariantCheck,
  Delivered,
  Store,
  FailedEvent,
  ProjectionStatus,
  SkippedEvent,
  StoreAdmin,
  StoreTransactions,
  TransactOptions,
  TransactionStore,
} from './store.ts'
export type { Schema } from './core/definition/schema.ts'
