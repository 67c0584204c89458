// The Postgres store keeps the contract, and every call of it keeps to its plan of statements.

import { afterAll, describe, expect, it } from 'vitest'
import { statementPlan } from '../read-committed/statement-plan.ts'
import { keptToPlan, noteStatement } from '../support/planned-store.ts'
import { closeKeptConnections, openOverKeptConnections } from '../support/postgres-store.ts'
import { runContract } from './run-contract.ts'

const executed = new Set<string>()
const methods = new Set<string>()

afterAll(closeKeptConnections)

// In a time that is not the machine's: no time in it comes from anywhere but the database. That every case
// may also begin on new connections is what the contract as a worker shows.
runContract('IF-S1 IF-S8 PQ-S3 Postgres', async () => {
  const { store, clock, finish } = await openOverKeptConnections({ onStatement: noteStatement })
  const onCall = (method: string, statements: readonly string[]): void => {
    methods.add(method)
    for (const statement of statements) executed.add(statement)
  }
  return { store: keptToPlan(store, onCall), clock, finish }
})

describe('the statement plan', () => {
  it('is watched: a call that does something else is rejected', async () => {
    const { get } = keptToPlan({ get: async () => noteStatement('find.read') })
    await expect(get()).rejects.toThrow('get did not keep to its plan')
  })

  it('is executed in all its parts by the contract on Postgres, and in none but them', () => {
    const planned = Object.values(statementPlan).flatMap((plan) => plan.map(({ name }) => name))
    expect([...executed].toSorted()).toEqual(planned.toSorted())
    expect([...methods].toSorted()).toEqual(Object.keys(statementPlan).toSorted())
  })
})
