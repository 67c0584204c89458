// SQLite keeps the contract through every driver that this runtime has, in memory and in a file.

import { mkdtempSync, rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { runContract } from './run-contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-contract-'))
let files = 0

afterAll(() => rmSync(folder, { recursive: true }))

runContract('PQ-S3 SW-S6 SQLite through libsql, in memory', async () => {
  const clock = createVirtualClock()
  return { store: await openSqliteStore({ path: ':memory:', driver: 'libsql', clock }), clock }
})

runContract('SQLite through libsql, in a file', async () => {
  const clock = createVirtualClock()
  const path = join(folder, `${(files += 1)}.db`)
  return { store: await openSqliteStore({ path, driver: 'libsql', clock }), clock }
})

runContract(
  'SQLite through node:sqlite, in a file',
  async () => {
    const clock = createVirtualClock()
    const path = join(folder, `${(files += 1)}.db`)
    return { store: await openSqliteStore({ path, driver: 'node:sqlite', clock }), clock }
  },
  isBuiltin('node:sqlite')
    ? undefined
    : 'this runtime has no node:sqlite; `npm run test:node24` runs it on one that has',
)
