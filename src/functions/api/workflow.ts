// `workflow()`: the definition of a durable function.

import type { Claim, Host, TypedDefinition } from '../../core/definition/definition.ts'
import { leaseBounds, toMs, type Duration } from '../../core/definition/duration.ts'
import { highestLimits } from '../../core/definition/limits.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { checkMetadata, checkTags } from '../../core/definition/labels.ts'
import { metadataIn } from '../../core/rows/run-row.ts'
import { retryNames, retryPolicy, retryPresets, type Retry } from '../../core/definition/retry.ts'
import { isSchema, validate, type Schema } from '../../core/definition/schema.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import { CallPlaces } from '../replay/call-site.ts'
import { leastMaxCrashes } from '../../core/rules/claims/suspect.ts'
import type { OnCrashes } from '../../core/rules/claims/takeover.ts'
import type { Context } from './context.ts'
import type { FunctionBody } from '../frame/function-body.ts'
import { FunctionFrame } from '../frame/frame.ts'
import { checkUnique, type UniqueOptions } from './unique.ts'
import { quotedText } from '../../core/text/printable.ts'

export interface WorkflowOptions<Input = unknown, Validated = Input> {
  /** Checks the input when a run is started; the body gets the output of the schema. Any Standard Schema library. */
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
  /** How many steps of one run may be under way at once; the others begin in the order of their calls. @default 500 */
  readonly parallel?: number
  /**
   * How many processes may die of one of its runs before `onCrashes` happens. From the third on the run is performed alone,
   * and only that counts. @default that of the worker
   */
  readonly maxCrashes?: number
  /** What happens to a run at that bound: it is paused until an operator resumes it, or fails. @default 'pause' */
  readonly onCrashes?: OnCrashes
  /**
   * The feed reports the journals of its runs, in the order of all commits, to projections that follow it. Every commit of
   * such a run costs one more row. @default false
   */
  readonly feed?: boolean
  /**
   * Reads the business key of each run from its input, so that only one run of each key is live in that scope.
   *
   * @example
   * workflow('order', { input: z.object({ orderId: z.string() }), unique: { key: 'orderId' } }, async (ctx, order) => …)
   */
  readonly unique?: UniqueOptions<Validated>
  /** Each of its runs has these, besides those that its start gives. */
  readonly tags?: readonly string[]
  readonly metadata?: Readonly<Record<string, unknown>>
}

export const workflowOptionNames = [
  'input',
  'version',
  'retry',
  'lease',
  'parallel',
  'maxCrashes',
  'onCrashes',
  'feed',
  'unique',
  'tags',
  'metadata',
]

/** What people look for at the workflow, and find under another name or at the start of a run. */
const optionsElsewhere = {
  ...retryNames,
  ...Object.fromEntries(
    ['timeout', 'expiresIn', 'delay', 'runAt', 'priority', 'key', 'idempotencyKey'].map((name) => [
      name,
      `It is an option of each run: holdfast.start(workflow, input, { ${name} }).`,
    ]),
  ),
}

/** A durable function. `Input` is the argument of `start`, `Output` the result of `result()`. */
export interface Workflow<Input, Output> extends TypedDefinition<Input, Output> {
  readonly style: 'function'
}

/** `Given` is the input as `start` takes it, `Input` the output of the schema. */
export type Body<Input, Returned, Given = Input> = (ctx: Context<NoInfer<Given>>, input: Input) => Returned

/** A body that is an object: its method is called with the object as `this`. */
export interface Runnable<Input, Returned, Given = Input> {
  run(ctx: Context<NoInfer<Given>>, input: Input): Returned
}

/**
 * Defines a workflow: a function whose steps happen once, even if the process that runs it dies.
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
  body: Body<Validated, Returned, Input> | Runnable<Validated, Returned, Input>,
): Workflow<Input, Awaited<Returned>>
export function workflow<Input = void, Returned = unknown>(
  type: string,
  options: WorkflowOptions<NoInfer<Input>> & { readonly input?: never },
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
  const where = `workflow ${quotedText(type)}`
  if (body === undefined) {
    const order = typeof optionsOrBody === 'function' ? ' The options come before the body.' : ''
    throw new HoldfastError(
      'INVALID_OPTION',
      `The last argument of ${where} must be its body: a function (ctx, input), or an object with a method run(ctx, input).${order}`,
    )
  }
  checkOptions(options, workflowOptionNames, where, optionsElsewhere)
  const { input, version = 1, retry, lease, parallel = 500, feed = false } = options
  if (!Number.isInteger(version) || version < 1) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The version of ${where} must be a whole number from 1. Got ${shown(version)}.`,
    )
  }
  if (!Number.isInteger(parallel) || parallel < 1) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `parallel of ${where} must be a whole number from 1: how many steps of a run go on at once. Got ${shown(parallel)}.`,
    )
  }
  if (typeof feed !== 'boolean') {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The feed of ${where} is true or false: whether projections can follow its runs. Got ${shown(feed)}.`,
    )
  }
  if (input !== undefined && !isSchema(input)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The input of ${where} must be a schema that follows Standard Schema: of zod, valibot, arktype or another library.`,
    )
  }
  const policy = retryPolicy(retry, retryPresets.standard, `${where}: retry`)
  const places = new CallPlaces()
  const definition: Workflow<never, unknown> = {
    type,
    version,
    style: 'function',
    leaseMs: lease === undefined ? null : toMs(lease, `The lease of ${where}`, leaseBounds),
    ...checkCrashes(options, where),
    feed,
    unique: checkUnique(options.unique, where),
    // How many a run may have is up to the Holdfast that starts it.
    tags: checkTags(options.tags ?? [], `The tags of ${where}`, highestLimits),
    metadata: metadataIn(checkMetadata(options.metadata ?? {}, `The metadata of ${where}`)) ?? null,
    validate: (value) => (input === undefined ? value : validate(input, value, `The input of ${where}`)),
    open: (host: Host, claim: Claim) => new FunctionFrame(opened, host, claim),
  }
  const opened: FunctionBody = { policy, parallel, body, definition, places }
  return definition
}

function checkCrashes(
  { maxCrashes, onCrashes = 'pause' }: WorkflowOptions,
  where: string,
): { readonly maxCrashes: number | null; readonly onCrashes: OnCrashes } {
  if (maxCrashes !== undefined && !(Number.isInteger(maxCrashes) && maxCrashes >= leastMaxCrashes)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The maxCrashes of ${where} must be a whole number from ${leastMaxCrashes}: a run is performed alone from its third ` +
        `try on, and only that can count them. Got ${shown(maxCrashes)}.`,
    )
  }
  if (onCrashes !== 'pause' && onCrashes !== 'fail') {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The onCrashes of ${where} is 'pause' or 'fail'. Got ${shown(onCrashes)}.`,
    )
  }
  return { maxCrashes: maxCrashes ?? null, onCrashes }
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
      `at most 200. Got ${shown(type)}.`,
  )
}
