// `holdfast journal`: every entry of a run, as a stream.

import type { Command } from 'commander'
import { examples, type Act } from '../../command-call.ts'
import { entriesOf } from '../../follow.ts'
import { addNameOptions, openRun, type NameOptions } from '../../input/named-run.ts'
import { whole } from '../../input/option-values.ts'
import { entryLine, underEntry } from '../../output/run-lines.ts'

interface JournalCommandOptions extends NameOptions {
  readonly full?: boolean
  readonly after: number
  readonly limit?: number
}

const linesAtOnce = 100

export function registerJournal(program: Command, act: Act): void {
  const command = program
    .command('journal')
    .summary('print the journal of a run')
    .description('Prints every entry of a run: its number, time, kind, name, meta and payload.')
  addNameOptions(command)
    .option('--full', 'print payloads whole, however long')
    .option('--after <seq>', 'only entries after this number', whole('--after', 0), 0)
    .option('--limit <n>', 'at most this many', whole('--limit', 1))
    .addHelpText(
      'after',
      examples(
        'journal 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70',
        'journal 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --full | less',
        `journal --type shop.order --key order-42 --json | jq 'select(.kind == "step-failed")'`,
      ),
    )
  act(command, async (call) => {
    const options = command.opts<JournalCommandOptions>()
    const [named] = command.args
    const { printer } = call
    const { holdfast, id } = await openRun(call, named, options, { onlyLooks: true })
    const width = options.full === true ? Infinity : printer.columns
    let left = options.limit ?? Infinity
    let lines: string[] = []
    // An unknown run is an error before the first line: the journal of a run is never empty.
    for await (const entry of entriesOf(holdfast, id, options.after)) {
      if (printer.isJson) await printer.json(entry)
      else
        lines.push(entryLine(entry, { width, paint: printer.paint }), ...printer.stackLines(entry.data).map(underEntry))
      left -= 1
      if (left === 0) break
      if (lines.length < linesAtOnce) continue
      await printer.lines(lines)
      lines = []
    }
    await printer.lines(lines)
  })
}
