// The options of a start, and how they become part of the row of the run.

import { isDecider, type DeciderDefinition } from '../../core/definition/decider-model.ts'
import type { Definition } from '../../core/definition/definition.ts'
import { someTime, toMs, type Duration } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { isRunId } from '../../core/model/run-id.ts'
import { checkKey, checkScope, type KeyScope } from '../../core/model/key.ts'
import { checkMetadata, checkTags } from '../../core/definition/labels.ts'
import { atMost, type Limits } from '../../core/definition/limits.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import type { Due } from '../../core/model/due.ts'
import type { NewRun } from '../../store.ts'
import { checkAbortSignal, type AbortOption } from '../abort-option.ts'
import { idOf, type RunReference } from '../run-reference.ts'
import { quotedText } from '../../core/text/printable.ts'

export interface StartOptions extends AbortOption {
  /** The id of the run: a UUID of version 7. Starting the same id again gives the run that exists. @default a new one */
  readonly id?: string
  /**
   * The business key: what the world outside calls this run. A live run that has it keeps others from starting. A workflow with
   * `unique` reads it from the input; another one given here is INVALID_OPTION.
   */
  readonly key?: string
  /**
   * Among which live runs the key is unique. Of a workflow with `unique`, another scope than its own is INVALID_OPTION.
   * @default what the workflow says, or 'workflow'
   */
  readonly scope?: KeyScope
  /** If a live run has the key: throw RUN_EXISTS, or return that run without comparing inputs. @default 'error' */
  readonly onConflict?: 'error' | 'return'
  /**
   * Makes a repeated start harmless: one run of this workflow has it, however often it is started, until it is removed. With
   * another input than the first time it is INPUT_CONFLICT.
   */
  readonly idempotencyKey?: string
  /** Which version of the workflow; runs keep theirs. @default what versionFor says, or the newest that is known here */
  readonly version?: number
  /** Words to find the run by; they are not encrypted. Those of the workflow are added. */
  readonly tags?: readonly string[]
  /** Data about the run, as a JSON object; it is not encrypted. That of the workflow is added. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** The run that asked for this one. */
  readonly parent?: RunReference
  /** How often the body is tried. @default what the workflow says */
  readonly maxAttempts?: number
  /** Higher goes first. @default 0 */
  readonly priority?: number
  /** Not begun before this point in time. @default at once */
  readonly runAt?: Date
  /** Not begun before this much time has passed, by the store's clock. Not together with `runAt`. @default none */
  readonly delay?: Duration
  /** The run fails with RUN_TIMEOUT if it has not ended by then. @default no limit */
  readonly timeout?: Duration
  /** The run fails with RUN_EXPIRED if no worker has begun it by then. @default never */
  readonly expiresIn?: Duration
}

export const startOptionNames: readonly string[] = [
  'id',
  'key',
  'scope',
  'onConflict',
  'idempotencyKey',
  'version',
  'tags',
  'metadata',
  'parent',
  'maxAttempts',
  'priority',
  'runAt',
  'delay',
  'timeout',
  'expiresIn',
  'abortSignal',
]

export function checkWorkflow(workflow: unknown): void {
  if (typeof workflow === 'object' && workflow !== null && 'type' in workflow && typeof workflow.type === 'string')
    return
  throw new HoldfastError(
    'INVALID_OPTION',
    `A start needs a workflow, made by workflow(), or the name of one. Got ${shown(workflow)}.`,
  )
}

export function checkStartOptions(options: StartOptions, type: string): void {
  checkOptions(options, startOptionNames, `start of ${shown(type)}`)
  checkAbortSignal(options.abortSignal)
}

/**
 * The options of a child, which a run starts: its parent is given, a conflict of keys comes to the parent as a message, and the
 * parent waits for the store as for its own commits.
 */
export type StartedChildOptions = Omit<StartOptions, 'parent' | 'onConflict' | 'abortSignal'>

const notOfChildren = ['parent', 'onConflict', 'abortSignal']
const childOptionNames = startOptionNames.filter((name) => !notOfChildren.includes(name))

export function checkChildOptions(options: StartedChildOptions, type: string): void {
  checkOptions(options, childOptionNames, `start of ${shown(type)} by a run`)
}

/** Most starts have no options. */
const plain = {
  key: null,
  keyScope: 'workflow',
  idempotencyKey: null,
  parentId: null,
  tags: [],
  metadata: null,
  priority: 0,
  due: null,
  timeoutMs: null,
  expiresInMs: null,
} as const

export type Described = Pick<NewRun, keyof typeof plain>

