// Compiles a program against the sources, for tests of what the compiler says.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll } from 'vitest'

const root = resolve('.')
const folders: string[] = []
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })))

/** What the compiler has to say about a program. */
export function compile(program: string): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-types-'))
  folders.push(folder)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const compilerOptions = {
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
    noUnusedLocals: false,
    paths: { holdfast: [`${root}/src/index.ts`] },
  }
  const config = { extends: `${root}/tsconfig.base.json`, compilerOptions, files: ['program.mts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  writeFileSync(join(folder, 'program.mts'), program)
  const tsc = join(root, 'node_modules/.bin/tsc')
  const { stdout } = spawnSync(tsc, ['-p', folder, '--pretty', 'false'], { cwd: folder, encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line !== '')
}
