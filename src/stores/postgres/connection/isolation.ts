// The isolation of transactions. Our statements are written for READ COMMITTED, and so is a transaction of a user unless it asks
// for another: a serializable one is refused whenever a message arrives for its run. A role, a database or a server may have
// another default, so each transaction names its own, and connections that we open have it from their start, for statements
// outside of transactions. On a distributed database the operator chooses (docs/scaling.md).

/** The default of transactions that ask for nothing else; null leaves it to the server. */
export type DefaultIsolation = 'read committed' | null

export function isolationOn(distributed: boolean): DefaultIsolation {
  return distributed ? null : 'read committed'
}

export function beginSql(isolation: 'serializable' | DefaultIsolation): string {
  return isolation === null ? 'begin' : `begin isolation level ${isolation}`
}
