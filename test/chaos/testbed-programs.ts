// The programs that a testbed starts, translated once: they are started again and again while everything else needs the machine, too.

import { join } from 'node:path'
import { translate, translatedPath } from '../support/translated.ts'

const programs = ['testbed-worker-child', 'outsider-child', 'sink-child'] as const

/** Where a program stands. */
export type Programs = (name: (typeof programs)[number]) => string

const fileOf = (name: string): string => join('test/chaos', `${name}.ts`)

/** Translates them, and all that they import of ours, into this folder. */
export async function translatePrograms(folder: string): Promise<Programs> {
  await translate(programs.map(fileOf), folder)
  return (name) => translatedPath(folder, fileOf(name))
}
