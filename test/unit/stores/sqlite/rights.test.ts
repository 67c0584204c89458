// Who else may open a file: nobody, if we made it; and a warning if we find that others may. By every address that
// names one, on every driver of a file.

import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHoldfast, workflow } from '../../../../src/index.ts'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { createRecordingLogger } from '../../../../src/testing/index.ts'
import { temporaryPaths } from './folder.ts'

const newPath = temporaryPaths()
const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)
const greet = workflow('greet', (ctx, name: string) => ctx.step('greet', () => `Hello, ${name}`))

/** A folder of its own, so that whatever is made in it is seen. */
function newFolder(): string {
  const folder = newPath()
  mkdirSync(folder)
  return folder
}

/** Opens it, lets a run leave something in it, and gives back what was warned of. */
async function used(store: string): Promise<readonly string[]> {
  const logger = createRecordingLogger()
  const holdfast = await createHoldfast({ store, workflows: [greet], logger })
  try {
    await holdfast.work({ signals: false })
    await (await holdfast.start(greet, 'Ada')).result()
    const folder = dirname(fileIn(store))
    for (const name of readdirSync(folder)) modes.set(name, mode(join(folder, name)))
  } finally {
    await holdfast.close()
  }
  return logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
}

const fileIn = (store: string): string => store.replace(/^\w+:(?:file:(?:\/\/)?)?/, '')

/** The rights of everything in the folder while it was open. */
let modes = new Map<string, string>()
let umask = 0

beforeEach(() => {
  modes = new Map()
  // What most machines have; a test must not pass because its own is stricter.
  umask = process.umask(0o022)
})
afterEach(() => void process.umask(umask))

const kinds = ['sqlite', 'libsql', 'turso'] as const

describe.each(kinds)('%s:', (kind) => {
  it.each([
    ['a path', (path: string) => path],
    ['a relative file: address', (path: string) => `file:${relative('.', path)}`],
    ['a whole file: address', (path: string) => `file://${path}`],
  ])('makes files for their owner alone, and no decoy beside them: %s', async (_, addressOf) => {
    const path = join(newFolder(), 'app.db')
    expect(await used(`${kind}:${addressOf(path)}`)).toEqual([])
    const names = kind === 'turso' ? ['app.db', 'app.db-wal'] : ['app.db', 'app.db-shm', 'app.db-wal']
    expect(Object.fromEntries(modes)).toEqual(Object.fromEntries(names.map((name) => [name, '600'])))
  })

  it('does not let a link that leads nowhere choose where a file is made', async () => {
    const [folder, elsewhere] = [newFolder(), newFolder()]
    const [link, target] = [join(folder, 'app.db'), join(elsewhere, 'planted.db')]
    symlinkSync(target, link)
    await expect(used(`${kind}:${link}`)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('is a link to') as string,
    })
    expect([readdirSync(folder), readdirSync(elsewhere)]).toEqual([['app.db'], []])
  })

  it('refuses a circle of links and a name that is too long', async () => {
    const path = join(newFolder(), 'app.db')
    symlinkSync(path, path)
    await expect(used(`${kind}:${path}`)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(used(`${kind}:${'x'.repeat(300)}`)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('opens a file that others may read as it is, and says so once', async () => {
    const path = join(newFolder(), 'app.db')
    writeFileSync(path, '')
    const warnings = await used(`${kind}:file:${path}`)
    expect(warnings).toEqual([expect.stringContaining('can be opened by every user of this machine (0644)')])
    expect(warnings[0]).toContain(`chmod 600 "${path}"`)
    expect(new Set(modes.values())).toEqual(new Set(['644']))
  })

  it('says so of a file behind a link, and of one for a group', async () => {
    const [folder, elsewhere] = [newFolder(), newFolder()]
    const [link, target] = [join(folder, 'app.db'), join(elsewhere, 'shared.db')]
    writeFileSync(target, '')
    chmodSync(target, 0o660)
    symlinkSync(target, link)
    expect(await used(`${kind}:${link}`)).toEqual([
      expect.stringContaining(`"${target}" can be opened by its group (0660)`),
    ])
    expect(readdirSync(folder)).toEqual(['app.db'])
  })
})

describe('a log that others may read', () => {
  it('is warned of, too, though the file is closed', async () => {
    const path = join(newFolder(), 'app.db')
    const store = await openSqliteStore({ path, driver: 'libsql' })
    await store.migrate()
    chmodSync(`${path}-wal`, 0o644)
    const logger = createRecordingLogger()
    const second = await openSqliteStore({ path, driver: 'libsql', logger })
    expect(logger.lines.map(({ message }) => message)).toEqual([
      expect.stringContaining(`${basename(path)}-wal" can be`),
    ])
    await second.close()
    await store.close()
  })

  it('never comes of Turso, though the file was made without one', async () => {
    const path = join(newFolder(), 'app.db')
    await used(`turso:${path}`)
    const bytes = readFileSync(path)
    const alone = join(newFolder(), 'alone.db')
    writeFileSync(alone, bytes, { mode: 0o600 })
    modes = new Map()
    expect(await used(`turso:${alone}`)).toEqual([])
    expect(Object.fromEntries(modes)).toEqual({ 'alone.db': '600', 'alone.db-wal': '600' })
  })
})

describe('a connection that the user opened', () => {
  it('is on a file that others may read: it is said', async () => {
    const path = newPath()
    const handle = new Database(path)
    const logger = createRecordingLogger()
    const store = await openSqliteStore({ handle, logger })
    expect(logger.lines.map(({ message }) => message)).toEqual([expect.stringContaining('(0644)')])
    await store.close()
    handle.close()
  })
})
