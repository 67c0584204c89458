// Which instance an input is for: a field of the input, a function of it, or one of these for each type of input.

import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import { checkKey } from '../../core/model/key.ts'
import { didYouMean, isPlainObject, shown } from '../../core/text/suggest.ts'
import type { Typed } from './decision.ts'

/** The fields of an input that are texts, in every input of a union. */
type TextField<Input> = Exclude<
  { [Field in keyof Input & string]: Input[Field] extends string ? Field : never }[keyof Input & string],
  'type'
>

/** The field of an input that holds an id. */
type IdField<Input> = [TextField<Input>] extends [never]
  ? 'these inputs have no text field in common'
  : TextField<Input>

/** How the id is read from this input. */
type IdFrom<Input> = IdField<Input> | ((input: Input) => string)

type InputOfType<Input extends Typed, Type> = Extract<Input, { readonly type: Type }>

/**
 * For each type of input: how its id is read, or null if it comes only from the timers and effects of an instance, and never
 * from a caller.
 */
type IdByType<Input extends Typed> = {
  readonly [Type in Input['type']]: IdFrom<InputOfType<Input, Type>> | null
}

/**
 * The same with `*` for all types that are not named. Such an object is checked less closely: a field that one of those types
 * lacks is found when its input is read.
 */
type IdWithDefault<Input extends Typed> = {
  readonly [Type in Input['type']]?: IdFrom<InputOfType<Input, Type>> | null
} & { readonly '*': AnyField<Input> | ((input: Input) => string) }

/** A field that at least one input has. */
type AnyField<Input> = Input extends unknown ? TextField<Input> : never

/**
 * How the id of an instance is read from an input. The compiler checks the options once before it has read the inputs: then
 * any field is possible.
 */
export type IdOption<Input extends Typed> = Typed extends Input
  ? string | ((input: Input) => string) | Readonly<Record<string, string | ((input: Input) => string) | null>>
  : IdFrom<Input> | IdByType<Input> | IdWithDefault<Input>

/** What an id may look like: the compiler suggests it, and types the functions in it. What does not fit, `IdChecked` explains. */
export type IdLike<Input extends Typed> = Typed extends Input
  ? IdOption<Input>
  : | AnyField<Input>
    | ((input: Input) => string)
    | ({
        readonly [Type in Input['type']]?:
          TextField<InputOfType<Input, Type>> | ((input: InputOfType<Input, Type>) => string) | null
      } & { readonly '*'?: AnyField<Input> | ((input: Input) => string) })

/** The types of input that lack a field. */
type Lacking<Input extends Typed, Field> = Input extends unknown
  ? Field extends TextField<Input>
    ? never
    : Input['type']
  : never

/** What is wrong with the id, as an option that nothing fits. */
export type IdChecked<Input extends Typed, Id> = unknown extends Id
  ? { readonly id: NoInfer<IdOption<Input>> }
  : Id extends string
    ? FieldChecked<Input, Id>
    : Id extends (...given: never[]) => unknown
      ? unknown
      : TypesChecked<Input, Id>

type FieldChecked<Input extends Typed, Field extends string> =
  Field extends TextField<Input>
    ? unknown
    : Field extends AnyField<Input>
      ? {
          readonly id: {
            readonly 'not every input has this field: say for which it is null': `{ '*': '${Field}', ${Lacking<Input, Field>}: null }`
          }
        }
      : { readonly id: { readonly 'no input has this field, as a text': Field } }

type TypesChecked<Input extends Typed, Id> = [Exclude<keyof Id, Input['type'] | '*'>] extends [never]
  ? '*' extends keyof Id
    ? unknown
    : { readonly id: Readonly<Record<Input['type'], unknown>> }
  : { readonly id: { readonly 'no input has this type': Exclude<keyof Id, Input['type'] | '*'> } }

/** The types of input that come only from timers and effects. */
type InternalType<Id> = Id extends object
  ? { [Type in keyof Id]: Id[Type] extends null ? Type : never }[keyof Id]
  : never

/** The inputs that callers pass: those that name an instance, as they are before the schema. */
export type SentInput<Input, Sent, Id> = WithoutInternal<unknown extends Sent ? Input : Sent, InternalType<Id>>

type WithoutInternal<Input, Internal> = Input extends { readonly type: Internal } ? never : Input

type Read = string | ((input: Typed) => unknown) | null

/** Reads ids, of at most 400 printable characters. Throws INVALID_INPUT. */
export type IdReader = (input: unknown) => string

export function idReader(given: unknown, type: string): IdReader {
  const where = `The id of decider "${type}"`
  const reads = readsOf(given, where)
  return (input) => {
    const named = typedInput(input, type)
    const read = Object.hasOwn(reads, named.type) ? reads[named.type] : reads['*']
    if (read === undefined) {
      const hint = didYouMean(named.type, Object.keys(reads))
      throw invalid(`Decider "${type}" has no id for an input ${shown(named.type)}.${hint}`, named)
    }
    if (read === null) {
      const message = `An input ${shown(named.type)} of decider "${type}" comes from its timers and effects only: it names no instance.`
      throw invalid(message, named)
    }
    return checkedId(readId(read, named, where), where, named)
  }
}

/** Recognises the inputs that come from timers and effects only. */
export function internalReader(given: unknown, type: string): (input: unknown) => boolean {
  const reads = readsOf(given, `The id of decider "${type}"`)
  return (input) => {
    const named = typedInput(input, type)
    return (Object.hasOwn(reads, named.type) ? reads[named.type] : reads['*']) === null
  }
}

/** An input, if it has a type. Throws INVALID_INPUT. */
export function typedInput(input: unknown, type: string): Typed {
  if (typeof input === 'object' && input !== null && typeof (input as Partial<Typed>).type === 'string') {
    return input as Typed
  }
  throw new HoldfastError(
    'INVALID_INPUT',
    `An input of decider "${type}" must be an object with a type. Got ${shownTyped(input)}.`,
  )
}

/** What was given in place of an object with a type. */
export function shownTyped(given: unknown): string {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return shown(given)
  const { type } = given as Partial<Typed>
  return type === undefined ? 'an object without a type' : `an object whose type is ${shown(type)}`
}

function readsOf(given: unknown, where: string): Readonly<Record<string, Read>> {
  if (isRead(given)) return { '*': given }
  const isEach = isPlainObject(given) && Object.values(given).every((one) => one === null || isRead(one))
  if (isEach && Object.keys(given).length > 0) return given as Readonly<Record<string, Read>>
  throw new HoldfastError(
    'INVALID_OPTION',
    `${where} must be the name of a field of its inputs, a function, or one of these for each type of input. Got ${shown(given)}.`,
  )
}

function isRead(given: unknown): given is Read {
  return typeof given === 'function' || (typeof given === 'string' && given !== '')
}

function readId(read: NonNullable<Read>, input: Typed, where: string): unknown {
  if (typeof read === 'string')
    return Object.hasOwn(input, read) ? (input as unknown as Record<string, unknown>)[read] : undefined
  try {
    return read(input)
  } catch (cause) {
    throw invalid(`${where} failed for an input ${shown(input.type)}: ${messageOf(cause)}`, input, cause)
  }
}

function checkedId(id: unknown, where: string, input: Typed): string {
  try {
    return checkKey(id, where)
  } catch (cause) {
    throw invalid(`${messageOf(cause)} It was read from an input ${shown(input.type)}.`, input)
  }
}

function invalid(message: string, { type }: Typed, cause?: unknown): HoldfastError {
  return new HoldfastError('INVALID_INPUT', message, {
    details: { input: type },
    ...(cause === undefined ? {} : { cause }),
  })
}
