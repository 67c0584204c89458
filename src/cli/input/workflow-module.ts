// Loads the module that the user names: the workflows that it exports and, under `holdfast`, options of createHoldfast.
// Every problem with it is an error of usage that says what to do; the stack is shown only on request.

import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isTopic, type Topic } from '../../core/definition/declared-topic.ts'
import type { Definition } from '../../core/definition/definition.ts'
import type { HoldfastError } from '../../core/errors/error.ts'
import type { HoldfastOptions } from '../../holdfast.ts'
import { visible } from '../../core/text/printable.ts'
import { messageOf } from '../output/plain-json.ts'
import { quoted, usage } from '../usage.ts'

export interface WorkflowModule {
  /** As the user named it. */
  readonly name: string
  readonly definitions: readonly Definition[]
  /** The topics that it exports. */
  readonly topics: readonly Topic[]
  /** The export `holdfast` of the module. */
  readonly options: Partial<HoldfastOptions>
  /** The names of everything that it exports. */
  readonly exported: readonly string[]
}

export async function loadModule(name: string, cwd: string): Promise<WorkflowModule> {
  const path = locateModule(name, cwd)
  const module = await importModule(name, path)
  // A CommonJS module is seen twice, by its names and as the default: the set removes the duplicates.
  const definitions = new Set(Object.values(module).flatMap((value) => membersOf(value, isDefinition)))
  const topics = new Set(Object.values(module).flatMap((value) => membersOf(value, isTopic)))
  const exported = Object.keys(module).toSorted()
  const options = optionsOf(name, module['holdfast'])
  return { name, definitions: [...definitions], topics: [...topics], options, exported }
}

const endings = ['.ts', '.mts', '.js', '.mjs', '/index.ts', '/index.js']

/** The path of the module that the user names. Throws INVALID_OPTION if there is no such file. */
export function locateModule(name: string, cwd: string): string {
  const path = resolve(cwd, name)
  if (existsSync(path) && statSync(path).isFile()) return path
  const near = endings.find((ending) => existsSync(path + ending))
  const meant = near === undefined ? '' : ` Did you mean ${quoted(name + near)}?`
  const folder = existsSync(dirname(path)) ? '' : ` Its folder does not exist either.`
  throw usage(
    `There is no module ${quoted(name)}.${meant}${folder} --workflows takes the path of a file, ` +
      `from the folder that you are in (${visible(cwd)}).`,
    { module: name },
  )
}

async function importModule(name: string, path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw loadFault(name, error)
  }
}

const typeScriptFaults: readonly unknown[] = [
  'ERR_UNKNOWN_FILE_EXTENSION',
  'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
  'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING',
]

/** The error of an import, as an error that says what to do. */
export function loadFault(name: string, error: unknown): HoldfastError {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  if (typeScriptFaults.includes(code) && /\.[cm]?tsx?$/.test(name)) {
    return usage(
      `The module ${quoted(name)} is TypeScript that this runtime cannot read by itself. Let tsx do it: ` +
        `npm install tsx, then NODE_OPTIONS="--import tsx" npx holdfast …, or ` +
        `node --import tsx node_modules/holdfast/dist/cli/main.js …; or name the JavaScript that it compiles to.`,
      { module: name, code },
      error,
    )
  }
  // Compilers report in several lines; this is part of a sentence.
  const message = visible(messageOf(error).replaceAll(/\s*\n\s*/g, ' ')).replace(/\.$/, '')
  const hint = 'Run it with --verbose to see where.'
  return usage(`The module ${quoted(name)} cannot be loaded: ${message}. ${hint}`, { module: name }, error)
}

/** The values of that kind, also inside a list or an object: `export const workflows = [order, refund]`. */
function membersOf<Sought>(exported: unknown, is: (value: unknown) => value is Sought): readonly Sought[] {
  if (is(exported)) return [exported]
  if (typeof exported !== 'object' || exported === null) return []
  const prototype: unknown = Object.getPrototypeOf(exported)
  if (!Array.isArray(exported) && prototype !== Object.prototype && prototype !== null) return []
  return Object.values(exported).filter(is)
}

function isDefinition(value: unknown): value is Definition {
  return (
    typeof value === 'object' &&
    value !== null &&
    'style' in value &&
    'type' in value &&
    typeof value.type === 'string' &&
    'open' in value &&
    typeof value.open === 'function'
  )
}

function optionsOf(name: string, exported: unknown): Partial<HoldfastOptions> {
  if (exported === undefined) return {}
  if (typeof exported !== 'object' || exported === null || Array.isArray(exported)) {
    throw usage(`The export \`holdfast\` of ${quoted(name)} must be an object with options of createHoldfast.`, {
      module: name,
    })
  }
  if ('work' in exported && 'close' in exported) {
    throw usage(
      `The export \`holdfast\` of ${quoted(name)} is an open Holdfast. Export the options that it was made of: ` +
        '`export const holdfast = { services, codec }`; the command line opens its own.',
      { module: name },
    )
  }
  return exported
}

/** Refuses a module without workflows where some are needed. */
export function requireWorkflows({ name, definitions, exported }: WorkflowModule): void {
  if (definitions.length > 0) return
  const what = exported.length === 0 ? 'nothing at all' : `only ${exported.slice(0, 10).map(visible).join(', ')}`
  throw usage(
    `The module ${quoted(name)} exports no workflow, but ${what}. Export the value that workflow() returns: ` +
      "`export const order = workflow('shop.order', …)`.",
    { module: name, exported },
  )
}
