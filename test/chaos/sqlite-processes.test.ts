// Several real processes on one SQLite file.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createRunIds } from '../../src/core/model/run-id.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { createSeededRandom } from '../../src/testing/index.ts'
import { childProgram } from '../support/child-program.ts'
import { temporaryPaths } from '../unit/stores/sqlite/folder.ts'

const run = promisify(execFile)
const newPath = temporaryPaths()

/** Starts processes that open the file at the same moment; answers what each of them claimed. */
async function children(path: string, count: number): Promise<string[][]> {
  const program = await childProgram('test/chaos/sqlite-child.ts')
  const startAt = String(Date.now() + 1_500)
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const { stdout } = await run(process.execPath, [program, path, `child-${index}`, startAt])
      return JSON.parse(stdout) as string[]
    }),
  )
}

describe('processes on one file', { timeout: 60_000 }, () => {
  it('that start at once on a missing file make one schema', async () => {
    const path = newPath()
    expect(await children(path, 4)).toEqual([[], [], [], []])
    const store = await openSqliteStore({ path, driver: 'libsql' })
    await store.migrate()
    expect(await store.find({}, { limit: 1 })).toEqual([])
    await store.close()
  })

  it('SW-C1 that claim at once never get the same run, and none is left', async () => {
    const path = newPath()
    const store = await openSqliteStore({ path, driver: 'libsql' })
    await store.migrate()
    const clock = { now: () => Date.now(), monotonic: () => 0, after: () => () => undefined }
    const ids = createRunIds({ clock, random: createSeededRandom(1) })
    const first = { kind: 'started', name: null, meta: null, data: '1' } as const
    const rest = { due: null, timeoutMs: null, expiresInMs: null, lease: null, leaseMs: null, first }
    const named = {
      key: null,
      keyScope: 'workflow',
      idempotencyKey: null,
      parentId: null,
      tags: [],
      metadata: null,
      feed: true,
    } as const
    const made = Array.from({ length: 300 }, () => ids.next(0))
    await store.start(
      made.map((id) => ({
        id,
        shard: 0,
        type: 'chaos',
        version: 1,
        priority: 0,
        transition: `start.${id}`,
        ...named,
        ...rest,
      })),
    )
    const claimed = await children(path, 3)
    expect(claimed.flat().toSorted()).toEqual(made.toSorted())
    const rows = await store.get(made)
    expect(new Set(rows.map((row) => `${row?.status} ${row?.token} ${row?.seq}`))).toEqual(new Set(['succeeded 1 2']))
    const changes = await store.changes(0, 1_000)
    expect(changes.map(({ position }) => position)).toEqual(Array.from({ length: 600 }, (_, index) => index + 1))
    await store.close()
  })
})
