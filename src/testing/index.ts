// Everything that tests import from 'holdfast/testing': the contract of a store as data, and time, chance and logs that a
// test owns.

export { createVirtualClock, type VirtualClock } from './virtual-clock.ts'
export { createSeededRandom } from './seeded-random.ts'
export { createRecordingLogger, silentLogger, type LogLine, type RecordingLogger } from './logger.ts'
export { storeContract } from './contract/contract.ts'
export type { ContractCase } from './contract/contract-case.ts'
export { createContractBench, type ContractBench, type ContractClock, type ContractSubject } from './contract/bench.ts'
