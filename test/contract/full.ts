// Legs of the contract that take long are run by `npm run test:turso` and skipped otherwise, visibly.

/** Why a long leg is skipped; undefined if it is to be run. */
export const missingUnlessFull: string | undefined =
  process.env['MODE'] === 'full' ? undefined : 'a long leg: `npm run test:turso` runs it'
