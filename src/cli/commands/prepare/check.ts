// `holdfast check`: imports a module, checks its definitions without performing a run, and names every problem. With
// --against it is the deploy gate: it replays recorded runs against the module.

import type { Command } from 'commander'
import type { Definition } from '../../../core/definition/definition.ts'
import { isHoldfastError } from '../../../core/errors/error.ts'
import { createHoldfast, type HoldfastOptions } from '../../../holdfast.ts'
import { examples, type Act, type Call } from '../../command-call.ts'
import { checkAgainst, type GateOptions } from '../../deploy-gate.ts'
import { quotedText, visible } from '../../../core/text/printable.ts'
import { collected, whole } from '../../input/option-values.ts'
import { amount, table } from '../../output/text.ts'
import type { WorkflowModule } from '../../input/workflow-module.ts'
import { usage } from '../../usage.ts'

interface Problem {
  readonly code: string
  readonly message: string
}

interface CheckOptions extends GateOptions {
  readonly against?: string
}

export function registerCheck(program: Command, act: Act): void {
  const command = program
    .command('check')
    .summary('check the definitions of a module, or a build against recorded runs')
    .description(
      'Imports the module, lists the workflows that it exports, and tries its options. Importing runs the top-level code ' +
        'of the module, with your rights, as in every command that takes a module: name only one that you trust. No run is ' +
        'performed and no store is opened. Exits with code 2 if there is a problem, and names each one. With --against it ' +
        'replays recorded runs against the module instead: bodies are called, no step is performed and nothing is written. ' +
        'Exits with code 6 if this build would harm a run, and says which and why.',
    )
    .argument('[module]', 'the module, instead of --workflows')
    .optionsGroup('Against recorded runs:')
    .option('--against <where>', 'a store such as sqlite:app.db, a file of `holdfast export`, or a folder of those')
    .option('--sample <n>', 'replay only this many of them, spread evenly', whole('--sample', 1))
    .option('--type <type>', 'only runs of this type; may be given again', collected)
    .option('--ended', 'of a store, also runs that have ended: whether they would end in the same way')
    .addHelpText(
      'after',
      examples(
        'check ./workflows.js',
        'check --workflows ./workflows.js --json',
        'check ./workflows.js --against "$STORE" --sample 1000',
        'check ./workflows.js --against test/journals',
      ),
    )
  act(command, async (call) => {
    const [named] = command.args
    const { against, sample, type, ended } = command.opts<CheckOptions>()
    if (against === undefined && (sample ?? type ?? ended) !== undefined) {
      throw usage('--sample, --type and --ended choose among recorded runs: say which with --against.')
    }
    const module = (await call.module(true, named)) as WorkflowModule
    const problems = [...duplicates(module.definitions)]
    if (problems.length === 0) problems.push(...(await tryOptions(call, module)))
    if (against === undefined || problems.length > 0) return printDefinitions(call, module, problems)
    await checkAgainst(call, { module: named, against }, command.opts<GateOptions>())
  })
}

async function printDefinitions(
  { printer }: Call,
  module: WorkflowModule,
  problems: readonly Problem[],
): Promise<void> {
  const workflows = module.definitions.map(({ type, version, style, unique }) => ({
    type,
    version,
    style,
    unique: unique === null ? null : { key: unique.field, scope: unique.scope },
  }))
  await printer.answer(
    { workflows, problems },
    ...table(
      [{ title: 'TYPE', least: 8 }, { title: 'VERSION' }, { title: 'STYLE' }, { title: 'UNIQUE BY' }],
      workflows.map(({ type, version, style, unique }) => [
        visible(type),
        String(version),
        style,
        unique === null ? '' : visible(`${unique.key ?? 'a function of the input'} (${unique.scope})`),
      ]),
      printer.columns,
      printer.paint,
    ),
    ...problems.map(({ code, message }) => `${printer.paint('red', 'problem:')} ${visible(message)} (${code})`),
  )
  if (problems.length > 0) {
    throw usage(`${amount(problems.length, 'problem')} in "${visible(module.name)}".`, { problems })
  }
}

function duplicates(definitions: readonly Definition[]): readonly Problem[] {
  const seen = new Set<string>()
  return definitions.flatMap(({ type, version }) => {
    const name = `${quotedText(type)} version ${version}`
    if (!seen.has(name)) {
      seen.add(name)
      return []
    }
    const message = `Two workflows are called ${name}. Rename one, or give it another version.`
    return [{ code: 'WORKFLOW_EXISTS', message }]
  })
}

/** Opens a Holdfast with it on an empty store, so that this command refuses the same options as createHoldfast. */
async function tryOptions({ printer }: Call, { definitions, options }: WorkflowModule): Promise<readonly Problem[]> {
  try {
    const tried = { ...options, store: 'memory:', workflows: definitions, logger: printer.logger() } as HoldfastOptions
    await (await createHoldfast(tried)).close()
    return []
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    return [{ code: error.code, message: error.message }]
  }
}
