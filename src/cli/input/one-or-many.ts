// The runs that a control command takes. One: by its id, or by its business key and type. Many: by any other combination of
// the filter options of `runs`. Without any of them, the command is refused.

import type { HoldfastError } from '../../core/errors/error.ts'
import type { Filter } from '../../client/read/find.ts'
import { filterFrom, type FilterOptions } from './run-filter.ts'
import { assertForMany, type ManyOptions } from './many-runs.ts'
import type { NameOptions } from './named-run.ts'
import { usage } from '../usage.ts'

export interface ChoiceOptions extends FilterOptions, ManyOptions {
  /** Every run there is, or that matches. */
  readonly all?: boolean
}

export type Choice =
  | { readonly kind: 'one'; readonly id: string | undefined; readonly name: NameOptions }
  | { readonly kind: 'many'; readonly filter: Filter }

/** The runs that the arguments choose. `chooses` says that another option of the command does, too. */
export function choiceOf(
  id: string | undefined,
  options: ChoiceOptions,
  { now, chooses = false }: { readonly now: number; readonly chooses?: boolean },
): Choice {
  const filter = filterFrom(options, now)
  const names = Object.keys(filter)
  const isAny = names.length > 0 || options.all === true || chooses
  if (id !== undefined && isAny) throw notBoth()
  const { key, type: [type, ...types] = [] } = options
  const isNamed = names.every((name) => name === 'key' || name === 'type') && key !== undefined && types.length === 0
  if (isAny && !(isNamed && options.all !== true && !chooses)) return { kind: 'many', filter }
  assertForMany(options)
  if (id === undefined && !isNamed) {
    throw usage(
      'Which run? Name it by its id, or by --key <key> with --type <type>; or choose many with options such as --type or --status.',
    )
  }
  const name = { ...(key === undefined ? {} : { key }), ...(type === undefined ? {} : { type }) }
  return { kind: 'one', id, name }
}

function notBoth(): HoldfastError {
  return usage('Name one run by its id, or choose many: not both.')
}
