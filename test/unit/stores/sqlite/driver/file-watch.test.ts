// A file that is deleted or replaced under a live process takes nothing more: it would be lost when the process ends.

import { copyFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createHoldfast, workflow } from '../../../../../src/index.ts'
import { FileWatch } from '../../../../../src/stores/sqlite/driver/file-watch.ts'
import { createRecordingLogger } from '../../../../../src/testing/index.ts'
import { temporaryPaths } from '../folder.ts'

const newPath = temporaryPaths()
const greet = workflow('greet', (ctx, name: string) => ctx.step('greet', () => `Hello, ${name}`))

describe('the watch of a file', () => {
  it('looks once a second, and refuses calls while the file is gone', () => {
    let now = 0
    const file = newPath()
    writeFileSync(file, '')
    const watch = new FileWatch(file, () => now)
    watch.check()
    renameSync(file, `${file}.away`)
    now = 999
    watch.check()
    now = 1_000
    const check = (): void => watch.check()
    expect(check).toThrow(expect.objectContaining({ code: 'STORE_REFUSED', details: { file } }))
    expect(check).toThrow(/was deleted while this process had it open.*restore the file/)
    renameSync(`${file}.away`, file)
    expect(check).not.toThrow()
  })

  it('refuses calls while another file is in its place', () => {
    const file = newPath()
    writeFileSync(file, '')
    const watch = new FileWatch(file, () => 0)
    copyFileSync(file, `${file}.copy`)
    renameSync(`${file}.copy`, file)
    expect(() => watch.check()).toThrow(/was replaced by another while this process had it open/)
  })

  it('says nothing of a database in memory', () => {
    expect(() => new FileWatch('', () => 0).check()).not.toThrow()
  })
})

describe('a Holdfast whose file is deleted', () => {
  it('rejects calls, and its worker logs one error that says what to do', async () => {
    const file = newPath()
    const logger = createRecordingLogger()
    const holdfast = await createHoldfast({ store: `sqlite:${file}`, workflows: [greet], logger })
    onTestFinished(() => holdfast.close())
    await holdfast.work({ signals: false })
    await (await holdfast.start(greet, 'Ada')).result()
    for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
    const refused = vi.waitFor(async () => {
      await expect(holdfast.start(greet, 'Bob')).rejects.toMatchObject({ code: 'STORE_REFUSED', details: { file } })
    }, 20_000)
    await refused
    const errors = (): readonly string[] =>
      logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message)
    await vi.waitFor(() => expect(errors()).toHaveLength(1), 20_000)
    expect(errors()[0]).toMatch(/was deleted while this process had it open/)
    await expect(holdfast.find({})).rejects.toMatchObject({ code: 'STORE_REFUSED' })
  })
})
