// How many statements workers ask a minute that have nothing to do. Their time belongs to the test, that of the file does not.

import { utimesSync } from 'node:fs'
import Database from 'libsql'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { createHoldfast } from '../../../../src/holdfast.ts'
import { openSqliteStore, type SqliteStoreOptions } from '../../../../src/stores/sqlite/index.ts'
import { createVirtualClock } from '../../../../src/testing/index.ts'
import { temporaryPaths } from './folder.ts'

const nextPath = temporaryPaths()

/** What the documentation says of an idle worker. */
const mostAMinute = 60

/** Every commit of a test was written at another time, a while ago: hardly any time passes in the world of the files. */
let commits = 0

function age(path: string): void {
  commits += 1
  const at = (Date.now() - 3_600_000 + commits) / 1_000
  for (const file of [path, `${path}-wal`]) utimesSync(file, at, at)
}

/** A connection that records everything that it is asked. */
function counting(path: string): { handle: NonNullable<SqliteStoreOptions['handle']>; asked: string[] } {
  const database = new Database(path)
  database.exec('pragma journal_mode = wal')
  onTestFinished(() => void database.close())
  const asked: string[] = []
  const counted = <Args extends unknown[], Answer>(sql: string, ask: (...args: Args) => Answer) => {
    return (...args: Args): Answer => {
      asked.push(sql)
      return ask(...args)
    }
  }
  const handle = {
    prepare(sql: string) {
      const statement = database.prepare(sql)
      return {
        run: counted(sql, (values: unknown) => statement.run(values)),
        get: counted(sql, (values: unknown) => statement.get(values)),
        all: counted(sql, (values: unknown) => statement.all(values)),
      }
    },
    exec(sql: string) {
      counted(sql, () => database.exec(sql))()
      if (sql === 'commit') age(path)
    },
    pragma: (source: string) => counted(source, () => database.pragma(source))(),
    close: () => database.close(),
  }
  return { handle, asked }
}

describe('workers that have nothing to do', { timeout: 60_000 }, () => {
  it.for([1, 2])('%i on one file ask at most sixty statements a minute each', async (workers) => {
    const path = nextPath()
    const clock = createVirtualClock()
    const types = Array.from({ length: 100 }, (_, index) => workflow(`idle-${index}`, () => index))
    const counts: string[][] = []
    for (let index = 0; index < workers; index += 1) {
      const { handle, asked } = counting(path)
      const store = await openSqliteStore({ handle })
      const holdfast = await createHoldfast({ store, workflows: types, ports: { clock } })
      onTestFinished(async () => {
        const closed = holdfast.close()
        await clock.advance(60_000)
        await closed
        await store.close()
      })
      await holdfast.work({ signals: false })
      // They do not beat at the same time.
      await clock.advance(3_333)
      counts.push(asked)
    }
    // Long enough for the pauses between two polls to have become as long as they become.
    await clock.advance(60_000)
    for (const asked of counts) asked.length = 0
    const minutes = 6
    await clock.advance(minutes * 60_000)
    for (const asked of counts) {
      expect(asked.length / minutes).toBeLessThanOrEqual(mostAMinute)
      // And they do ask: a test that counts nothing would pass, too.
      expect(asked.length / minutes).toBeGreaterThan(20)
    }
  })
})
