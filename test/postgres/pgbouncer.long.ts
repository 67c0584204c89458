// The store behind PgBouncer in transaction mode, which takes no settings at the start of a connection, gives every
// transaction another one, and delivers no notices.

import { Client, escapeIdentifier } from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import type { Hint } from '../../src/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { createContractBench } from '../../src/testing/contract/index.ts'
import { runContract } from '../contract/run-contract.ts'
import { manualPorts } from '../support/manual-ports.ts'
import { missingPgbouncer, startPgbouncer, type Pooler } from '../support/pgbouncer.ts'
import { sharedPostgres } from '../support/postgres-shared.ts'
import { openTestStore, type TestStore, type TestStoreOptions } from '../support/postgres-store.ts'

const missing = missingPgbouncer()
let started: Promise<Pooler> | undefined

/** With fewer connections than it has clients, so that they must share. */
function pooler(): Promise<Pooler> {
  return (started ??= sharedPostgres().then((url) => startPgbouncer(url, { default_pool_size: 3 })))
}

async function through(options: TestStoreOptions = {}): Promise<TestStore> {
  return openTestStore({ url: (await pooler()).url, ...options })
}

afterAll(async () => (await started)?.stop())

runContract('Postgres behind PgBouncer', () => through(), missing)

runContract(
  'Postgres behind PgBouncer, heard at its own address',
  async () => through({ hears: true, listen: await sharedPostgres() }),
  missing,
)

describe('behind PgBouncer', () => {
  it.for([1, 4])('many calls at once are served over %i connections of the store', async (connections, context) => {
    if (missing !== undefined) context.skip(missing)
    const subject = await through({ connections })
    const { store } = subject
    const { start, deliver, message } = createContractBench(subject)
    const runs = await Promise.all(Array.from({ length: 40 }, () => start()))
    await Promise.all(runs.map(({ id }) => deliver(message(id))))
    const loaded = await store.load(runs.map(({ id }) => ({ runId: id, after: 0, limit: 10 })))
    expect(loaded.filter(({ messages }) => messages.length === 1)).toHaveLength(40)
    await store.close()
  })

  it.for([
    ['refuses', {}],
    ['takes and drops', { ignore_startup_parameters: 'options,extra_float_digits' }],
  ] as const)('WC-S4 a call has an end though the pooler %s what limits it', async ([, settings], context) => {
    if (missing !== undefined) context.skip(missing)
    const server = await sharedPostgres()
    const own = await startPgbouncer(server, settings)
    const subject = await openTestStore({ url: own.url, storageTimeout: '900ms' })
    const { start, deliver, message } = createContractBench(subject)
    const { id } = await start()
    const rival = new Client({ connectionString: server })
    await rival.connect()
    await rival.query('begin')
    await rival.query(`select from ${escapeIdentifier(subject.schema)}.runs where id = $1 for update`, [id])
    await expect(deliver(message(id))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await rival.query('rollback')
    await rival.end()
    await deliver(message(id))
    await subject.store.close()
    await own.stop()
  })

  it('that nothing is heard is said once, and calls go on', async (context) => {
    if (missing !== undefined) context.skip(missing)
    const { logger, warnings } = manualPorts()
    // The server of the tests does not wait for the disk, which would be counted, too.
    const subject = await through({ hears: true, logger, unsafe: 'allow' })
    const { store } = subject
    const { start, claim } = createContractBench(subject)
    const heard: Hint[] = []
    await store.listen((hint) => heard.push(hint))
    expect(store.capabilities.notifies).toBe(false)
    const { type } = await start()
    // What is done here is known here.
    await expect.poll(() => heard).toContainEqual({ kind: 'ready', type })
    expect((await claim()).runs).toHaveLength(1)
    expect(warnings).toEqual([expect.stringContaining('found by polling')])
    await store.close()
  })

  it('what another process does is heard over a direct address', async (context) => {
    if (missing !== undefined) context.skip(missing)
    const { store, clock, schema } = await through({ hears: true, listen: await sharedPostgres() })
    const heard: Hint[] = []
    await store.listen((hint) => heard.push(hint))
    expect(store.capabilities.notifies).toBe(true)
    const url = (await pooler()).url
    const other = await openPostgresStore({ url, schema, now: clock.expression, listen: await sharedPostgres() })
    const { type } = await createContractBench({ store: other, clock }).start()
    await expect.poll(() => heard).toContainEqual({ kind: 'ready', type })
    await other.close()
    await store.close()
  })
})
