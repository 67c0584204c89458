// Who looks on must raise an alarm: at a store that is broken, and where nothing goes on.

import Database from 'libsql'
import { afterEach, describe, expect, it } from 'vitest'
import { temporaryPaths } from '../unit/stores/sqlite/folder.ts'
import { openClient } from './client.ts'
import { untilDone, Watch } from './watch.ts'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'

const newPath = temporaryPaths()
let watch: Watch | null = null
afterEach(async () => {
  await watch?.end()
  watch = null
})

describe('the watch of a chaos run', () => {
  it('raises an alarm with the name of what is broken, and by whom', async () => {
    const path = newPath()
    const store = await openSqliteStore({ path })
    await store.migrate()
    await store.close()
    const client = await openClient(`sqlite:${path}`)
    const { id } = await client.start('chaos.saga', { n: 'x', ms: 1 })
    watch = await Watch.begin(`sqlite:${path}`)
    expect(await watch.look()).toEqual([])
    const database = new Database(path)
    database.prepare('update runs set due = 9000000000000').run([])
    database.close()
    expect(await watch.alarm).toMatchObject([{ name: 'ready_is_due', runs: [id] }])
    expect(watch.open).toBe(1)
    await client.close()
  })

  it('says what is done from what is stuck', async () => {
    let left = 10
    const shrinking = (): number => (left -= 1)
    const never = new Promise<void>(() => undefined)
    expect(await untilDone(Promise.resolve(), () => 1, 10)).toBe('done')
    expect(await untilDone(never, () => 1, 10)).toBe('stuck')
    expect(await untilDone(never, () => Math.max(3, shrinking()), 10)).toBe('stuck')
    expect(left).toBeLessThan(3)
  })
})
