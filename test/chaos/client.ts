// A client of the store of a chaos run, in the process that also conducts it. It waits only briefly for a lock on a SQLite file,
// so that the load goes on while a fault holds the lock, and reports that the store is unavailable.

import { createHoldfast, type Holdfast } from '../../src/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { silentLogger } from '../../src/testing/index.ts'
import { chaosWorkflows } from './workload.ts'

const busyMs = 500

export async function openClient(url: string): Promise<Holdfast> {
  const workflows = Object.values(chaosWorkflows(null, 1))
  const [, path] = /^sqlite:(.*)$/.exec(url) ?? []
  if (path === undefined) return createHoldfast({ store: url, workflows, logger: silentLogger })
  const store = await openSqliteStore({ path, storageTimeout: busyMs, logger: silentLogger })
  // The workers have made the tables, and to look at them again would need the right to write.
  const holdfast = await createHoldfast({ store, workflows, logger: silentLogger, migrate: false })
  return {
    ...holdfast,
    async close() {
      await holdfast.close()
      await store.close()
    },
  }
}
