// The run that a message of the command line is for, its name and its payload: `<run> <name> [payload]`, or with a key
// `--type <type> --key <key> <name> [payload]`.

import type { Topic } from '../../core/definition/declared-topic.ts'
import type { KeyReference } from '../../client/send/signal-target.ts'
import type { Holdfast } from '../../holdfast.ts'
import type { Call } from '../command-call.ts'
import { usage } from '../usage.ts'
import { inputOf } from './input-argument.ts'
import { hintFor, noRunWithKey, type NameOptions } from './named-run.ts'
import { checkRunId } from './run-filter.ts'
import type { WorkflowModule } from './workflow-module.ts'

export interface AddressOptions extends NameOptions {
  readonly file?: string
}

export type Addressee = string | KeyReference

interface Parts {
  readonly target: Addressee
  readonly name: string
  readonly payload: string | undefined
}

export interface Addressed {
  readonly holdfast: Holdfast
  readonly target: Addressee
  readonly name: string
  /** The topic of that name, if the module exports one. */
  readonly named: string | Topic
  readonly payload: unknown
}

/** Reads the arguments and opens the store. Throws usage errors, and RUN_NOT_FOUND for a key that may lack its field. */
export async function addressed(call: Call, args: readonly string[], options: AddressOptions): Promise<Addressed> {
  const { target, name, payload: text } = partsOf(args, options)
  const payload = await inputOf(call, 'payload', text, options.file)
  const { holdfast, module } = await call.open({ store: 'existing' })
  if (typeof target !== 'string') await assertKnownKey(holdfast, module, target)
  const named = module?.topics.find((topic) => topic.name === name) ?? name
  return { holdfast, target, name, named, payload }
}

function partsOf(args: readonly string[], { key, type }: AddressOptions): Parts {
  if (key === undefined) {
    const [run, name, payload] = args
    if (run === undefined) throw usage('Which run? Name it by its id, or by --key <key> with --type <type>.')
    if (name === undefined) throw usage('Which signal? Its name comes after the id of the run.')
    return { target: checkRunId(run), name, payload }
  }
  const [name, payload, more] = args
  if (type === undefined) throw usage('A key alone names no run: add its --type <type>.')
  if (name === undefined) throw usage('Which signal? Say its name.')
  if (more !== undefined) throw usage('A run is named by its id or by --key, not by both.')
  return { target: { type, key }, name, payload }
}

/** A key that may lack its field is looked up before: the error then says what to do. */
async function assertKnownKey(holdfast: Holdfast, module: WorkflowModule | null, target: KeyReference): Promise<void> {
  const { type, key } = target
  if (hintFor(module, key, type) === null) return
  if ((await holdfast.find({ type, key, limit: 1 })).runs.length === 0) throw noRunWithKey({ module }, key, type)
}
