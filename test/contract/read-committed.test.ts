// The plan of statements keeps the contract: when each call goes on as soon as it can, and when the statements of concurrent
// calls come in between each other in orders that seeds decide. All the while every call keeps to its plan.

import { describe, expect, it } from 'vitest'
import { statementPlan } from '../../src/stores/statement-plan.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { Interleaver } from '../support/interleaver.ts'
import { createPlannedStore } from '../support/planned-store.ts'
import { runContract } from './run-contract.ts'

const executed = new Set<string>()
const methods = new Set<string>()

function open(schedule: (statement: string) => Promise<void>) {
  const clock = createVirtualClock()
  const store = createPlannedStore({ clock, schedule }, (method, statements) => {
    methods.add(method)
    for (const statement of statements) executed.add(statement)
  })
  return { store, clock }
}

runContract('the read-committed store, as fast as it goes', async () => open(async () => undefined))

for (const seed of [1, 2, 3]) {
  runContract(`the read-committed store, its statements in the order of seed ${seed}`, async () =>
    open(new Interleaver(seed).schedule),
  )
}

describe('the statement plan', () => {
  it('is executed in all its parts by the contract, so that no statement is planned in vain', () => {
    const planned = Object.values(statementPlan).flatMap((plan) => plan.map(({ name }) => name))
    expect([...executed].toSorted()).toEqual(planned.toSorted())
    expect([...methods].toSorted()).toEqual(Object.keys(statementPlan).toSorted())
  })
})
