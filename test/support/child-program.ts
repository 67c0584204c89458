// What a test starts as a process.

import { inject } from 'vitest'
import { askFor } from './lazily-shared.ts'
// Its declaration of what is provided comes with it.
import type { SharedPrograms } from './programs-global.ts'
import { translatedPath } from './translated.ts'

let asked: Promise<string> | null = null

/** The folder in which this package stands as JavaScript. */
export function translatedPackage(): Promise<string> {
  const { address }: SharedPrograms = inject('programs')
  return (asked ??= askFor(address))
}

/** What to start with `node` for a program of the tests, whose name ends with `-child.ts`. */
export async function childProgram(file: string): Promise<string> {
  return translatedPath(await translatedPackage(), file)
}
