// `holdfast cancel`: stops a run for good, or all that match.

import type { Command } from 'commander'
import { examples, type Act } from '../../command-call.ts'
import { actOnMany, addManyOptions } from '../../input/many-runs.ts'
import { openRun } from '../../input/named-run.ts'
import { choiceOf, type ChoiceOptions } from '../../input/one-or-many.ts'
import { addFilterOptions } from '../../input/run-filter.ts'

interface CancelCommandOptions extends ChoiceOptions {
  readonly now?: boolean
  readonly reason?: string
}

const outcomeText = {
  cancelled: 'is cancelled',
  cancelling: 'is being cancelled: its worker stops it and undoes its steps',
  'already-ended': 'had already ended and is not changed',
} as const

export function registerCancel(program: Command, act: Act): void {
  const command = program
    .command('cancel')
    .summary('cancel a run, or all that match')
    .description(
      'Cancels a run: its steps under way may end and are recorded, then its steps are undone, last first. With options ' +
        'instead of an id it cancels every live run that matches, after asking.',
    )
    .argument('[run]', 'the id of the run; or --key with --type')
    .option('--now', 'at once: nothing is undone, and the steps that its worker still performs are not recorded')
    .option('--reason <text>', 'why; recorded in the journal')
  addManyOptions(addFilterOptions(command)).addHelpText(
    'after',
    examples(
      'cancel 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --reason "ordered twice"',
      'cancel --type shop.order --key order-42',
      'cancel --prefix billing. --since 1d --preview',
    ),
  )
  act(command, async (call) => {
    const options = command.opts<CancelCommandOptions>()
    const [named] = command.args
    const { printer, io } = call
    const chosen = choiceOf(named, options, { now: io.now() })
    const how = {
      mode: options.now === true ? 'now' : 'cooperative',
      ...(options.reason === undefined ? {} : { reason: options.reason }),
    } as const
    if (chosen.kind === 'many') {
      const { filter } = chosen
      const { holdfast } = await call.open({ store: 'existing' })
      return actOnMany(call, options, {
        verb: 'Cancel',
        done: 'cancelled, or will be by their workers',
        kind: 'live',
        act: ({ preview }) => holdfast.cancelMany(filter, { ...how, preview }),
      })
    }
    const { holdfast, id } = await openRun(call, chosen.id, chosen.name)
    const { outcome, status } = await holdfast.cancel(id, how)
    await printer.answer({ id, outcome, status }, `Run ${id} ${outcomeText[outcome]}.`)
  })
}
