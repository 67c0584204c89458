// `holdfast retry`: continues a failed run where it failed, or all that match.

import type { Command } from 'commander'
import { examples, type Act } from '../../command-call.ts'
import { actOnMany, addManyOptions } from '../../input/many-runs.ts'
import { openRun } from '../../input/named-run.ts'
import { choiceOf, type ChoiceOptions } from '../../input/one-or-many.ts'
import { addFilterOptions } from '../../input/run-filter.ts'

interface RetryOptions extends ChoiceOptions {
  readonly note?: string
}

export function registerRetry(program: Command, act: Act): void {
  const command = program
    .command('retry')
    .summary('continue a failed run, or all that match')
    .description(
      'Continues a failed run where it failed: steps that have a result keep it. With options instead of an id it retries ' +
        'every failed run that matches, after asking.',
    )
    .argument('[run]', 'the id of the run; or --key with --type')
    .option('--note <text>', 'why; recorded in the journal')
  addManyOptions(addFilterOptions(command)).addHelpText(
    'after',
    examples(
      'retry 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --note "the bank is back"',
      'retry --type shop.order --since 2h --preview',
      'retry --type shop.order --since 2h --yes',
    ),
  )
  act(command, async (call) => {
    const options = command.opts<RetryOptions>()
    const [named] = command.args
    const { printer, io } = call
    const chosen = choiceOf(named, options, { now: io.now() })
    const why = options.note === undefined ? {} : { note: options.note }
    if (chosen.kind === 'many') {
      const { filter } = chosen
      const { holdfast } = await call.open({ store: 'existing' })
      return actOnMany(call, options, {
        verb: 'Retry',
        done: 'retried',
        kind: 'failed',
        act: ({ preview }) => holdfast.retryMany(filter, { ...why, preview }),
      })
    }
    const { holdfast, id } = await openRun(call, chosen.id, chosen.name)
    const { outcome, status } = await holdfast.retry(id, why)
    await printer.answer({ id, outcome, status }, `Run ${id} is retried and now ${status}.`)
  })
}
