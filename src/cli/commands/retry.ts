// `holdfast retry`: continues a failed run where it failed, or all that match.

import type { Command } from 'commander'
import { examples, type Act } from '../command-call.ts'
import { actOnMany, addManyOptions, assertForMany, type ManyOptions } from '../input/many-runs.ts'
import { addFilterOptions, checkRunId, filterFrom, type FilterOptions } from '../input/run-filter.ts'
import { usage } from '../usage.ts'

interface RetryOptions extends FilterOptions, ManyOptions {
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
    .argument('[run]', 'the id of the run')
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
    const filter = filterFrom(options, io.now())
    const id = named === undefined ? null : checkRunId(named)
    if (id !== null && Object.keys(filter).length > 0) throw usage('Name one run by its id, or choose many: not both.')
    if (id !== null) assertForMany(options)
    else if (Object.keys(filter).length === 0) {
      throw usage('Which runs? Name one by its id, or choose runs with options such as --type or --status.')
    }
    const { holdfast } = await call.open({ store: 'existing' })
    const why = options.note === undefined ? {} : { note: options.note }
    if (id === null) {
      return actOnMany(call, options, {
        verb: 'Retry',
        done: 'retried',
        kind: 'failed',
        act: ({ preview }) => holdfast.retryMany(filter, { ...why, preview }),
      })
    }
    const { outcome, status } = await holdfast.retry(id, why)
    await printer.answer({ id, outcome, status }, `Run ${id} is retried and now ${status}.`)
  })
}
