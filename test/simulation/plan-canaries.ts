// Errors that are planted into the statement plan of the read-committed store: `database/call.ts` says what each does.

import type { Canary } from './planting.ts'

export const planCanaries: readonly Canary[] = [
  {
    name: 'look-and-lock-in-one',
    bug: 'parking counts the messages in the statement that locks the run',
    budget: 2_000,
    mutation: { plan: 'look-and-lock-in-one' },
  },
  {
    name: 'no-lock-on-deliver',
    bug: 'a sender reads the run without taking it',
    budget: 400,
    mutation: { plan: 'no-lock-on-deliver' },
  },
  {
    name: 'look-then-insert',
    bug: 'keys are looked up before they are taken, and no primary key stands behind it',
    budget: 400,
    mutation: { plan: 'look-then-insert' },
  },
  {
    name: 'insert-and-look-in-one',
    bug: 'who has a key is looked up in the statement that takes it',
    budget: 200,
    mutation: { plan: 'insert-and-look-in-one' },
  },
  {
    name: 'keys-freed-early',
    bug: 'a run that is written frees its keys, although it lives',
    budget: 400,
    mutation: { plan: 'keys-freed-early' },
  },
  {
    name: 'keys-left-behind',
    bug: 'a run that ends or is removed keeps its keys',
    budget: 200,
    mutation: { plan: 'keys-left-behind' },
  },
  {
    name: 'no-recheck-on-claim',
    bug: 'a claim leases what it picked without judging it anew',
    budget: 400,
    mutation: { plan: 'no-recheck-on-claim' },
  },
  {
    name: 'beat-behind-a-lock',
    bug: 'a beat moves deadlines in the transaction that keeps the session, behind a stranger that has locked a row',
    budget: 400,
    mutation: { plan: 'beat-behind-a-lock' },
  },
  {
    name: 'rescue-behind-a-lock',
    bug: 'a rescue that may have to notify others of an end waits for a stranger that has locked a row',
    budget: 400,
    mutation: { plan: 'rescue-behind-a-lock' },
  },
  {
    name: 'end-behind-a-watcher',
    bug: 'an end waits for a stranger who has locked a run that it only notifies',
    budget: 400,
    mutation: { plan: 'end-behind-a-watcher' },
  },
  {
    name: 'head-row-locked',
    bug: 'a run that a stranger has locked keeps a claim from the next one',
    budget: 400,
    mutation: { plan: 'limit-before-lock' },
  },
]
