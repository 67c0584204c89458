// What the database says when a transaction cannot go on. Both end the transaction; both may be gone when it is repeated.

/** `40P01`: two transactions wait for each other. `23505`: a unique index has that key already. */
export type SqlState = '40P01' | '23505'

export class SqlError extends Error {
  override readonly name = 'SqlError'
  readonly state: SqlState

  constructor(state: SqlState, message: string) {
    super(message)
    this.state = state
  }
}

export function isUniqueViolation(error: unknown): boolean {
  return error instanceof SqlError && error.state === '23505'
}
