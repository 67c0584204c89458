// Another open transaction holds a run or a topic to which a run sends. The sender's commit does not wait for it, nor do other
// receivers; what was sent arrives when the row is free, once and in order.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ContractBench, Held } from '../../src/testing/contract/bench.ts'
import { broadcastSent, ending, signalSent, step, waiting } from '../../src/testing/contract/drafts.ts'
import { jobs, on, outbound, subscribed } from '../../src/testing/contract/exchanges.ts'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { opened } from './proxied.ts'

interface Rig extends ContractBench {
  /** Another transaction locks these rows, until it is let go. */
  lock(table: 'runs' | 'topics', key: string): Promise<void>
  letGo(): Promise<void>
}

async function rig(shards: number): Promise<Rig> {
  const { url, schema } = await migratedSchema(shards)
  const { store, bench } = await opened({ url, schema, shards, storageTimeout: 3_000 })
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('begin')
  onTestFinished(async () => {
    expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
  return {
    ...bench,
    async lock(table, key) {
      const column = table === 'runs' ? 'id' : 'name'
      await client.query(`select 1 from ${schema}.${table} where ${column} = $1 for update`, [key])
    },
    letGo: async () => void (await client.query('rollback')),
  }
}

async function texts(bench: ContractBench, { runId }: Held): Promise<readonly string[]> {
  return (await bench.mailbox(runId)).map(({ data }) => data)
}

describe.each([1, 4])(
  'a receiver that another transaction has locked, with %i shards,',
  { timeout: 60_000 },
  (shards) => {
    it('keeps neither its sender waiting nor another receiver, and gets all in order', async () => {
      const bench = await rig(shards)
      const [sender, locked, free] = [await bench.hold(), await bench.hold(), await bench.hold()]
      await bench.lock('runs', locked.runId)
      const both = (text: string) => [signalSent(locked.runId, text), signalSent(free.runId, text)]
      await bench.commit(sender, { append: [...both('1'), ...both('2')] })
      await bench.commit(sender, { append: [step(), ...both('3')] })
      expect(await texts(bench, free)).toEqual(['1', '2', '3'])
      await bench.chores()
      expect((await bench.run(locked.runId)).inbox).toBe(0)
      await bench.commit(sender, { append: [...both('4'), ending('succeeded')], status: 'succeeded' })
      await bench.letGo()
      await until('it has got all', async () => {
        await bench.chores()
        return (await bench.run(locked.runId)).inbox === 4
      })
      expect(await texts(bench, locked)).toEqual(['1', '2', '3', '4'])
      expect(await texts(bench, free)).toEqual(['1', '2', '3', '4'])
      expect(await bench.store.doChores()).toEqual({ worked: false, nextInMs: null })
    })

    it('among many of one batch delays none of the others', async () => {
      const bench = await rig(shards)
      const [locked, free] = [await bench.hold(), await bench.hold()]
      const senders: Held[] = []
      for (let count = 0; count < 6; count += 1) senders.push(await bench.hold())
      await bench.lock('runs', locked.runId)
      const transitions = senders.map((one, at) =>
        bench.transition(one, { append: [signalSent(at % 2 === 0 ? locked.runId : free.runId, String(at))] }),
      )
      const answers = await bench.store.commit(transitions)
      expect(answers.map(({ outcome }) => outcome)).toEqual(senders.map(() => 'committed'))
      expect(new Set(await texts(bench, free))).toEqual(new Set(['1', '3', '5']))
      await bench.letGo()
      await until('it has got all', async () => {
        await bench.chores()
        return (await bench.run(locked.runId)).inbox === 3
      })
      expect(new Set(await texts(bench, locked))).toEqual(new Set(['0', '2', '4']))
    })

    it('may be a topic', async () => {
      const bench = await rig(shards)
      const [sender, waiter, other] = [await bench.hold(), await bench.hold(), await bench.hold()]
      await bench.commit(waiter, { append: [waiting()], outbound: outbound({ watches: [on(jobs)] }) })
      await bench.lock('topics', jobs.name)
      const sent = [broadcastSent(jobs, '1'), signalSent(other.runId, '1'), broadcastSent(jobs, '2')]
      expect(await bench.commit(sender, { append: sent })).toMatchObject({ outcome: 'committed' })
      expect(await texts(bench, other)).toEqual(['1'])
      expect((await bench.run(waiter.runId)).inbox).toBe(0)
      await bench.letGo()
      await until('it is delivered', async () => {
        await bench.chores()
        return (await bench.run(waiter.runId)).inbox === 1
      })
      expect(await texts(bench, waiter)).toEqual(['1'])
      await bench.chores()
      expect(await subscribed(bench, jobs)).toHaveLength(1)
    })
  },
)
