// `holdfast ask`: asks a run, and prints its answer.

import type { Command } from 'commander'
import type { Duration } from '../../../core/definition/duration.ts'
import { examples, type Act } from '../../command-call.ts'
import { addressed, type AddressOptions } from '../../input/addressed-run.ts'
import { duration } from '../../input/option-values.ts'
import { jsonLine } from '../../output/plain-json.ts'

interface AskCommandOptions extends AddressOptions {
  readonly id?: string
  readonly timeout?: Duration
}

export function registerAsk(program: Command, act: Act): void {
  const command = program
    .command('ask')
    .summary('ask a run and print its answer')
    .description(
      'Sends a signal that the run answers, and waits for the answer. A run that refuses, or that ends without an answer, is ' +
        'exit code 5; one that does not answer in time is exit code 7, and may answer later: ask again with the same --id.',
    )
    .argument('[run]', 'the id of the run; left out with --key')
    .argument('[name]', 'the name of the signal')
    .argument('[payload]', 'the payload as JSON, or - to read it from standard input')
    .option('--file <path>', 'read the payload from a file of JSON')
    .option('--id <id>', 'asking again with the same id gives the answer to the first')
    .option('--timeout <duration>', 'how long to wait for the answer (30s)', duration('--timeout'))
    .option('--key <key>', 'the business key of the run, instead of its id')
    .option('--type <type>', 'with --key: the type of the run')
    .addHelpText(
      'after',
      examples(
        'ask 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 price \'{"of":"tea"}\'',
        'ask --type shop.order --key order-42 state --timeout 5s',
      ),
    )
  act(command, async (call) => {
    const options = command.opts<AskCommandOptions>()
    const { holdfast, target, named, payload } = await addressed(call, command.args, options)
    const { id, timeout = '30s' } = options
    const answer = await holdfast.ask(target, named, payload, { timeout, ...(id === undefined ? {} : { id }) })
    await call.printer.answer({ answer }, jsonLine(answer))
  })
}
