// The test kit for deciders: part of 'holdfast/testing'.

export { given, type Expected, type ExpectedTimer, type Given, type GivenOptions, type When } from './given.ts'
export { checkLaws, type LawOptions } from './check-laws.ts'