/** The part of the row that follows from the options of the start and of the workflow. Throws INVALID_OPTION or INVALID_NAME. */
export function describeRun(
  options: StartOptions | undefined,
  definition: Definition,
  input: unknown,
  limits: Limits,
): Described {
  const isPlain =
    !isDecider(definition) && definition.unique === null && definition.tags.length === 0 && definition.metadata === null
  if (options === undefined && isPlain) return plain
  const { priority = 0, timeout, expiresIn, idempotencyKey, parent, onConflict = 'error' } = options ?? {}
  const own = isDecider(definition) ? identityOf(definition, input, options) : null
  if (!Number.isInteger(priority) || Math.abs(priority) > limits.priority) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The priority of a run is a whole number, from 0 in either direction ${atMost(limits, 'priority')}. ` +
        `Got ${shown(priority)}.`,
    )
  }
  if (onConflict !== 'error' && onConflict !== 'return') {
    throw new HoldfastError('INVALID_OPTION', `onConflict must be 'error' or 'return'. Got ${shown(onConflict)}.`)
  }
  return {
    ...(own ?? keyOf(options ?? {}, definition, input)),
    idempotencyKey:
      own?.idempotencyKey ?? (idempotencyKey === undefined ? null : checkKey(idempotencyKey, 'An idempotency key')),
    parentId: parent === undefined ? null : checkParent(idOf(parent)),
    tags: tagsOf(options?.tags, definition, limits),
    metadata: metadataOf(options?.metadata, definition),
    priority,
    due: dueOf(options ?? {}),
    timeoutMs: timeout === undefined ? null : toMs(timeout, 'start(…, { timeout })', someTime),
    expiresInMs: expiresIn === undefined ? null : toMs(expiresIn, 'start(…, { expiresIn })', someTime),
  }
}

/** An instance of a decider is named by its input, in both ways. */
function identityOf(
  { type, model }: DeciderDefinition,
  input: unknown,
  { key, scope, idempotencyKey }: StartOptions = {},
): Pick<NewRun, 'key' | 'keyScope' | 'idempotencyKey'> {
  const given = Object.entries({ key, scope, idempotencyKey }).find(([, value]) => value !== undefined)
  if (given === undefined) {
    return { key: model.uniqueKeyOf(input), keyScope: 'workflow', idempotencyKey: model.idOf(input) }
  }
  throw new HoldfastError(
    'INVALID_OPTION',
    `Decider ${quotedText(type)} reads the id and the unique key of an instance from its input: leave out ${given[0]}.`,
  )
}

function tagsOf(given: unknown, { tags }: Definition, limits: Limits): readonly string[] {
  // Those of a workflow were checked when it was defined, but not against the limit of this Holdfast.
  if (given === undefined) return tags.length <= limits.tags ? tags : checkTags(tags, 'The tags of a run', limits)
  // Checked before the two lists become one: spreading a text would make a tag of each letter.
  if (Array.isArray(given)) return checkTags([...tags, ...(given as unknown[])], 'The tags of a run', limits)
  throw new HoldfastError('INVALID_OPTION', `The tags of a run must be a list. Got ${shown(given)}.`)
}

function metadataOf(given: unknown, { metadata }: Definition): string | null {
  const what = 'The metadata of a run'
  // Checked before the two become one: spreading a list would make a member of each element.
  if (given !== undefined) checkMetadata(given, what)
  return checkMetadata({ ...metadata, ...(given as object | undefined) }, what)
}

function keyOf(
  { key, scope }: StartOptions,
  { type, unique }: Definition,
  input: unknown,
): Pick<NewRun, 'key' | 'keyScope'> {
  const keyScope = checkScope(scope ?? unique?.scope ?? 'workflow', 'The scope of a key')
  if (unique === null) return { key: key === undefined ? null : checkKey(key, 'The key of a run'), keyScope }
  if (keyScope !== unique.scope) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `The runs of ${quotedText(type)} are unique by its own scope, ${shown(unique.scope)}. The scope ${shown(scope)} says something else: leave it out.`,
      { details: { type, scope: keyScope, own: unique.scope } },
    )
  }
  const own = unique.keyOf(input)
  // Neither may win silently: the one names another run than the other.
  if (key === undefined || key === own || (unique.field !== null && own === `${unique.field}::${key}`))
    return { key: own, keyScope }
  throw new HoldfastError(
    'INVALID_OPTION',
    `The key of a run of ${quotedText(type)} is read from its input: ${shown(own)}. The key ${shown(key)} says something else: leave it out.`,
    { details: { type, key, own } },
  )
}

/** The meta of the first entry. */
export function startedMeta({ maxAttempts }: StartOptions): { readonly maxAttempts: number } | null {
  if (maxAttempts === undefined) return null
  if (Number.isInteger(maxAttempts) && maxAttempts >= 1) return { maxAttempts }
  throw new HoldfastError('INVALID_OPTION', `maxAttempts must be a whole number from 1. Got ${shown(maxAttempts)}.`)
}

export function checkId(id: string): string {
  if (isRunId(id)) return id
  throw new HoldfastError(
    'INVALID_OPTION',
    `The id of a run must be a UUID of version 7 in lower case. Got ${shown(id)}. A name of your own is ` +
      `a { key }, which one live run has, or an { idempotencyKey }.`,
    { details: { id } },
  )
}

function checkParent(id: string): string {
  if (isRunId(id)) return id
  throw new HoldfastError('INVALID_OPTION', `start(…, { parent }) takes a run, or its id. Got ${shown(id)}.`)
}

function dueOf({ runAt, delay }: StartOptions): Due | null {
  if (runAt !== undefined && delay !== undefined) {
    throw new HoldfastError(
      'INVALID_OPTION',
      'A start takes runAt or delay, not both: a point in time, or a duration from now.',
    )
  }
  if (delay !== undefined) return { at: null, afterMs: toMs(delay, 'start(…, { delay })') }
  if (runAt === undefined) return null
  const at = (runAt as unknown) instanceof Date ? runAt.getTime() : Number.NaN
  if (!Number.isNaN(at)) return { at, afterMs: null }
  throw new HoldfastError(
    'INVALID_OPTION',
    `runAt must be a valid Date. Got ${shown(runAt)}. For a duration from now there is delay.`,
  )
}
