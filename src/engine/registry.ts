// The workflows that one Holdfast knows, by type and version. Nothing here is global: two instances know nothing of each
// other's.

import type { Definition } from '../core/definition/definition.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { didYouMean, shown } from '../core/text/suggest.ts'
import { quotedText } from '../core/text/printable.ts'

/** What to do about a workflow that is not registered. The command line, which has no such call, says something else instead. */
export const registerAdvice = 'Add it to createHoldfast({ workflows: […] }).'

/** How many workflows an error names. */
const mostNamed = 10

export class Registry {
  private readonly byType = new Map<string, Map<number, Definition>>()

  constructor(definitions: Iterable<Definition>) {
    for (const definition of definitions) this.add(definition)
  }

  all(): readonly Definition[] {
    return [...this.byType.values()].flatMap((versions) => [...versions.values()])
  }

  /** The definition of exactly that type and version, if this process has it. */
  find(type: string, version: number): Definition | undefined {
    return this.byType.get(type)?.get(version)
  }

  /** Whether this process has any version of that type. */
  hasType(type: string): boolean {
    return this.byType.has(type)
  }

  get isEmpty(): boolean {
    return this.byType.size === 0
  }

  /** The versions of a type that this process has, the newest last. */
  versions(type: string): readonly number[] {
    const versions = this.byType.get(type)
    if (versions === undefined) throw this.unknown(type)
    return [...versions.keys()].sort((a, b) => a - b)
  }

  /** The definition of a type in a version that must be here. */
  get(type: string, version: number): Definition {
    const found = this.find(type, version)
    if (found === undefined) throw this.unknown(type, version)
    return found
  }

  /** The definition itself, if it is registered here. */
  own(definition: Definition): Definition {
    const found = this.find(definition.type, definition.version)
    if (found === definition) return found
    if (found === undefined) throw this.unknown(definition.type, definition.version)
    throw new HoldfastError(
      'WORKFLOW_UNKNOWN',
      `Another workflow is registered as ${quotedText(definition.type)} version ${definition.version}. ` +
        'Use the one that was given to createHoldfast: a module may have been loaded twice.',
      { details: { type: definition.type, version: definition.version } },
    )
  }

  private add(definition: Definition): void {
    const { type, version } = definition
    const versions = this.byType.get(type) ?? new Map<number, Definition>()
    // A module may export one workflow under two names.
    if (versions.get(version) === definition) return
    if (versions.has(version)) {
      throw new HoldfastError(
        'WORKFLOW_EXISTS',
        `Two workflows are called ${quotedText(type)} version ${version}. Rename one, or give it another version.`,
        { details: { type, version } },
      )
    }
    versions.set(version, definition)
    this.byType.set(type, versions)
    for (const part of definition.parts ?? []) this.add(part)
  }

  private unknown(type: string, version?: number): HoldfastError {
    const versions = this.byType.get(type)
    if (versions !== undefined) {
      return new HoldfastError(
        'WORKFLOW_UNKNOWN',
        `Workflow ${quotedText(type)} is registered here, but not its version ${version}. ` +
          `Registered: version ${[...versions.keys()].join(', ')}. ${registerAdvice}`,
        { details: { type, version } },
      )
    }
    const known = [...this.byType.keys()]
    const more = known.length > mostNamed ? `, and ${known.length - mostNamed} more` : ''
    const list =
      known.length === 0 ? 'None is registered' : `Registered: ${known.slice(0, mostNamed).join(', ')}${more}`
    return new HoldfastError(
      'WORKFLOW_UNKNOWN',
      `No workflow ${shown(type)} is registered here.${didYouMean(type, known)} ${list}. ${registerAdvice}`,
      { details: { type } },
    )
  }
}

/** The definitions of a list, or among the exports of a module. */
export function collectDefinitions(
  workflows: readonly Definition[] | Readonly<Record<string, unknown>>,
): readonly Definition[] {
  if (typeof workflows !== 'object' || workflows === null || isDefinition(workflows)) {
    const names = isDefinition(workflows) ? `the workflow ${quotedText(workflows.type)} itself` : shown(workflows)
    throw new HoldfastError(
      'INVALID_OPTION',
      `createHoldfast({ workflows }) takes a list, workflows: [a, b], or a module of them. Got ${names}.`,
    )
  }
  const found = Object.values(workflows)
  // A module may export one workflow under two names, for example also as its default.
  if (!Array.isArray(workflows)) return [...new Set(found.filter(isDefinition))]
  const wrong = found.findIndex((entry) => !isDefinition(entry))
  if (wrong === -1) return found as readonly Definition[]
  throw new HoldfastError(
    'INVALID_OPTION',
    `createHoldfast({ workflows }) takes what workflow() returns; number ${wrong + 1} of the list is something else.`,
  )
}

function isDefinition(value: unknown): value is Definition {
  return (
    typeof value === 'object' &&
    value !== null &&
    'style' in value &&
    'open' in value &&
    typeof value.open === 'function' &&
    'type' in value &&
    typeof value.type === 'string'
  )
}
