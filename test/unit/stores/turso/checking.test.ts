// The state invariants as SQL, asked of Turso: each is broken by hand, and its statement must find it, as on SQLite.

import { Database } from '@tursodatabase/database/compat'
import { SqliteStore } from 'holdfast/sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkTables, checks } from '../../../../src/stores/sqlite/read/check.ts'
import { Connection } from '../../../../src/stores/sqlite/driver/connection.ts'
import { shareGate } from '../../../../src/stores/sqlite/transactions/gate.ts'
import { overTurso } from '../../../../src/stores/turso/driver.ts'
import { makeCorpus, type Corpus } from '../../../support/corpus.ts'
import { plants as plantsOfAll, type Plant } from '../../../support/plants.ts'

const database = new Database(':memory:')
const db = new Connection(overTurso(database))
let corpus: Corpus

beforeAll(async () => {
  corpus = await makeCorpus(async (clock) => {
    let version = 0
    const store = new SqliteStore({
      db,
      now: () => clock.now(),
      clock,
      state: () => ({ now: clock.now(), version: (version += 1) }),
      writes: { writes: 0 },
      ...shareGate(database),
      file: '',
      storageMs: 0,
      onClose: () => db.letGo(),
    })
    await store.migrate()
    return store
  })
}, 60_000)
afterAll(async () => {
  await corpus.close()
  database.close()
})

const plants: readonly Plant[] = [
  ...plantsOfAll,
  ['feed_complete', 'ready', `update feed set entries = replace(entries, ?, 'another run')`],
]

function broken(): Readonly<Record<string, readonly string[]>> {
  const found = checkTables(db, corpus.clock).filter(({ offenders }) => offenders.length > 0)
  return Object.fromEntries(found.map(({ name, offenders }) => [name, offenders]))
}

describe('on Turso the SQL of an invariant', () => {
  it('is broken by a plant for each', () => {
    expect([...new Set(plants.map(([name]) => name))].toSorted()).toEqual(Object.keys(checks).toSorted())
  })

  it('finds nothing in a healthy file', () => {
    expect(broken()).toEqual({})
  })

  it.each(plants.map((plant) => [plant[0], plant[1], plant] as const))(
    'finds that %s is broken by the run that is %s',
    (name, special, [, , ...statements]) => {
      database.exec('begin')
      try {
        for (const sql of statements) database.prepare(sql).run(sql.includes('?') ? [corpus.ids[special]] : [])
        const found = broken()
        expect(Object.keys(found)).toContain(name)
        if (!name.startsWith('feed_')) expect(found[name]).toContain(corpus.ids[special])
      } finally {
        database.exec('rollback')
      }
    },
  )
})
