// The test kit for deciders. It becomes part of 'holdfast/testing' together with deciders.

export { given, type Expected, type ExpectedTimer, type Given, type When } from './given.ts'
export { checkLaws, type LawOptions } from './check-laws.ts'
