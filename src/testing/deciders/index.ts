// The test kit for deciders: part of 'holdfast/testing'.

export { given, type Expected, type ExpectedTimer, type Given, type GivenOptions, type When } from './given.ts'
export { checkHistory } from './check-history.ts'
export { checkLaws, type LawOptions } from './check-laws.ts'
export type { KeptEvent } from './past-journal.ts'
