// `holdfast remove`: hides a run, or all that match.

import type { Command } from 'commander'
import { examples, type Act } from '../../command-call.ts'
import { actOnMany, addManyOptions } from '../../input/many-runs.ts'
import { openRun } from '../../input/named-run.ts'
import { choiceOf, type ChoiceOptions } from '../../input/one-or-many.ts'
import { addFilterOptions } from '../../input/run-filter.ts'

interface RemoveCommandOptions extends ChoiceOptions {
  readonly reason?: string
}

export function registerRemove(program: Command, act: Act): void {
  const command = program
    .command('remove')
    .summary('hide a run, or all that match, and free its keys')
    .description(
      'Removes a run: no worker performs it any more, `holdfast runs` shows it only with --deleted, and its keys are free. ' +
        'Its status and its journal stay, and no step is undone. With options instead of an id it removes every run that ' +
        'matches, also live ones, after asking.',
    )
    .argument('[run]', 'the id of the run; or --key with --type')
    .option('--reason <text>', 'why; kept with the run')
  addManyOptions(addFilterOptions(command)).addHelpText(
    'after',
    examples(
      'remove 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --reason "a test"',
      'remove --status succeeded --until 30d --preview',
      'remove --status succeeded --until 30d --reason "older than a month" --yes',
    ),
  )
  act(command, async (call) => {
    const options = command.opts<RemoveCommandOptions>()
    const [named] = command.args
    const chosen = choiceOf(named, options, { now: call.io.now() })
    const why = options.reason === undefined ? {} : { reason: options.reason }
    if (chosen.kind === 'many') {
      const { holdfast } = await call.open({ store: 'existing' })
      return actOnMany(call, options, {
        verb: 'Remove',
        done: 'removed',
        kind: '',
        act: ({ preview }) => holdfast.removeMany(chosen.filter, { ...why, preview }),
      })
    }
    const { holdfast, id } = await openRun(call, chosen.id, chosen.name)
    await holdfast.remove(id, why)
    const { status } = await holdfast.get(id)
    await call.printer.answer({ id, outcome: 'removed', status }, `Run ${id} is removed; it was ${status}.`)
  })
}
