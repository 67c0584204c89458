// Everything that a store of another database is written with, imported from 'holdfast/store': the port, the rules that
// decide about runs, the units of work through which the rules read and write rows, and the rows themselves. The page
// docs/writing-a-store.md says how; 'holdfast/testing/store' has the contract that every store passes.

// The port.
export type {
  BatchOptions,
  Busy,
  Capabilities,
  Change,
  ChoresDone,
  StartBusy,
  Store,
  StoreEndHints,
  FeedEnd,
  StoreLimits,
  StoreProjections,
  StoreSecrets,
  StoreTransactions,
  TransactionMark,
  TransactionStore,
  TransactOptions,
} from './store.ts'
export type {
  DeadLetter,
  DeadLetterFilter,
  InvariantCheck,
  KeyCount,
  Page,
  PayloadRewrite,
  PayloadsRewritten,
  RunFilter,
  StoreAdmin,
} from './core/model/store-admin.ts'
export type { Clock } from './core/runtime/ports.ts'
export { HoldfastError, bug, isHoldfastError, type ErrorCode, type HoldfastErrorOptions } from './core/errors/error.ts'

// The rows.
export { holds, isTerminal, type ControlRequest, type Lease, type Run, type RunStatus } from './core/model/run.ts'
export type { Draft, Entry, EntryKind } from './core/model/entry.ts'
export { sends, type ChildStart, type Outbound, type Transition } from './core/model/transition.ts'
export type { NewRun, Started } from './core/model/new-run.ts'
export type { RunStart } from './core/rules/run-start.ts'
export {
  messagesAtOnce,
  type Delivered,
  type DeliveryOutcome,
  type Fate,
  type Message,
  type MessageKind,
  type MessageDraft,
} from './core/model/message.ts'
export type { Broadcast, Delivery, MessagePolicy, NewBroadcast, TopicRules } from './core/model/topic.ts'
export {
  endedSessionKeptMs,
  sessionsForgottenAtOnce,
  type Beat,
  type BeatRequest,
  type HeldClaim,
  type ReleasedLease,
} from './core/model/heartbeat.ts'
export {
  afterOthers,
  choreOrder,
  choreTakenMs,
  defaultPageLimits,
  hasExpired,
  isAfter,
  isFrom,
  nextChoreInMs,
  type Chore,
  type ChoreRow,
  type PageLimits,
  type WaitPosition,
} from './core/model/chore.ts'
export { uniqueText, type KeyScope } from './core/model/key.ts'
export { dueAt, type Due } from './core/model/due.ts'

// The rules, each with the rows that it reads and writes.
export type {
  BroadcastResult,
  KeptBroadcast,
  TopicUse,
  UnitOfWork,
  UnreadPage,
  WaiterPage,
  WaitRow,
} from './core/rules/messages/unit-of-work.ts'
export {
  follow,
  obstacleTo,
  startedBefore,
  startInRounds,
  startRun,
  type Followed,
  type ObstacleWork,
  type StartWork,
  type Twin,
} from './core/rules/start.ts'
export { foremost } from './core/rules/insert-order.ts'
export { newRow } from './core/rules/new-row.ts'
export {
  claimColumns,
  isClaimable,
  isClaimableByName,
  type ClaimColumns,
  type Claimed,
  type ClaimRequest,
  type ClaimSelector,
  type Fresh,
  type Selector,
} from './core/rules/claims/claim.ts'
export { dueOrder, inClaimOrder } from './core/rules/claims/claim-order.ts'
export {
  commit,
  commitInSteps,
  judge,
  type Committed,
  type CommitWork,
  type EntryMark,
  type CommitReads,
  type Keyed,
  type Refusal,
  type StartingWork,
} from './core/rules/commit.ts'
export { advanced, left, restOf } from './core/rules/advance.ts'
export {
  deliver,
  deliverToMailbox,
  withMessage,
  type DeliveryWork,
  type MailboxWork,
  type MessageReceived,
  type NewMessage,
} from './core/rules/messages/deliver.ts'
export { controlRun, type ControlWork } from './core/rules/control-run.ts'
export type { ControlCommand, ControlResult } from './core/rules/control.ts'
export { change, type ChangeWork } from './core/rules/change.ts'
export type { Rewrite } from './core/rules/rewrite.ts'
export {
  isOrphaned,
  isOverdue,
  nextRescue,
  releaseRun,
  rescuedTogether,
  rescueOrder,
  rescueRun,
  type RescuedRuns,
} from './core/rules/claims/rescue.ts'
export type { Rescued, RescueRequest } from './core/rules/claims/takeover.ts'
export {
  answerBeat,
  beatAnswer,
  extended,
  answerListed,
  answerUnlisted,
  lostPlaces,
  unknownLeasesAtOnce,
  type BeatRow,
  type ListedAnswer,
  type UnlistedAnswer,
} from './core/rules/claims/heartbeat.ts'
export { tidyTopic } from './core/rules/messages/unused-topics.ts'
export { doChore, firstUnread, firstWaiters, longestFirst } from './core/rules/messages/exchange.ts'
export { loadPage, type Loaded, type LoadRequest, type MailboxRequest } from './core/rules/claims/load.ts'
export { loadBudgets, type LoadBudget, type LoadBudgets } from './core/rules/claims/load-budget.ts'
export { fedCount } from './core/rules/feed-entries.ts'
export { Hints, hintsOf, type Hint } from './core/rules/messages/hints.ts'
export { matching } from './core/rules/find.ts'
export { deadLetterPage, type DeadLetterPosition } from './core/rules/messages/dead-letters.ts'
export {
  decideProjection,
  partsOf,
  type KnownParts,
  type ProjectionAnswer,
  type ProjectionCommand,
  type ProjectionDecided,
  type ProjectionOutcome,
} from './core/rules/projections/command-projection.ts'
export type {
  FailedEvent,
  ProjectionPart,
  ProjectionRow,
  ProjectionStatus,
  SkippedEvent,
} from './core/rules/projections/projection-row.ts'
export { countKeys, rewriteObjection } from './core/rules/claims/readable.ts'

// The invariants of every committed state of a store, for its `doctor`.
export { checkAll, checkExchange, checkFeed, report } from './core/invariants/check.ts'
export type { ExchangeState } from './core/invariants/exchange.ts'
export type { RunState, TakenMessage, Violation } from './core/invariants/invariant.ts'
