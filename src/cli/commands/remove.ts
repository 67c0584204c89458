// `holdfast remove`: takes a run out of sight.

import type { Command } from 'commander'
import { examples, type Act } from '../call.ts'
import { addNameOptions, openRun, type NameOptions } from '../named-run.ts'

interface RemoveCommandOptions extends NameOptions {
  readonly reason?: string
}

export function registerRemove(program: Command, act: Act): void {
  const command = program
    .command('remove')
    .summary('take a run out of sight')
    .description(
      'Removes a run: it is performed no more, `holdfast runs` shows it only with --deleted, and its keys are free. Its ' +
        'status and its journal stay.',
    )
  addNameOptions(command)
    .option('--reason <text>', 'why; it is kept')
    .addHelpText('after', examples('remove 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --reason "a test"'))
  act(command, async (call) => {
    const options = command.opts<RemoveCommandOptions>()
    const [named] = command.args
    const { holdfast, id } = await openRun(call, named, options)
    await holdfast.remove(id, options.reason === undefined ? {} : { reason: options.reason })
    const { status } = await holdfast.get(id)
    await call.printer.answer({ id, outcome: 'removed', status }, `Run ${id} is removed; it was ${status}.`)
  })
}
