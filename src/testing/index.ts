// Everything that tests import from 'holdfast/testing': for workflows, a test world with crashes; a store that fails; time,
// randomness and logs that a test controls; and replays of recorded runs. The contract of stores is in
// 'holdfast/testing/store'.

export {
  createTest,
  type CrashOptions,
  type DrainOptions,
  type TestOptions,
  type WorkflowTest,
} from './kit/create-test.ts'
export {
  crashEverywhere,
  type CrashEverywhereOptions,
  type CrashOutcome,
  type CrashReport,
} from './kit/crash/crash-everywhere.ts'
export type { StepAttempt } from './kit/attempts.ts'
export type { BodyChecks } from './kit/body-watch.ts'
export type { TestStore } from './kit/test-store.ts'
export type { FailOptions, SlowOptions } from './kit/scripts.ts'
export type { TrialPlan } from './kit/crash/trial-plan.ts'
export type { WaitCondition, WaitingRun } from './kit/waiting-run.ts'

export {
  checkHistory,
  checkLaws,
  given,
  type Expected,
  type ExpectedTimer,
  type Given,
  type KeptEvent,
  type LawOptions,
  type When,
} from './deciders/index.ts'
export { createVirtualClock, type VirtualClock } from './virtual-clock.ts'
export { createSeededRandom } from './seeded-random.ts'
export { createRecordingLogger, silentLogger, type LogLine, type RecordingLogger } from './logger.ts'
export {
  brokenDriver,
  faultAtCall,
  faultKinds,
  faultsByRate,
  unavailable,
  withFaults,
  type FaultAtCallOptions,
  type FaultKind,
  type FaultPlan,
  type FaultRates,
  type FaultyMethod,
} from './faults.ts'
export { replay, type ReplayOptions } from './replay.ts'
