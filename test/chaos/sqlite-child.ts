// A process of its own on a SQLite file: opens it, waits for the word, claims run after run until none is left, and
// prints what it got. Started by sqlite-processes.test.ts.

import { setTimeout } from 'node:timers/promises'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'

const [path = '', session = '', startAt = '0'] = process.argv.slice(2)
await setTimeout(Math.max(0, Number(startAt) - Date.now()))
const store = await openSqliteStore({ path, driver: 'libsql' })
await store.migrate()
await store.beat({ session, leaseMs: 30_000 })
const claimed: string[] = []
for (let empty = 0; empty < 3;) {
  const { runs } = await store.claim({ session, selectors: [{ type: 'chaos', version: 1 }], limit: 3 })
  empty = runs.length === 0 ? empty + 1 : 0
  claimed.push(...runs.map(({ id }) => id))
  const answers = await store.commit(
    runs.map(({ id, seq, token }) => ({
      id: `${session}.${id}`,
      runId: id,
      guard: { seq, lease: { session, token } },
      append: [{ kind: 'succeeded', name: null, meta: null, data: `"${session}"` }],
      status: 'succeeded',
      due: null,
      parkIf: null,
      undo: null,
      continues: null,
      takes: [],
    })),
  )
  if (answers.some(({ outcome }) => outcome !== 'committed')) throw new Error(JSON.stringify(answers))
  await setTimeout(1)
}
await store.close()
console.log(JSON.stringify(claimed))
