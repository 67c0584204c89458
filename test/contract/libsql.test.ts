// A libsql: address keeps the contract: in memory, of a file, and of a server that speaks the protocol of libsql's servers.

import { afterAll, beforeAll } from 'vitest'
import { openLibsqlStore } from '../../src/stores/turso/index.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { startLibsqlServer, type LibsqlServer } from '../support/libsql-server.ts'
import { temporaryPaths } from '../unit/stores/sqlite/folder.ts'
import { missingUnlessFull } from './full.ts'
import { runContract } from './run-contract.ts'

const newPath = temporaryPaths()
let server: LibsqlServer
beforeAll(async () => {
  server = await startLibsqlServer()
})
afterAll(() => server.stop())

const open = async (url: string) => {
  const clock = createVirtualClock()
  return { store: await openLibsqlStore({ url, clock }), clock }
}

runContract('libsql: in memory', () => open('libsql::memory:'))

runContract('libsql: of a file', () => open(`libsql:${newPath()}`), missingUnlessFull)

runContract('libsql: of a server', () => open(server.addressOf(newPath())), missingUnlessFull)
