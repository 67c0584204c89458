// The memory store is the oracle: whatever is done to it and to SQLite in the same order has the same answers and leaves
// the same state, while time jumps.

import { expect, it } from 'vitest'
import type { Run } from '../../src/core/model/run.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { createContractBench } from '../../src/testing/contract/index.ts'
import { OperationGenerator, type AnyStore } from './operation-generator.ts'

/** When a timed run that has come due is called ready is a store's own affair. */
function settled(value: unknown, now: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => settled(item, now))
  const members = Object.entries(value).map(([key, member]) => [key, settled(member, now)] as const)
  const object: Record<string, unknown> = Object.fromEntries(members)
  if (object['readiness'] === 'timed' && Number(object['due']) <= now) object['readiness'] = 'ready'
  return object
}

async function everyRun(store: AnyStore): Promise<readonly Run[]> {
  const page = { limit: 10_000 }
  return [...(await store.find({}, page)), ...(await store.find({ deleted: true }, page))]
}

/** Everything that a store holds, but for the order in which one rescue wrote. */
async function snapshot(store: AnyStore): Promise<unknown> {
  const runs = await everyRun(store)
  const loaded = await store.load(runs.map(({ id }) => ({ runId: id, after: 0, limit: 10_000 })))
  const changes = (await store.changes(0, 100_000)).map(({ runId, entry }) => `${entry.at} ${runId} ${entry.seq}`)
  const dead = await store.deadLetters({}, { limit: 10_000 })
  return { runs, loaded, dead, changes: changes.toSorted() }
}

/** What a store finds wrong between its runs. */
async function brokenBetween(store: AnyStore): Promise<readonly string[]> {
  const checked = await store.doctor()
  return checked
    .filter(
      ({ name, offenders }) =>
        ['end_notified', 'queue_not_stuck', 'late_catch_up', 'leftovers_settled'].includes(name) &&
        offenders.length > 0,
    )
    .map(({ name }) => name)
}

/** How those who asked were answered. */
function answersIn(answer: unknown): readonly string[] {
  if (!Array.isArray(answer)) return []
  return answer.flatMap((one: Readonly<Record<string, unknown>> | null) =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
      ? ['outcome', 'reason', 'taken'].flatMap((key) => (typeof one[key] === 'string' ? [one[key]] : []))
      : [],
  )
}

/** Which states the oracle went through, over all seeds: a run that met none of them proves nothing. */
const seen = new Set<string>()

it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])(
  'SQLite and the memory store do the same, seed %i',
  async (seed) => {
    const clock = createVirtualClock()
    const memory = new MemoryStore({ clock })
    const sqlite = await openSqliteStore({ path: ':memory:', clock })
    await sqlite.migrate()
    const generator = new OperationGenerator(seed, createContractBench({ store: memory, clock }))
    const compare = async (when: string): Promise<void> => {
      const state = settled(await snapshot(memory), clock.now())
      expect({ when, state: settled(await snapshot(sqlite), clock.now()) }).toEqual({ when, state })
      for (const store of [memory, sqlite])
        expect({ when, broken: await brokenBetween(store) }).toEqual({ when, broken: [] })
    }
    for (let count = 0; count < 400; count += 1) {
      const rows = await everyRun(memory)
      for (const { status, readiness, controlRequest, deletedAt } of rows) {
        seen.add(`${status} ${readiness}`)
        if (controlRequest !== null) seen.add(`${status} control request to ${controlRequest.kind}`)
        if (deletedAt !== null) seen.add(`deleted ${readiness}`)
      }
      for (const { messages } of await memory.load(rows.map(({ id }) => ({ runId: id, after: 0, limit: 0 })))) {
        for (const { kind, data } of messages)
          seen.add(data.includes('subscribers') ? 'message crowded' : `message ${kind}`)
      }
      if ((await memory.deadLetters({}, { limit: 1 })).length > 0) seen.add('dead letter')
      const operation = generator.next(rows)
      const expected = settled(await operation(memory), clock.now())
      expect(settled(await operation(sqlite), clock.now()), `operation ${count}`).toEqual(expected)
      for (const answer of answersIn(expected)) seen.add(answer)
      if (count % 10 === 0) await compare(`after operation ${count}`)
      if (generator.below(3) === 0) await clock.advance(generator.below(40))
    }
    await compare('at the end')
    await sqlite.close()
  },
)

it('the operations led runs through every state', () => {
  const states = ['pending ready', 'pending timed', 'running leased', 'waiting idle', 'waiting ready', 'waiting timed']
  const apart = ['pending isolated', 'cancelling isolated']
  const ends = ['paused idle', 'succeeded idle', 'failed idle', 'cancelled idle']
  const cancelling = [
    'cancelling ready',
    'cancelling leased',
    'cancelling timed',
    'cancelling control request to cancel',
  ]
  const asked = ['running control request to pause', 'deleted idle', 'deleted leased']
  const taken = ['id', 'key', 'idempotency-key', 'key-taken']
  const refusals = ['ended', 'cancelling', 'not-paused', 'not-failed', 'undone', 'changed', 'deleted', 'stale']
  const messages = [
    'message crowded',
    'message signal',
    'message broadcast',
    'message ended',
    'message refused',
    'dead letter',
  ]
  const sent = ['delivered', 'queued', 'target-terminated', 'target-not-found', 'full']
  const all = [
    ...messages,
    ...sent,
    ...states,
    ...apart,
    ...ends,
    ...cancelling,
    ...asked,
    ...taken,
    ...refusals,
    'lease-lost',
    'not-found',
  ]
  expect(all.filter((one) => !seen.has(one))).toEqual([])
})
