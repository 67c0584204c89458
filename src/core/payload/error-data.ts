// Errors as data: which classes an error belongs to and which parts it has, and an error made again from them. Invariant: an
// error that is caught on replay is an instance of the class that was thrown, as far as that class is known here: built in,
// HoldfastError, or registered. No constructor of a user's class runs, and no other class is revived.

import { errorCodes, HoldfastError, type ErrorCode } from '../errors/error.ts'

/** A class of errors, abstract or not. */
export type ErrorClass = (abstract new (...args: never[]) => Error) & { readonly name: string }

/** The classes by the name under which errors are stored. */
export type ErrorClasses = ReadonlyMap<string, ErrorClass>

/** A decoded `$error`. */
export interface ErrorParts {
  readonly name: string
  readonly message: string
  /** From the thrown class up to the last before Error; only the name when the text has none. */
  readonly classes: readonly string[]
  readonly stack?: string
  readonly cause?: unknown
  readonly errors?: readonly unknown[]
  readonly props: Readonly<Record<string, unknown>>
}

const builtIns: readonly ErrorClass[] = [
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
  AggregateError,
]
const holdfast = 'HoldfastError'
const longestChain = 16
const described: ReadonlySet<string> = new Set(['name', 'message', 'stack', 'cause'])

export function errorClasses(registered: readonly ErrorClass[]): ErrorClasses {
  const classes = new Map<string, ErrorClass>(builtIns.map((one) => [one.name, one]))
  classes.set(holdfast, HoldfastError)
  for (const one of registered) {
    if (typeof one !== 'function' || !(one.prototype instanceof Error) || one.name === '') {
      throw new HoldfastError('INVALID_OPTION', 'Each of `errors` must be a named class that extends Error.')
    }
    if (classes.has(one.name)) {
      const message = `Two error classes are called ${one.name}. Errors are stored by the name of their class: rename one.`
      throw new HoldfastError('INVALID_OPTION', message, { details: { name: one.name } })
    }
    classes.set(one.name, one)
  }
  return classes
}

export function isError(value: object): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

/** The names of an error's classes, from its own up to the last before Error. */
export function classChain(error: Error): string[] {
  const chain: string[] = []
  let prototype = Object.getPrototypeOf(error) as object | null
  while (prototype !== null && chain.length < longestChain) {
    const next = Object.getPrototypeOf(prototype) as object | null
    if (next === null) break
    // A minifier may have renamed our own class; its prototype is known all the same.
    const name: unknown = prototype === HoldfastError.prototype ? holdfast : nameOfClass(prototype)
    if (typeof name === 'string' && name !== '') chain.push(name)
    prototype = next
  }
  if (chain.length > 1 && chain.at(-1) === 'Error') chain.pop()
  return chain
}

function nameOfClass(prototype: object): unknown {
  return Object.hasOwn(prototype, 'constructor')
    ? (prototype.constructor as { name?: unknown } | null)?.name
    : undefined
}

/** The parts of an error besides name, message and stack. `errors` of an AggregateError is not enumerable. */
export function ownParts(error: Error): { hasCause: boolean; errors: readonly unknown[] | undefined; keys: string[] } {
  const errors: unknown = Object.getOwnPropertyDescriptor(error, 'errors')
  const { enumerable, value } = (errors ?? {}) as { enumerable?: boolean; value?: unknown }
  return {
    hasCause: 'cause' in error,
    errors: enumerable === false && Array.isArray(value) ? (value as unknown[]) : undefined,
    keys: Object.keys(error).filter((key) => !described.has(key)),
  }
}

export function rebuildError(parts: ErrorParts, classes: ErrorClasses): Error {
  const error = construct(parts, classes)
  const hide = (key: string, value: unknown) =>
    Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: false })
  if (parts.stack === undefined) delete error.stack
  else hide('stack', parts.stack)
  if (error.name !== parts.name) hide('name', parts.name)
  if ('cause' in parts) hide('cause', parts.cause)
  if (parts.errors !== undefined) hide('errors', parts.errors)
  for (const key of Object.keys(parts.props)) {
    const value = parts.props[key]
    Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: true })
  }
  return error
}

/** Runs the constructor of Error or of HoldfastError on behalf of the class, so that the error is a real one. */
function construct(parts: ErrorParts, classes: ErrorClasses): Error {
  const { code, details } = parts.props
  const isOurs = parts.classes.includes(holdfast) && errorCodes.includes(code as ErrorCode)
  for (const name of parts.classes) {
    const target = classes.get(name)
    if (target === undefined || (!isOurs && isOrExtendsHoldfast(target))) continue
    if (!isOurs) return Reflect.construct(Error, [parts.message], target) as Error
    const options = typeof details === 'object' && details !== null ? { details } : {}
    return Reflect.construct(HoldfastError, [code, parts.message, options], target) as Error
  }
  return new Error(parts.message)
}

function isOrExtendsHoldfast(target: ErrorClass): boolean {
  return target === HoldfastError || target.prototype instanceof HoldfastError
}

/**
 * Lets `JSON.stringify` show the errors in a value that was read, with name, message and cause: of an error of any other
 * class it shows `{}`. The value stays the same for any other use. An error with its own `toJSON` is left alone.
 */
export function showErrors<Value>(value: Value, seen: Set<object> = new Set()): Value {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || seen.has(value)) return value
  seen.add(value)
  if (isError(value)) {
    if (!('toJSON' in value) && Object.isExtensible(value)) {
      Object.defineProperty(value, 'toJSON', {
        value: errorJson,
        writable: true,
        configurable: true,
        enumerable: false,
      })
    }
    showErrors(value.cause, seen)
  }
  for (const part of Object.values(value)) showErrors(part, seen)
  return value
}

function errorJson(this: Error): Record<string, unknown> {
  const { name, message, cause } = this
  return { name, message, ...(this as object), ...(cause === undefined ? {} : { cause }) }
}
