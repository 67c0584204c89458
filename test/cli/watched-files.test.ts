// Files that change: what counts as a change of the code, and what must not restart anything.

import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WatchedFiles, type WatchedPath } from '../../src/cli/dev/watched-files.ts'
import { folder } from './world.ts'

interface Project {
  readonly place: string
  readonly changes: readonly string[]
  /** Settles when a change of this file was reported. */
  readonly changesAfter: (file: string) => Promise<void>
}

async function project(more: readonly WatchedPath[] = []): Promise<Project> {
  const place = folder()
  mkdirSync(join(place, 'src', 'deep'), { recursive: true })
  mkdirSync(join(place, 'node_modules', 'some'), { recursive: true })
  mkdirSync(join(place, '.git'))
  writeFileSync(join(place, 'src', 'a.ts'), 'a')
  const changes: string[] = []
  const files = new WatchedFiles([{ path: place }, ...more], (file) => changes.push(file.slice(place.length + 1)))
  onTestFinished(() => files.stop())
  await files.start()
  const changesAfter = async (file: string): Promise<void> => {
    await expect.poll(() => changes, { interval: 20, timeout: 10_000 }).toContain(file)
  }
  return { place, changes, changesAfter }
}

describe('a file of the project', () => {
  it('is noticed when it is written, replaced, made in a new folder, or gone', async () => {
    const { place, changes, changesAfter } = await project()
    writeFileSync(join(place, 'src', 'a.ts'), 'b')
    await changesAfter('src/a.ts')
    // As many editors save: the new text takes the place of the old.
    writeFileSync(join(place, 'src', 'b.tmp'), 'bb')
    renameSync(join(place, 'src', 'b.tmp'), join(place, 'src', 'b.mjs'))
    await changesAfter('src/b.mjs')
    mkdirSync(join(place, 'src', 'deep', 'new', 'er'), { recursive: true })
    writeFileSync(join(place, 'src', 'deep', 'new', 'er', 'c.js'), 'c')
    await changesAfter('src/deep/new/er/c.js')
    // The new folder is watched, too.
    writeFileSync(join(place, 'src', 'deep', 'new', 'er', 'd.cts'), 'd')
    await changesAfter('src/deep/new/er/d.cts')
    rmSync(join(place, 'src', 'deep', 'new'), { recursive: true })
    await expect.poll(() => changes.filter((file) => file.startsWith('src/deep/new/er/')).length).toBeGreaterThan(2)
  })

  it('restarts nothing if it is no code: a database, a log, what is installed, what tools keep', async () => {
    const { place, changes, changesAfter } = await project()
    for (let at = 0; at < 5; at += 1) {
      appendFileSync(join(place, 'shop.db'), 'x')
      appendFileSync(join(place, 'shop.db-wal'), 'x')
      appendFileSync(join(place, 'src', 'out.json'), 'x')
      appendFileSync(join(place, 'node_modules', 'some', 'index.js'), 'x')
      appendFileSync(join(place, '.git', 'hook.js'), 'x')
    }
    writeFileSync(join(place, 'src', 'z.ts'), 'z')
    await changesAfter('src/z.ts')
    expect(changes).toEqual(['src/z.ts'])
  })

  it('counts whatever it is, where the options say so', async () => {
    const other = folder()
    const { changes } = await project([{ path: other, everything: true }])
    writeFileSync(join(other, 'prompt.md'), 'x')
    await expect.poll(() => changes, { timeout: 10_000 }).toHaveLength(1)
  })
})
