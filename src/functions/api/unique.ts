// The business key that makes the runs of a workflow unique, read from the input. It is checked where the workflow is
// defined, because otherwise it would fail every start.

import type { Unique } from '../../core/definition/definition.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import { checkKey, checkKeyField, checkScope, compositeKey, type KeyScope } from '../../core/model/key.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'

/** The values that a business key can be made of. */
type KeyValue = string | number | bigint

/**
 * The fields of an input that a key can be made of; any name where the compiler does not know the input. While it checks the
 * options of a workflow whose body alone declares the input, the compiler does not know it yet and takes it for void.
 */
export type KeyField<Input> = void extends Input
  ? string
  : [Input] extends [object]
    ? { [Field in keyof Input & string]: Input[Field] extends KeyValue ? Field : never }[keyof Input & string]
    : never

export interface UniqueOptions<Input = unknown> {
  /**
   * The source of the business key of a run: a field of its input, or a function of its input after the schema. The key is
   * the text of that string, number or bigint: `orderId::42` for a field, `42` for a function. Without a schema, annotate the
   * input of the function, or the compiler takes it for `never`: `(order: Order) => order.id`.
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
    const what = `The result of unique.key of ${where}`
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

/** A value that looks like the whole key of another run would let its author collide with that run's key. */
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
