// The application's own transactions, which steps and projections write with.

/**
 * The type of your transactions. Declare it once, and `ctx.transaction` and projections know it: with
 * `createHoldfast({ transaction })` it is the object that your library passes to its callback; without, the connection type of
 * the store's driver.
 *
 * @example
 * declare module 'holdfast' {
 *   interface Transactions { tx: import('pg').PoolClient }
 * }
 */
export interface Transactions {}

/** A transaction, as far as it was declared. */
export type Transaction = Transactions extends { readonly tx: infer Tx } ? Tx : unknown
