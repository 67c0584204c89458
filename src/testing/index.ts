// Everything that tests import from 'holdfast/testing': the contract of a store as data, time, chance and logs that a test
// owns, and a store that fails.

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
  type CountdownOptions,
  type FaultKind,
  type FaultPlan,
  type FaultRates,
  type FaultyMethod,
} from './faults.ts'
export { storeContract } from './contract/contract.ts'
export type { ContractCase } from './contract/contract-case.ts'
export { createContractBench, type ContractBench, type ContractClock, type ContractSubject } from './contract/bench.ts'
