// `holdfast show`: one run as a picture.

import type { Command } from 'commander'
import type { JournalEntry } from '../../../client/read/run-view.ts'
import { examples, type Act } from '../../command-call.ts'
import { entriesOf } from '../../follow.ts'
import { addNameOptions, openRun, type NameOptions } from '../../input/named-run.ts'
import { timeline } from '../../output/timeline.ts'

interface ShowOptions extends NameOptions {
  readonly all?: boolean
}

/** The picture needs a width also without a terminal. */
const widthOfPaper = 120

export function registerShow(program: Command, act: Act): void {
  const command = program
    .command('show')
    .summary('show a run as a timeline')
    .description(
      'Shows the facts and the status of a run, and draws its steps, waits, crashes and undo work over time.',
    )
  addNameOptions(command)
    .option('--all', 'draw every line, also of a very long run')
    .addHelpText(
      'after',
      examples(
        'show 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70',
        'show --type shop.order --key order-42',
        'show 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --json | jq .output',
      ),
    )
  act(command, async (call) => {
    const options = command.opts<ShowOptions>()
    const [named] = command.args
    const { printer, io } = call
    const { holdfast, id } = await openRun(call, named, options, { onlyLooks: true })
    const view = await holdfast.get(id)
    const unread = await holdfast.unread(id)
    if (printer.isJson) return printer.json({ ...view, unread })
    const entries: JournalEntry[] = []
    for await (const entry of entriesOf(holdfast, id)) entries.push(slim(entry))
    const isTerminal = Number.isFinite(printer.columns)
    const width = isTerminal ? printer.columns : widthOfPaper
    const how = {
      width,
      paint: printer.paint,
      now: io.now(),
      all: options.all === true,
      wholeFacts: !isTerminal,
      unread,
      stack: printer.stackLines(view.error),
    }
    await printer.lines(timeline(view, entries, how))
  })
}

/** The picture shows errors and log lines, but no results: the results of a long run would fill the memory. */
function slim(entry: JournalEntry): JournalEntry {
  return entry.kind === 'step-succeeded' || entry.kind === 'woken' || entry.kind === 'recorded'
    ? { ...entry, data: undefined }
    : entry
}
