// Everything that an application imports from 'holdfast'.

export {
  createHoldfast,
  createMemoryStore,
  type Holdfast,
  type HoldfastOptions,
  type RunningWorker,
} from './holdfast.ts'
export { workflow, type Body, type Workflow, type WorkflowOptions } from './functions/workflow.ts'
export type {
  ChildOptions,
  Context,
  ReceiveOptions,
  Services,
  StepOptions,
  TransactionStepOptions,
  Transaction,
  Transactions,
  UntilOptions,
} from './functions/context.ts'
export type { StepTools } from './core/attempt.ts'
export type { AllResult, RaceResult, TokenWait, Wait } from './functions/wait.ts'
export type { OnParentEnd, RunOutcome, SleepResult } from './functions/way.ts'
export type { ResultOptions, RunHandle } from './client/run-handle.ts'
export type { ActiveRun, VersionChoice, VersionFor } from './client/client.ts'
export type { JournalOptions, JournalPagesOptions } from './client/journal.ts'
export type { RunReference } from './client/run-reference.ts'
export type { StartOptions } from './client/start-options.ts'
export type { Starter } from './client/starts.ts'
export type { TransactionClient } from './client/using.ts'
export type { Sender } from './client/sends.ts'
export {
  operation,
  type OperationResult,
  type Operation,
  type OperationKind,
  type SettledOperation,
} from './client/operation.ts'
export type { BroadcastOptions, BroadcastOutcome, SignalOptions, SignalOutcome } from './client/sending.ts'
export type { SendOrStartOptions, SendOrStartOutcome } from './client/send-or-start.ts'
export type { CompleteOptions, CompleteOutcome } from './client/completing.ts'
export type { KeyReference, Target } from './client/target.ts'
export type {
  DeadLetterOptions,
  DeadLetterPage,
  DeadLetterReference,
  DeadLetterView,
  RetryDeadLetterOptions,
  RetryDeadLetterOutcome,
} from './client/dead-letters.ts'
export { topic, type Topic, type TopicOptions } from './core/declared-topic.ts'
export type { TransactionRunner } from './engine/transacting.ts'
export type { ExportedRun } from './client/exporting.ts'
export type { BodyOutcome, ReplayResult, UnfinishedBody } from './engine/replaying.ts'
export type { RekeyResult, RekeyOptions } from './client/rekeying.ts'
export type { JournalEntry, PauseView, RunView, UnreadableView, ControlRequestView } from './client/run-view.ts'
export type { AbortOption } from './client/abort-option.ts'
export type { CountResult, CountOptions, Filter, FindOptions, RunPage } from './client/finding.ts'
export type { ResumeManyOptions } from './client/bulk.ts'
export type { BulkOptions, BulkOutcome } from './client/in-bulk.ts'
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
} from './client/steering.ts'
export type { Amendment } from './client/amending.ts'
export type { Submission } from './client/submission.ts'
export type { RecoveryCount } from './worker/rescuer.ts'
export type { WorkOptions } from './worker/work-options.ts'
export { fatal, retryAfter } from './core/verdict.ts'
export { retryPresets, type Jitter, type Retry, type RetryOptions } from './core/retry.ts'
export type { Duration } from './core/duration.ts'
export { HoldfastError, isHoldfastError, type ErrorCode, type ErrorFamily } from './core/error.ts'
export { jsonCodec, type Codec, type JsonCodecOptions, type Place } from './core/codec.ts'
export type { PlaceKind } from './core/place.ts'
export type { Limits } from './core/limits.ts'
export type { Offload } from './core/payload.ts'
export type { Cancel, Clock, Logger, Ports, Random, Turns } from './core/ports.ts'
export type { PauseReason, RunStatus } from './core/run.ts'
export { compositeValue, type KeyScope } from './core/key.ts'
export type { CancelMode } from './core/steering.ts'
export type { Drift, EntryKind, FoundCall } from './core/entry.ts'
export type {
  InvariantCheck,
  Delivered,
  Store,
  StoreAdmin,
  StoreTransactions,
  TransactOptions,
  TransactionStore,
} from './store.ts'
export type { Schema } from './core/schema.ts'
