// `holdfast resume`: lets a paused run go on, if need be with repairs of its journal.

import type { Command } from 'commander'
import { examples, type Act } from '../call.ts'
import { parseInput } from '../json-input.ts'
import { addNameOptions, openRun, type NameOptions } from '../named-run.ts'
import { collected, pairs, whole } from '../option-values.ts'

interface ResumeCommandOptions extends NameOptions {
  readonly note?: string
  readonly drop?: readonly string[]
  readonly result?: readonly string[]
}

export function registerResume(program: Command, act: Act): void {
  const command = program
    .command('resume')
    .summary('let a paused run go on')
    .description(
      'Lets a paused run go on. A run that is paused for drift goes on if the code fits its journal again, or if the entries ' +
        'that do not fit are dropped: what they recorded is then done anew, if the code still asks for it.',
    )
  addNameOptions(command)
    .option('--note <text>', 'why; it stands in the journal')
    .option('--drop <seq>', 'the outcome in this entry counts no more; may be given again', collected)
    .option('--result <seq=json>', 'the step of this entry has this result instead; may be given again', collected)
    .addHelpText(
      'after',
      examples(
        'resume 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70',
        'resume 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --drop 7 --note "the step was renamed"',
        `resume 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --result '7={"receipt":"r-1"}'`,
      ),
    )
  act(command, async (call) => {
    const options = command.opts<ResumeCommandOptions>()
    const [named] = command.args
    const dropped = (options.drop ?? []).map((text) => ({ seq: whole('--drop', 1)(text), drop: true }) as const)
    const replaced = Object.entries(pairs(options.result ?? [], '--result')).map(([seq, json]) => ({
      seq: whole('The number in --result', 1)(seq),
      result: parseInput(json, 'The result'),
    }))
    const { holdfast, id } = await openRun(call, named, options)
    const note = options.note === undefined ? {} : { note: options.note }
    const { outcome, status } = await holdfast.resume(id, { ...note, amend: [...dropped, ...replaced] })
    await call.printer.answer({ id, outcome, status }, `Run ${id} is resumed and now ${status}.`)
  })
}
