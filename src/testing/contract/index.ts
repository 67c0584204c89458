// Everything that tests of a store import from 'holdfast/testing/store'. It is a separate entry because the cases are larger
// than the rest of the kit, which tests of workflows load without them.

export { storeContract } from './contract.ts'
export type { ContractCase } from './contract-case.ts'
export { createContractBench, type ContractBench, type ContractClock, type ContractSubject } from './bench.ts'
