// `holdfast pause`: stops a run until it is resumed.

import type { Command } from 'commander'
import { examples, type Act } from '../call.ts'
import { didYouMean } from '../../core/suggest.ts'
import { addNameOptions, openRun, type NameOptions } from '../named-run.ts'
import { quoted, usage } from '../usage.ts'

interface PauseCommandOptions extends NameOptions {
  readonly reason: string
  readonly note?: string
}

const reasons = ['operator', 'maintenance'] as const

export function registerPause(program: Command, act: Act): void {
  const command = program
    .command('pause')
    .summary('stop a run until it is resumed')
    .description('Pauses a run: at once, or at its next checkpoint if a worker is performing it.')
  addNameOptions(command)
    .option('--reason <reason>', `one of ${reasons.join(', ')}`, 'operator')
    .option('--note <text>', 'why, in words; it stands in the journal')
    .addHelpText(
      'after',
      examples(
        'pause 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --note "the customer called"',
        'pause --type shop.order --key order-42 --reason maintenance',
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
    const { holdfast, id } = await openRun(call, named, options)
    const note = options.note === undefined ? {} : { note: options.note }
    const { outcome, status } = await holdfast.pause(id, { reason, ...note })
    const told = outcome === 'paused' ? 'is paused' : 'is being performed, and pauses at its next checkpoint'
    await call.printer.answer({ id, outcome, status }, `Run ${id} ${told}. Let it go on: holdfast resume ${id}`)
  })
}
