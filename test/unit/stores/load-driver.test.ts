import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadNativeDriver } from '../../../src/stores/load-driver.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-driver-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A package that says this when it is loaded. */
function planted(name: string, code: string): string {
  const path = join(folder, `${name}.cjs`)
  writeFileSync(path, code)
  return path
}

describe('a driver', () => {
  it('that is not installed is named, with the one command that installs it', async () => {
    const loading = loadNativeDriver('@nobody/has-this/compat', 'A store of nobody')
    await expect(loading).rejects.toMatchObject({
      code: 'STORE_UNKNOWN',
      family: 'usage',
      message:
        'A store of nobody needs the package @nobody/has-this, which is not installed. Run: npm install @nobody/has-this',
    })
  })

  it('that has nothing for this machine says so, and is not called missing', async () => {
    const path = planted('broken', "throw new Error('Cannot find native binding')")
    const loading = loadNativeDriver(path, 'A store')
    await expect(loading).rejects.toMatchObject({
      code: 'STORE_UNKNOWN',
      message: expect.stringMatching(/cannot be loaded here: Cannot find native binding/) as string,
    })
  })

  it('whose own dependency is missing is not called missing', async () => {
    const path = planted('half', "require('@nobody/has-this-either')")
    await expect(loadNativeDriver(path, 'A store')).rejects.toThrow(/cannot be loaded here: Cannot find module/)
  })

  it('is what the package exports', async () => {
    expect(await loadNativeDriver(planted('whole', 'module.exports = { answer: 42 }'), 'A store')).toEqual({
      answer: 42,
    })
  })
})
