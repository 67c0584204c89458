// The project that a module belongs to, and how its runtime reads TypeScript.

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The nearest folder above the module that has a package.json; if there is none, the folder of the module. */
export function projectOf(module: string): string {
  for (let folder = dirname(module); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) return dirname(module)
  }
}

const typeScript = /\.[cm]?tsx?$/

/**
 * Options of the runtime with which it reads the module: those of tsx, if the module is TypeScript and the project has it
 * installed. Without it the runtime reads TypeScript by itself, or says that it cannot.
 */
export function runtimeOptionsFor(module: string, already: readonly string[]): readonly string[] {
  if (!typeScript.test(module) || already.some((option) => /\btsx\b/.test(option))) return []
  try {
    const loader = createRequire(pathToFileURL(module)).resolve('tsx')
    return ['--import', pathToFileURL(loader).href]
  } catch {
    return []
  }
}
