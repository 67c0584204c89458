// What makes the runs of a workflow unique: a business key that is read from the input. It is checked where the workflow is
// defined, because it would fail every start otherwise.

import type { Unique } from '../../core/definition/definition.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import { checkKey, checkKeyField, checkScope, compositeKey, type KeyScope } from '../../core/model/key.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'

/** What a business key can be made of. */
type KeyValue = string | number | bigint

/**
 * The fields of an input that a key can be made of; any name where the compiler does not know the input. It does not know it yet,
 * and takes it for void, while it looks at the options of a workflow whose body alone says what the input is.
 */
export type KeyField<Input> = void extends Input
  ? string
  : [Input] extends [object]
    ? { [Field in keyof Input & string]: Input[Field] extends KeyValue ? Field : never }[keyof Input & string]
    : never

export interface UniqueOptions<Input = unknown> {
  /**
   * What the business key of a run is read from: a field of its input, or a function of its input, as the schema has made it. The key
   * is the text of that string, number or bigint: `orderId::42` for a field, `42` for a function. Without a schema, annotate
   * the input of the function.
   */
  readonly key: KeyField<Input> | ((input: void extends Input ? never : Input) => KeyValue)
  /** Among which live runs the key is unique. @default 'workflow' */
  readonly scope?: KeyScope
}

export function checkUnique(unique: UniqueOptions | undefined, where: string): Unique | null {
  if (unique === undefined) return null
  checkOptions(unique, ['key', 'scope'], `${where}: unique`)
  const scope = checkScope(unique.scope ?? 'workflow', `unique.scope of ${where}`)
  const { key } = unique
  if (typeof key === 'function') {
    const read = key as (input: unknown) => unknown
    const what = `What unique.key of ${where} returns`
    return { field: null, scope, keyOf: (input) => checkKey(textOf(called(read, input, where), what, null), what) }
  }
  const field = checkKeyField(key, where)
  const what = `The field "${field}" of the input of ${where}`
  return {
    field,
    scope,
    keyOf: (input) =>
      compositeKey(field, plainValue(checkKey(textOf(fieldOf(input, field), what, field), what), field, what)),
  }
}

function called(read: (input: unknown) => unknown, input: unknown, where: string): unknown {
  try {
    return read(input)
  } catch (cause) {
    throw new HoldfastError(
      'INVALID_INPUT',
      `unique.key of ${where} failed for this input, so its run has no key: ${messageOf(cause)}`,
      { cause },
    )
  }
}

/** A value that looks like the whole key of another run would let who chooses it be taken for that one. */
function plainValue(value: string, field: string, what: string): string {
  if (!value.startsWith(`${field}::`)) return value
  throw new HoldfastError(
    'INVALID_INPUT',
    `${what} must not begin with "${field}::", which is how keys begin. Got ${shown(value)}.`,
    {
      details: { field },
    },
  )
}

function fieldOf(input: unknown, field: string): unknown {
  if (typeof input !== 'object' || input === null) return undefined
  return Object.hasOwn(input, field) ? (input as Record<string, unknown>)[field] : undefined
}

function textOf(value: unknown, what: string, field: string | null): string {
  if (typeof value === 'string' || typeof value === 'bigint' || Number.isFinite(value)) return String(value)
  throw new HoldfastError(
    'INVALID_INPUT',
    `${what} must be a string, a number or a bigint, because it is the key by which a run is unique. Got ${shown(value)}.`,
    { details: field === null ? {} : { field } },
  )
}
