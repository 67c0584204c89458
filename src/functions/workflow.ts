// `workflow()`: the definition of a durable function.

import type { Claim, Host, TypedDefinition } from '../core/definition.ts'
import { toMs, type Duration } from '../core/duration.ts'
import { HoldfastError } from '../core/error.ts'
import { checkMetadata, checkTags, readMetadata } from '../core/labels.ts'
import { retryPolicy, retryPresets, type Retry } from '../core/retry.ts'
import { isSchema, validate, type Schema } from '../core/schema.ts'
import { checkOptions } from '../core/suggest.ts'
import type { Context } from './context.ts'
import { FunctionFrame } from './frame.ts'
import { checkUnique, type UniqueOptions } from './unique.ts'

export interface WorkflowOptions<Input = unknown, Validated = Input> {
  /** Checks the input when a run is started; the body gets what the schema makes of it. Any Standard Schema library. */
  readonly input?: Schema<Input, Validated>
  /** Runs keep the version that they began with. @default 1 */
  readonly version?: number
  /** How often a failing body is tried again, and the default for its steps. @default three attempts */
  readonly retry?: Retry
  /**
   * How long one claim of a run may last: after that without `step.heartbeat()` another worker takes the run over, even if
   * this process is alive. @default no limit of its own
   */
  readonly lease?: Duration
  /** What its runs are about, such as `{ key: 'orderid' }`: only one run of each value is live in that scope. */
  readonly unique?: UniqueOptions
  /** Each of its runs has these, besides those that its start gives. */
  readonly tags?: readonly string[]
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A durable function. `Input` is what `start` takes, `Output` what `result()` gives. */
export interface Workflow<Input, Output> extends TypedDefinition<Input, Output> {
  readonly style: 'function'
}

export type Body<Input, Returned> = (ctx: Context, input: Input) => Returned

/** A body that is an object: its method is called with the object as `this`. */
export interface Runnable<Input, Returned> {
  run(ctx: Context, input: Input): Returned
}

/**
 * Defines a workflow: a function whose steps happen once, whatever happens to the process that runs it.
 *
 * @example
 * const greet = workflow('demo.greet', async (ctx, name: string) => {
 *   const greeting = await ctx.step('greet', () => `Hello, ${name}`)
 *   await ctx.sleep('1 s')
 *   return greeting
 * })
 */
export function workflow<Input, Validated, Returned>(
  type: string,
  options: WorkflowOptions<Input, Validated> & { readonly input: Schema<Input, Validated> },
  body: Body<Validated, Returned> | Runnable<Validated, Returned>,
): Workflow<Input, Awaited<Returned>>
export function workflow<Input = void, Returned = unknown>(
  type: string,
  options: WorkflowOptions & { readonly input?: never },
  body: Body<Input, Returned> | Runnable<Input, Returned>,
): Workflow<Input, Awaited<Returned>>
export function workflow<Input = void, Returned = unknown>(
  type: string,
  body: Body<Input, Returned> | Runnable<Input, Returned>,
): Workflow<Input, Awaited<Returned>>
export function workflow(
  type: string,
  optionsOrBody: WorkflowOptions | AnyBody,
  bodyOrNothing?: AnyBody,
): Workflow<never, unknown> {
  const isBodyOnly = bodyOrNothing === undefined && bodyOf(optionsOrBody) !== undefined
  const options = isBodyOnly ? {} : (optionsOrBody as WorkflowOptions)
  const body = bodyOf(isBodyOnly ? optionsOrBody : bodyOrNothing)
  checkType(type)
  const where = `workflow "${type}"`
  checkOptions(options, ['input', 'version', 'retry', 'lease', 'unique', 'tags', 'metadata'], where)
  if (body === undefined) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The last argument of ${where} must be its body: a function (ctx, input), or an object with a method run(ctx, input).`,
    )
  }
  const { input, version = 1, retry, lease } = options
  if (!Number.isInteger(version) || version < 1) {
    throw new HoldfastError('INVALID_OPTION', `The version of ${where} must be a whole number from 1. Got ${version}.`)
  }
  if (input !== undefined && !isSchema(input)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The input of ${where} must be a schema that follows Standard Schema: of zod, valibot, arktype or another library.`,
    )
  }
  const policy = retryPolicy(retry, retryPresets.simpleWorkflow, `${where}: retry`)
  const definition: Workflow<never, unknown> = {
    type,
    version,
    style: 'function',
    leaseMs: lease === undefined ? null : toMs(lease, `The lease of ${where}`),
    unique: checkUnique(options.unique, where),
    tags: checkTags(options.tags ?? [], `The tags of ${where}`),
    metadata: readMetadata(checkMetadata(options.metadata ?? {}, `The metadata of ${where}`)),
    validate: (value) => (input === undefined ? value : validate(input, value, `The input of ${where}`)),
    open: (host: Host, claim: Claim) => new FunctionFrame({ policy, body, definition }, host, claim),
  }
  return definition
}

type AnyBody = Body<never, unknown> | Runnable<never, unknown>

function bodyOf(given: unknown): Body<never, unknown> | undefined {
  if (typeof given === 'function') return given as Body<never, unknown>
  if (typeof given !== 'object' || given === null || !('run' in given) || typeof given.run !== 'function')
    return undefined
  const runnable = given as Runnable<never, unknown>
  return (ctx, input) => runnable.run(ctx, input)
}

function checkType(type: unknown): void {
  if (typeof type === 'string' && type.length <= 200 && /^[A-Za-z0-9][\w.:-]*$/.test(type)) return
  throw new HoldfastError(
    'INVALID_NAME',
    `A workflow needs a type like "billing.charge" or "billing.charge.v1": letters, digits and . : _ -, ` +
      `at most 200. Got ${typeof type === 'string' ? JSON.stringify(type.slice(0, 40)) : typeof type}.`,
  )
}
