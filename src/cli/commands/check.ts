// `holdfast check`: looks at the definitions of a module without running anything, and names every problem.

import type { Command } from 'commander'
import type { Definition } from '../../core/definition.ts'
import { isHoldfastError } from '../../core/error.ts'
import { createHoldfast, type HoldfastOptions } from '../../holdfast.ts'
import { examples, type Act, type Call } from '../call.ts'
import { visible } from '../escape.ts'
import { amount, table } from '../text.ts'
import type { WorkflowModule } from '../workflow-module.ts'
import { usage } from '../usage.ts'

interface Problem {
  readonly code: string
  readonly message: string
}

export function registerCheck(program: Command, act: Act): void {
  const command = program
    .command('check')
    .summary('check the definitions of a module')
    .description(
      'Loads the module, lists the workflows that it exports, and tries its options. Opens no store and runs nothing. Exits ' +
        'with 2 if something is wrong, and says each thing that is.',
    )
    .argument('[module]', 'the module, instead of --workflows')
    .addHelpText('after', examples('check ./workflows.js', 'check --workflows ./workflows.js --json'))
  act(command, async (call) => {
    const [named] = command.args
    const { printer } = call
    const module = await loadNamed(call, named)
    const workflows = module.definitions.map(({ type, version, style, unique }) => ({ type, version, style, unique }))
    const problems = [...duplicates(module.definitions)]
    if (problems.length === 0) problems.push(...(await tryOptions(call, module)))
    await printer.answer(
      { workflows, problems },
      ...table(
        [{ title: 'TYPE', least: 8 }, { title: 'VERSION' }, { title: 'STYLE' }, { title: 'UNIQUE BY' }],
        workflows.map(({ type, version, style, unique }) => [
          visible(type),
          String(version),
          style,
          unique === null ? '' : `${unique.key} (${unique.scope})`,
        ]),
        printer.columns,
        printer.paint,
      ),
      ...problems.map(({ code, message }) => `${printer.paint('red', 'problem:')} ${visible(message)} (${code})`),
    )
    if (problems.length > 0) {
      throw usage(`${amount(problems.length, 'problem')} in "${visible(module.name)}".`, { problems })
    }
  })
}

async function loadNamed(call: Call, named: string | undefined): Promise<WorkflowModule> {
  const chosen = named === undefined ? call : call.withWorkflows(named)
  return (await chosen.module(true)) as WorkflowModule
}

function duplicates(definitions: readonly Definition[]): readonly Problem[] {
  const seen = new Set<string>()
  return definitions.flatMap(({ type, version }) => {
    const name = `"${type}" version ${version}`
    if (!seen.has(name)) {
      seen.add(name)
      return []
    }
    const message = `Two workflows are called ${name}. Rename one, or give it another version.`
    return [{ code: 'WORKFLOW_EXISTS', message }]
  })
}

/** Makes a Holdfast of it on an empty store: what createHoldfast refuses is refused here. */
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
