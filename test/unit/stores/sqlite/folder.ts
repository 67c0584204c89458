// A folder for the files of one test file, gone when it ends.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** Gives a path that nothing stands at yet. */
export function temporaryPaths(): () => string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
  let count = 0
  afterAll(() => rmSync(folder, { recursive: true }))
  return () => join(folder, `${(count += 1)}.db`)
}
