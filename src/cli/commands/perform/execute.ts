// `holdfast execute` and `holdfast enqueue`: pass an input to an instance of a decider.

import type { Command } from 'commander'
import type { Enqueued, ExecuteOptions } from '../../../client/deciders/executor.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import { visible } from '../../../core/text/printable.ts'
import type { Holdfast } from '../../../holdfast.ts'
import { examples, type Act } from '../../command-call.ts'
import { inputOf } from '../../input/input-argument.ts'
import { jsonLine } from '../../output/plain-json.ts'
import { usage } from '../../usage.ts'

interface InputOptions {
  readonly file?: string
  readonly commandId?: string
}

export function registerExecute(program: Command, act: Act): void {
  const command = program
    .command('execute')
    .summary('have an input decided')
    .description(
      'Has an input decided by the instance of a decider that it names, which it may begin, and prints the events that ' +
        'follow. It needs no worker. A rejection is exit code 5.',
    )
    .addHelpText(
      'after',
      examples(
        `execute shop.order '{"type":"Pay","orderId":"42","amount":99}' --command-id payment-7`,
        'execute shop.order --file create.json --json',
      ),
    )
  registerInput(act, command, (holdfast, type, input, options) => holdfast.executeDynamic(type, input, options))
}

export function registerEnqueue(program: Command, act: Act): void {
  const command = program
    .command('enqueue')
    .summary('leave an input in the mailbox of its instance')
    .description(
      'Stores an input for the instance of a decider that it names: a worker decides it after those before it. The first ' +
        'input of an instance is decided at once.',
    )
    .addHelpText(
      'after',
      examples(`enqueue shop.order '{"type":"Pay","orderId":"42","amount":99}' --command-id payment-7`),
    )
  registerInput(act, command, (holdfast, type, input, options) => holdfast.enqueue(type, input, options))
}

type Send = (holdfast: Holdfast, type: string, input: unknown, options: ExecuteOptions) => Promise<Enqueued>

function registerInput(act: Act, command: Command, send: Send): void {
  command
    .argument('<type>', 'the type of the decider')
    .argument('[input]', 'the input as JSON, or - to read it from standard input')
    .option('--file <path>', 'read the input from a file of JSON')
    .option('--command-id <id>', 'makes a repetition harmless: it gets the first outcome again')
  act(command, async (call) => {
    const { file, commandId } = command.opts<InputOptions>()
    const [type = '', text] = command.args
    const input = await inputOf(call, 'input', text, file)
    if (input === undefined) throw usage('Which input? It comes after the type, as JSON, or with --file.')
    const { holdfast } = await call.open({ store: 'creatable', workflows: true })
    const answer = await send(holdfast, type, input, commandId === undefined ? {} : { commandId })
    if (call.printer.isJson) await call.printer.json(answer)
    else await call.printer.lines(linesOf(answer))
    assertAccepted(answer)
  })
}

function linesOf(answer: Enqueued): readonly string[] {
  switch (answer.outcome) {
    case 'accepted':
      return [...answer.events.map((event) => jsonLine(event)), `state ${jsonLine(answer.state)}`]
    case 'queued':
      return [`Queued as ${visible(answer.commandId)}; a worker decides it.`]
    case 'rejected':
    case 'already-completed':
      return []
  }
}

/** A script learns from the exit code that nothing has happened. */
function assertAccepted(answer: Enqueued): void {
  if (answer.outcome === 'rejected') {
    const { rejection } = answer
    throw new HoldfastError('INPUT_REJECTED', `The input was rejected: ${jsonLine(rejection)}`, {
      details: { rejection },
    })
  }
  if (answer.outcome === 'already-completed') {
    throw new HoldfastError('WRONG_STATUS', 'The instance is over: the input was not decided.')
  }
}
