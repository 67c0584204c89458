// Everything that tests of a store import from 'holdfast/testing/store'. It is an entry of its own because the cases weigh more
// than the rest of the kit, which tests of workflows load without them.

export { storeContract } from './contract.ts'
export type { ContractCase } from './contract-case.ts'
export { createContractBench, type ContractBench, type ContractClock, type ContractSubject } from './bench.ts'
