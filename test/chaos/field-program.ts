// The programs that a field starts, translated once. They are started again and again while everything else needs the
// machine too, and translating itself would take each of them another second of it: 1.35 s instead of 0.28 s.

import { execFile } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const place = 'test/chaos'
const programs = ['hand-child', 'outsider-child'] as const

/** Where a program stands. */
export type Programs = (name: (typeof programs)[number]) => string

/** Whether the types are right is asked elsewhere. */
const flags = ['--ignoreConfig', '--noCheck', '--types', 'node', '--skipLibCheck', '--rootDir', '.']
const language = ['--target', 'es2023', '--module', 'nodenext', '--rewriteRelativeImportExtensions']

/** Translates them, and all that they import of ours, into this folder. */
export async function translatePrograms(folder: string): Promise<Programs> {
  const files = programs.map((name) => join(place, `${name}.ts`))
  await promisify(execFile)('node_modules/.bin/tsc', [...flags, ...language, '--outDir', folder, ...files])
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  return (name) => join(folder, place, `${name}.js`)
}
