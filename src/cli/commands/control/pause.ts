// `holdfast pause`: stops a run until it is resumed, or all that match.

import type { Command } from 'commander'
import { examples, type Act } from '../../command-call.ts'
import { didYouMean } from '../../../core/text/suggest.ts'
import { actOnMany, addManyOptions } from '../../input/many-runs.ts'
import { openRun } from '../../input/named-run.ts'
import { choiceOf, type ChoiceOptions } from '../../input/one-or-many.ts'
import { addFilterOptions } from '../../input/run-filter.ts'
import { quoted, usage } from '../../usage.ts'

interface PauseCommandOptions extends ChoiceOptions {
  readonly reason: string
  readonly note?: string
}

const reasons = ['operator', 'maintenance'] as const

export function registerPause(program: Command, act: Act): void {
  const command = program
    .command('pause')
    .summary('stop a run until it is resumed, or all that match')
    .description(
      'Pauses a run: at once, or at its next checkpoint if a worker is performing it. With options instead of an id it pauses ' +
        'every pending, running or waiting run that matches, after asking; --all means every such run.',
    )
    .argument('[run]', 'the id of the run; or --key with --type')
    .option('--reason <reason>', `one of ${reasons.join(', ')}`, 'operator')
    .option('--note <text>', 'why, in words; recorded in the journal')
  addFilterOptions(command).option('--all', 'every run that matches and can be paused')
  addManyOptions(command).addHelpText(
    'after',
    examples(
      'pause 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --note "the customer called"',
      'pause --type shop.order --key order-42 --reason maintenance',
      'pause --prefix billing. --reason maintenance --note "the bank is away" --preview',
    ),
  )
  act(command, async (call) => {
    const options = command.opts<PauseCommandOptions>()
    const [named] = command.args
    const reason = reasons.find((known) => known === options.reason)
    if (reason === undefined) {
      const meant = didYouMean(options.reason, reasons)
      throw usage(
        `--reason is one of ${reasons.join(', ')}; say more with --note. Got ${quoted(options.reason)}.${meant}`,
      )
    }
    const chosen = choiceOf(named, options, { now: call.io.now() })
    const how = { reason, ...(options.note === undefined ? {} : { note: options.note }) }
    if (chosen.kind === 'many') {
      const { filter } = chosen
      const { holdfast } = await call.open({ store: 'existing' })
      const all = Object.keys(filter).length === 0
      return actOnMany(call, options, {
        verb: 'Pause',
        done: 'paused, or will be by their workers',
        kind: 'unpaused',
        act: ({ preview }) => holdfast.pauseMany(filter, { ...how, preview, all }),
      })
    }
    const { holdfast, id } = await openRun(call, chosen.id, chosen.name)
    const { outcome, status } = await holdfast.pause(id, how)
    const text = outcome === 'paused' ? 'is paused' : 'is being performed, and pauses at its next checkpoint'
    await call.printer.answer({ id, outcome, status }, `Run ${id} ${text}. Continue it: holdfast resume ${id}`)
  })
}
