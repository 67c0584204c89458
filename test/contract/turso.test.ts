// Turso in process keeps the contract, in memory and in a file. The file waits for the disk in every case, and a thousand
// subscribers take it a minute, so these are for `npm run test:turso`, which `npm run check:full` runs.

import { openTursoStore } from '../../src/stores/turso/index.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { temporaryPaths } from '../unit/stores/sqlite/folder.ts'
import { missingUnlessFull } from './full.ts'
import { runContract } from './run-contract.ts'

const newPath = temporaryPaths()

runContract(
  'PQ-S3 Turso in memory',
  async () => {
    const clock = createVirtualClock()
    return { store: await openTursoStore({ path: ':memory:', clock }), clock }
  },
  undefined,
  missingUnlessFull,
)

runContract(
  'Turso in a file',
  async () => {
    const clock = createVirtualClock()
    return { store: await openTursoStore({ path: newPath(), clock }), clock }
  },
  missingUnlessFull,
)
