// The one run that a command takes: by its id, by its business key and type, or as an instance of a decider by its id and type.

import type { Command } from 'commander'
import { HoldfastError } from '../../core/errors/error.ts'
import { isTerminal, runStatuses } from '../../core/model/run.ts'
import type { Holdfast } from '../../holdfast.ts'
import { keyHint } from '../../client/stored-key.ts'
import { type Call, type Need, type Opened } from '../command-call.ts'
import { checkRunId } from './run-filter.ts'
import { quoted, usage } from '../usage.ts'
import type { WorkflowModule } from './workflow-module.ts'

export interface NameOptions {
  readonly key?: string
  readonly id?: string
  readonly type?: string
}

export function addNameOptions(command: Command): Command {
  return command
    .argument('[run]', 'the id of the run')
    .option('--key <key>', 'the business key of the run, instead of its id')
    .option('--id <id>', 'the id of an instance of a decider, as its inputs name it')
    .option('--type <type>', 'with --key or --id: the type of the run')
}

export interface NamedRun {
  readonly holdfast: Holdfast
  readonly id: string
}

/** Opens the store and finds the run. Wrong arguments are refused before anything is opened. */
export async function openRun(
  call: Call,
  id: string | undefined,
  options: NameOptions,
  looks: Pick<Need, 'onlyLooks' | 'migrate'> = {},
): Promise<NamedRun> {
  const need = { store: 'existing', ...looks } as const
  const { key, type, id: instance } = options
  if ([id, key, instance].filter((one) => one !== undefined).length > 1) {
    throw usage('A run is named by its id, by --key or by --id, not by both.')
  }
  if (id !== undefined) return { id: checkRunId(id), ...(await call.open(need)) }
  const named = key ?? instance
  if (named === undefined) throw usage('Which run? Name it by its id, or by --key <key> with --type <type>.')
  if (type === undefined)
    throw usage(`${key === undefined ? 'An id of an instance' : 'A key'} alone names no run: add its --type <type>.`)
  const opened = await call.open(need)
  const find = key === undefined ? idOfInstance : idByKey
  return { holdfast: opened.holdfast, id: await find(opened, named, type) }
}

async function idOfInstance({ holdfast }: Opened, id: string, type: string): Promise<string> {
  const [run] = (await holdfast.find({ type, idempotencyKey: id, limit: 1 })).runs
  if (run !== undefined) return run.id
  const message = `There is no instance ${quoted(id)} of ${quoted(type)} in this store.`
  throw new HoldfastError('RUN_NOT_FOUND', message, { details: { type, id } })
}

/** There is no run of that type with that key: says so and, if the key may lack its field, what to do. */
export function noRunWithKey({ module }: Pick<Opened, 'module'>, key: string, type: string): HoldfastError {
  const hint = hintFor(module, key, type)
  const message = `There is no run of ${quoted(type)} with the key ${quoted(key)} in this store.`
  return new HoldfastError('RUN_NOT_FOUND', hint === null ? message : `${message} ${hint}`, { details: { key, type } })
}

/** An instance of a decider has this id, which is another thing than a business key. */
function noKeyButId(key: string, type: string): HoldfastError {
  const message =
    `There is no run of ${quoted(type)} with the key ${quoted(key)} in this store, but one with that id. ` +
    'Did you mean --id instead of --key?'
  return new HoldfastError('RUN_NOT_FOUND', message, { details: { key, type } })
}

/** What to do if a key that was named on the command line finds nothing; null if it is complete. */
export function hintFor(module: WorkflowModule | null, key: string, type: string): string | null {
  const isRegistered = module?.definitions.some((definition) => definition.type === type) ?? false
  return keyHint(isRegistered, key, 'name the module of the workflow with --workflows')
}

/** The live run that has the key; if there is none, the one that had it last. */
async function idByKey({ holdfast, module }: Opened, key: string, type: string): Promise<string> {
  const live = await holdfast.find({ key, type, status: runStatuses.filter((status) => !isTerminal(status)), limit: 2 })
  const [first, second] = live.runs.length > 0 ? live.runs : (await holdfast.find({ key, type, limit: 1 })).runs
  if (first === undefined) {
    const instance = (await holdfast.find({ type, idempotencyKey: key, limit: 1 })).runs.length > 0
    throw instance ? noKeyButId(key, type) : noRunWithKey({ module }, key, type)
  }
  if (second !== undefined) {
    const which = `${first.id} and ${second.id}`
    throw usage(
      `Several live runs of ${quoted(type)} have the key ${quoted(key)}, among them ${which}. Name one by its id.`,
    )
  }
  return first.id
}
