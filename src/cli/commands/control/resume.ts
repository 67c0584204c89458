// `holdfast resume`: continues a paused run, if need be with repairs of its journal, or all that match.

import type { Command } from 'commander'
import type { Filter } from '../../../client/read/find.ts'
import { didYouMean } from '../../../core/text/suggest.ts'
import { examples, type Act, type Call } from '../../command-call.ts'
import { parseInput } from '../../input/json-input.ts'
import { actOnMany, addManyOptions } from '../../input/many-runs.ts'
import { openRun } from '../../input/named-run.ts'
import { choiceOf, type ChoiceOptions } from '../../input/one-or-many.ts'
import { collected, pairs, whole } from '../../input/option-values.ts'
import { addFilterOptions } from '../../input/run-filter.ts'
import { quoted, usage } from '../../usage.ts'

const reasons = ['crashes', 'drift', 'unreadable', 'operator', 'maintenance'] as const

interface ResumeCommandOptions extends ChoiceOptions {
  readonly reason?: string
  readonly note?: string
  readonly drop?: readonly string[]
  readonly result?: readonly string[]
}

export function registerResume(program: Command, act: Act): void {
  const command = program
    .command('resume')
    .summary('continue a paused run, or all that match')
    .description(
      'Continues a paused run. A run that is paused for drift continues if the code fits its journal again, or if the entries ' +
        'that do not fit are dropped: their steps are then performed again, if the code still calls them. With options ' +
        'instead of an id it resumes every paused run that matches, after asking; --all means every paused run.',
    )
    .argument('[run]', 'the id of the run; or --key with --type')
    .option('--note <text>', 'why; recorded in the journal')
    .option('--drop <seq>', 'ignore the outcome in this entry; may be given again', collected)
    .option('--result <seq=json>', 'give the step of this entry this result instead; may be given again', collected)
  addFilterOptions(command)
    .option('--reason <reason>', `only runs that were paused for ${reasons.join(', ')}`)
    .option('--all', 'every paused run that matches')
  addManyOptions(command).addHelpText(
    'after',
    examples(
      'resume 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70',
      'resume --type shop.order --reason crashes --preview',
      'resume --type shop.order --reason crashes --note "the leak is mended" --yes',
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
    const chosen = choiceOf(named, options, { now: call.io.now(), chooses: options.reason !== undefined })
    if (chosen.kind === 'many') {
      if (dropped.length + replaced.length > 0) throw usage('A journal is repaired run by run: name one by its id.')
      return resumeMany(call, options, chosen.filter)
    }
    const { holdfast, id } = await openRun(call, chosen.id, chosen.name)
    const note = options.note === undefined ? {} : { note: options.note }
    const { outcome, status } = await holdfast.resume(id, { ...note, amend: [...dropped, ...replaced] })
    await call.printer.answer({ id, outcome, status }, `Run ${id} is resumed and now ${status}.`)
  })
}

async function resumeMany(call: Call, options: ResumeCommandOptions, filter: Filter): Promise<void> {
  const { reason: given } = options
  const reason = reasons.find((one) => one === given)
  if (given !== undefined && reason === undefined) {
    throw usage(`--reason is one of ${reasons.join(', ')}. Got ${quoted(given)}.${didYouMean(given, reasons)}`)
  }
  const { holdfast } = await call.open({ store: 'existing' })
  const how = {
    ...(options.note === undefined ? {} : { note: options.note }),
    ...(reason === undefined ? {} : { reason }),
  }
  // --all without other options means every paused run.
  const chosen = Object.keys(filter).length === 0 ? { status: 'paused' as const } : filter
  await actOnMany(call, options, {
    verb: 'Resume',
    done: 'resumed',
    kind: 'paused',
    act: ({ preview }) => holdfast.resumeMany(chosen, { ...how, preview }),
  })
}
