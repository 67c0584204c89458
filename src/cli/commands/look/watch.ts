// `holdfast watch`: follows a run until it ends. How it ended is the exit code.

import type { Command } from 'commander'
import { examples, Interrupted, type Act } from '../../command-call.ts'
import { assertSucceeded, follow } from '../../follow.ts'
import { addNameOptions, openRun, type NameOptions } from '../../input/named-run.ts'
import { jsonLine } from '../../output/plain-json.ts'
import { colourOfStatus, entryLine, underEntry } from '../../output/run-lines.ts'

export function registerWatch(program: Command, act: Act): void {
  const command = program
    .command('watch')
    .summary('follow a run until it ends')
    .description(
      'Prints the entries of a run as they come, until the run ends. Exits with code 0 if it succeeded, 5 if it failed or was ' +
        'cancelled, 6 if it is paused because its code has drifted. Ctrl-C exits with code 130; the run continues.',
    )
  addNameOptions(command).addHelpText(
    'after',
    examples(
      'watch 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70',
      'watch --type shop.order --key order-42 && echo shipped',
      `watch 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 --json | jq 'select(.run).run.output'`,
    ),
  )
  act(command, async (call) => {
    const options = command.opts<NameOptions>()
    const [named] = command.args
    const { printer } = call
    const { holdfast, id } = await openRun(call, named, options, { onlyLooks: true })
    const stopped = new Promise<never>((_, reject) => {
      call.handleSignals((signal) => {
        const leave = (): void => reject(new Interrupted(signal))
        printer.note(`Stopped watching; run ${id} goes on.`).then(leave, leave)
      })
    })
    const followed = follow(holdfast, id, (entry) =>
      printer.answer(
        { entry },
        entryLine(entry, { width: printer.columns, paint: printer.paint, inWords: true }),
        ...printer.stackLines(entry.data).map(underEntry),
      ),
    )
    const run = await Promise.race([followed, stopped])
    const output = 'output' in run ? `: ${jsonLine(run.output)}` : ''
    await printer.answer({ run }, printer.paint(colourOfStatus(run.status), run.status) + output)
    assertSucceeded(run)
  })
}
