// Several processes write while the one that projects is killed again and again, and a transaction is held open meanwhile: the
// read model is the fold all the same, each event is in it once, and three projections have the same order.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, type StoreTransactions } from '../../src/index.ts'
import { counterOf, OwnTables } from '../holdfast/projections/read-model.ts'
import { childProgram } from '../support/child-program.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { until } from '../support/until.ts'
import { temporaryPaths } from '../unit/stores/sqlite/folder.ts'
import { openAt } from './projecting-store.ts'

const newPath = temporaryPaths()

const writers = 3
const inputs = 120
const kills = 5

const places = {
  // One writer at a time: a transaction that is held open holds up all others, and has no events that others could overtake.
  sqlite: { address: async () => `sqlite ${newPath()}`, heldMs: 500, heldEvents: 0 },
  postgres: {
    address: async () => {
      const { url, schema } = await migratedSchema()
      return `postgres ${url} ${schema}`
    },
    heldMs: 3_000,
    heldEvents: 1,
  },
} as const

async function child(...args: readonly string[]): Promise<ChildProcess> {
  const program = await childProgram('test/chaos/projecting-child.ts')
  const started = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void started.kill('SIGKILL'))
  return started
}

describe.each(Object.entries(places))('on %s', (_name, { address: newAddress, heldMs, heldEvents }) => {
  it(
    'IF-O6 IF-O7 IF-C5 every event is projected once and in one order, whichever process is killed',
    { timeout: 120_000 },
    async () => {
      const address = await newAddress()
      const store = await openAt(address)
      await store.migrate()
      const counter = counterOf()
      const holdfast = await createHoldfast({ store, workflows: [counter] })
      onTestFinished(async () => {
        await holdfast.close()
        await store.close()
      })
      const tables = new OwnTables(store)
      const users = store as typeof store & StoreTransactions
      await users.transact(async (tx) => {
        for (const nth of ['1', '2', '3']) await tables.make(tx, nth)
      })
      const names = Array.from({ length: writers }, (_, nth) => `writer${nth}`)
      const writing = await Promise.all(names.map((name) => child('write', address, name, String(inputs))))
      const ended = Promise.all(writing.map((one) => once(one, 'exit')))
      const held = users.transact(async (tx) => {
        if (heldEvents > 0) await holdfast.using(tx).execute(counter, { type: 'Add', id: 'held', by: 1 })
        await setTimeout(heldMs)
      })
      for (let nth = 0; nth < kills; nth += 1) {
        const [one, other] = [await child('project', address), await child('project', address)]
        await Promise.all([once(one.stdout as NonNullable<ChildProcess['stdout']>, 'data'), setTimeout(400 + 50 * nth)])
        one.kill('SIGKILL')
        other.kill('SIGKILL')
      }
      expect((await ended).map(([code]) => code as unknown)).toEqual(names.map(() => 0))
      await held
      await child('project', address)
      const isAtEnd = async (): Promise<boolean> => {
        const all = await holdfast.projections.list()
        return all.length === 3 && all.every(({ lag }) => lag.events === 0)
      }
      await until('the projections are at the end', isAtEnd, 60_000)
      const written = await Promise.all(['1', '2', '3'].map((nth) => tables.events(nth)))
      const orders = written.map((events) => events.map(({ id }) => String(id)))
      const changes = await store.changes(0, 100_000)
      const fed = changes.filter(({ entry }) => entry.kind === 'event' && entry.name === 'Added')
      const expected = fed.map(({ runId, entry }) => `${runId}:${entry.seq}`)
      expect(expected).toHaveLength(writers * inputs + heldEvents)
      for (const order of orders) expect(order).toEqual(expected)
      for (const nth of ['1', '2', '3']) {
        const sums = await tables.sums(nth)
        for (const [id, sum] of Object.entries(sums)) expect(await holdfast.state(counter, id)).toBe(sum)
        expect(Object.keys(sums)).toHaveLength(5 + heldEvents)
      }
      expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    },
  )
})
