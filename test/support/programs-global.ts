// The programs that tests start as processes, and the package itself, translated once for all test files of a run.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shareLazily } from './lazily-shared.ts'
import { translate } from './translated.ts'

declare module 'vitest' {
  interface ProvidedContext {
    programs: SharedPrograms
  }
}

export interface SharedPrograms {
  /** Answers with the folder of the translated programs, and has them translated first if it must. */
  readonly address: string
}

/** What vitest calls before the first test file; what it returns is called after the last. */
export async function setup(project: { provide(key: 'programs', value: SharedPrograms): void }): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-programs-'))
  const { address, close } = await shareLazily(async () => {
    await translate(
      [...filesIn('test', /-child\.ts$/), ...filesIn('src', /(?:^|\/)index\.ts$|^cli\/main\.ts$/)],
      folder,
    )
    return folder
  })
  project.provide('programs', { address })
  return () => {
    close()
    rmSync(folder, { recursive: true })
  }
}

function filesIn(folder: string, name: RegExp): readonly string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return files.filter((file) => name.test(file) && !file.includes('node_modules')).map((file) => join(folder, file))
}
