// Starts of many processes, and of many keys at once: nobody waits for anybody who waits for them, and a batch is a few
// statements, however many keys are in it.

import { describe, expect, it, onTestFinished } from 'vitest'
import { openPostgresStore, type PostgresStore, type PostgresStoreOptions } from '../../src/stores/postgres/index.ts'
import { createContractBench } from '../../src/testing/contract/index.ts'
import { freshSchema } from '../support/postgres-shared.ts'
import { startWireProxy } from '../support/wire-proxy.ts'

const clock = { now: () => Date.now(), advance: () => undefined }

/** A start that waits for a key does so for 40 s, longer than a database takes to find a deadlock: how fast it is counts for nothing. */
const patient = { distributed: true, storageTimeout: '10min' } as const

async function open(
  place: { readonly url: string; readonly schema: string },
  shards = 1,
  options: Partial<PostgresStoreOptions> = {},
): Promise<{ readonly store: PostgresStore; readonly statements: string[] }> {
  const statements: string[] = []
  const onStatement = (name: string): void => void statements.push(name)
  const store = await openPostgresStore({ ...place, shards, listen: false, connections: 2, onStatement, ...options })
  onTestFinished(() => store.close())
  await store.migrate()
  statements.length = 0
  return { store, statements }
}

describe('starts', { timeout: 60_000 }, () => {
  it.each([
    ['keys', 1, (key: string) => ({ key })],
    ['idempotency keys', 1, (key: string) => ({ idempotencyKey: key })],
    ['idempotency keys', 4, (key: string) => ({ idempotencyKey: key })],
  ])(
    'of two processes with the same %s in opposite orders, over %i shards, never wait for each other',
    async (_, shards, named) => {
      const place = await freshSchema()
      const [one, other] = [await open(place, shards, patient), await open(place, shards, patient)]
      const bench = createContractBench({ store: one.store, clock })
      for (let race = 0; race < 5; race += 1) {
        const keys = Array.from({ length: 400 }, (_, index) => `${race} ${index}`)
        const runs = keys.map((key) => bench.newRun(named(key)))
        const rivals = keys.map((key) => bench.newRun(named(key))).toReversed()
        one.statements.length = 0
        other.statements.length = 0
        const answers = await Promise.all([one.store.start(runs), other.store.start(rivals)])
        expect(answers.flat().filter(({ created }) => created)).toHaveLength(keys.length)
        // A deadlock would have been broken by the database, and its victim sent again.
        for (const { statements } of [one, other]) {
          expect(statements.filter((name) => name === 'start.insert').length).toBeLessThanOrEqual(shards)
        }
      }
    },
  )

  it.each([1, 4, 16])('of 500 with idempotency keys are a few statements for each of %i shards', async (shards) => {
    const { url, schema } = await freshSchema()
    const proxy = await startWireProxy(url)
    onTestFinished(() => proxy.close())
    const { store, statements } = await open({ url: proxy.url, schema }, shards)
    const bench = createContractBench({ store, clock })
    const plain = Array.from({ length: 499 }, () => bench.newRun())
    const keyed = Array.from({ length: 250 }, (_, index) => bench.newRun({ idempotencyKey: `once ${index}` }))
    const both = Array.from({ length: 250 }, (_, index) =>
      bench.newRun({ idempotencyKey: `again ${index}`, key: `key ${index}` }),
    )
    const batches = [
      // One key among many that have none; many; all of them again, by another process; the same of all shards.
      [...plain, bench.newRun({ idempotencyKey: 'alone' })],
      [...keyed, ...both],
      [...keyed, ...both].map(({ idempotencyKey }) => bench.newRun({ idempotencyKey })),
    ]
    const created: number[] = []
    for (const batch of batches) {
      const before = proxy.statements.length
      statements.length = 0
      const answers = await store.start(batch)
      created.push(answers.filter((answer) => answer.created).length)
      expect(answers).toHaveLength(500)
      expect(new Set(answers.map(({ run }) => run?.id)).size).toBe(500)
      // To take the keys and to look who has them; to insert; to look for ids, and for who was first; to begin and to end.
      expect(proxy.statements.length - before).toBeLessThanOrEqual(5 * shards + 4)
      expect(statements.filter((name) => name === 'start.insert').length).toBeLessThanOrEqual(shards)
    }
    expect(created).toEqual([500, 500, 0])
    expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })

  it('that want the same in one batch are answered as one after the other, with several shards, too', async () => {
    const { url, schema } = await freshSchema()
    const { store } = await open({ url, schema }, 4)
    const bench = createContractBench({ store, clock })
    const [first, second] = [bench.newRun({ idempotencyKey: 'a', key: 'k' }), bench.newRun({ idempotencyKey: 'a' })]
    const third = bench.newRun({ idempotencyKey: 'b', key: 'k' })
    const fourth = bench.newRun({ idempotencyKey: 'b' })
    const answers = await store.start([first, second, third, fourth, { ...first }, bench.newRun({ id: first.id })])
    expect(answers.map(({ taken, run }) => [taken, run?.id])).toEqual([
      [null, first.id],
      ['idempotency-key', first.id],
      ['key', first.id],
      // What stood in the way of the third has set its other key free.
      [null, fourth.id],
      [null, first.id],
      ['id', first.id],
    ])
    expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
})
