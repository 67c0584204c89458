// The roles of `holdfast migrate --roles` on the oldest Postgres that is promised: the contract with the rights of a worker.

import { afterAll } from 'vitest'
import { runContract } from '../contract/run-contract.ts'
import { AsWorker } from '../support/as-worker.ts'
import { missingPostgres } from '../support/postgres-binaries.ts'
import { forgetServer } from '../support/postgres-store.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'

let started: Promise<Cluster> | undefined
const asWorker = new AsWorker(async () => {
  started ??= startPostgres({ version: '15', settings: { fsync: 'off' } })
  return (await started).url
})

afterAll(async () => {
  const cluster = await started
  if (cluster === undefined) return
  await asWorker.drop()
  await forgetServer(cluster.url)
  await cluster.remove()
}, 60_000)

runContract('Postgres 15, as a worker,', () => asWorker.subject(), missingPostgres('15'))
