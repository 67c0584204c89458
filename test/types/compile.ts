// Compiles a program against the declarations that users get, for tests of what the compiler says. Against the sources it would
// check all of them again for every program: 3.4 s of processor time instead of 0.5 s.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { declare } from '../support/translated.ts'

const root = resolve('.')

/** Makes a compiler for the tests of the file that calls this: files share a process, and so its modules, but not their hooks. */
export function createCompiler(): (program: string) => readonly string[] {
  const folders: string[] = []
  let declarations = ''
  beforeAll(async () => {
    declarations = mkdtempSync(join(tmpdir(), 'holdfast-declarations-'))
    folders.push(declarations)
    await declare(['src/index.ts', 'src/deciders/index.ts', 'src/testing/index.ts'], declarations)
  })
  afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })))
  return (program) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-types-'))
    folders.push(folder)
    return compile(program, { folder, declarations })
  }
}

/** What the compiler has to say about a program. */
function compile(
  program: string,
  { folder, declarations }: { folder: string; declarations: string },
): readonly string[] {
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const compilerOptions = {
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
    noUnusedLocals: false,
    paths: {
      holdfast: [`${declarations}/src/index.d.ts`],
      // Not published yet.
      'holdfast/deciders': [`${declarations}/src/deciders/index.d.ts`],
      'holdfast/testing': [`${declarations}/src/testing/index.d.ts`],
    },
  }
  const config = { extends: `${root}/tsconfig.base.json`, compilerOptions, files: ['program.mts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  writeFileSync(join(folder, 'program.mts'), program)
  const tsc = join(root, 'node_modules/.bin/tsc')
  const { stdout } = spawnSync(tsc, ['-p', folder, '--pretty', 'false'], { cwd: folder, encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line !== '')
}
