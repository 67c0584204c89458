// Validation through any library that follows the Standard Schema convention (zod, valibot, arktype and others).
// Only the part of the convention that we use is described here, by structure, so that no dependency is needed.

import { HoldfastError } from '../errors/error.ts'

export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** Whether a value has the one property that makes it a schema; some libraries use functions. */
export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as Partial<Schema>)['~standard']
  return typeof standard?.validate === 'function'
}

/**
 * Returns the schema's output for a value, or throws INVALID_INPUT with every issue and its path. Returns a promise only if
 * the schema is asynchronous.
 */
export function validate<Output>(
  schema: Schema<unknown, Output>,
  value: unknown,
  what: string,
): Output | Promise<Output> {
  const result = schema['~standard'].validate(value)
  return result instanceof Promise ? result.then((later) => accepted(later, what)) : accepted(result, what)
}

const mostIssues = 20

function accepted<Output>(result: SchemaResult<Output>, what: string): Output {
  if (result.issues === undefined) return result.value
  const issues = result.issues.map((issue) => ({ path: pathOf(issue), message: issue.message }))
  // A list of a thousand may have a thousand issues, and a schema may quote the value.
  const lines = issues
    .slice(0, mostIssues)
    .map(({ path, message }) => `${path.slice(0, 200)}: ${message.slice(0, 200)}`)
  if (issues.length > mostIssues) lines.push(`and ${issues.length - mostIssues} more`)
  throw new HoldfastError('INVALID_INPUT', `${what} does not fit its schema. ${lines.join('; ')}`, {
    details: { issues },
  })
}

function pathOf({ path = [] }: SchemaIssue): string {
  return path.reduce<string>((text, part) => {
    const key = typeof part === 'object' ? part.key : part
    return typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`
  }, '$')
}
