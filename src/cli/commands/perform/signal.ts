// `holdfast signal`: sends a signal to a run.

import type { Command } from 'commander'
import type { SignalOutcome } from '../../../client/send/send.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import { examples, type Act, type Call } from '../../command-call.ts'
import { visible } from '../../../core/text/printable.ts'
import { addressed, type AddressOptions, type Addressee } from '../../input/addressed-run.ts'
import type { Holdfast } from '../../../holdfast.ts'

interface SignalCommandOptions extends AddressOptions {
  readonly id?: string
}

export function registerSignal(program: Command, act: Act): void {
  const command = program
    .command('signal')
    .summary('send a signal to a run')
    .description(
      'Sends a signal to a run. It is never too early: the run finds it when it waits for it. If the module exports a ' +
        'topic of that name, the signal follows the rules of the topic.',
    )
    .argument('[run]', 'the id of the run; left out with --key')
    .argument('[name]', 'the name of the signal')
    .argument('[payload]', 'the payload as JSON, or - to read it from standard input')
    .option('--file <path>', 'read the payload from a file of JSON')
    .option('--id <id>', 'makes a repeated signal harmless: a run takes each id once')
    .option('--key <key>', 'the business key of the run, instead of its id')
    .option('--type <type>', 'with --key: the type of the run')
    .addHelpText(
      'after',
      examples(
        `signal 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70 approved '{"by":"Ada"}'`,
        'signal --type shop.order --key order-42 paid 99 --id payment-7',
      ),
    )
  act(command, async (call) => {
    const options = command.opts<SignalCommandOptions>()
    const { holdfast, target, name, named, payload } = await addressed(call, command.args, options)
    const how = options.id === undefined ? {} : { id: options.id }
    const sent = await holdfast.submit({ kind: 'signal', to: target, name: named, payload, options: how })
    if (sent.outcome === 'target-not-found' || sent.outcome === 'target-terminated') throw undelivered(sent, target)
    await call.printer.answer(sent, `Run ${sent.runId} ${outcomeText(sent, name)}`)
    if (sent.outcome === 'queued' && !call.printer.isJson) await noteUnknownName(call, holdfast, sent.runId, name)
  })
}

/** A run that waits, and never asked for this name, may do so yet: so this only asks. */
async function noteUnknownName({ printer }: Call, holdfast: Holdfast, runId: string, name: string): Promise<void> {
  const { status } = await holdfast.get(runId)
  const { names } = await holdfast.unread(runId)
  const isUnknown = names.some((unread) => unread.name === name && !unread.isAwaited)
  if (status === 'waiting' && isUnknown)
    await printer.note(`No wait of it has asked for ${visible(name)} so far: misspelt?`)
}

function outcomeText(sent: Extract<SignalOutcome, { outcome: 'delivered' | 'queued' }>, name: string): string {
  if (sent.repeated === true) return `already had ${visible(name)} under that id; nothing has changed.`
  if (sent.outcome === 'delivered') return `was waiting, and continues with ${visible(name)}.`
  return `finds ${visible(name)} when it waits for it.`
}

function undelivered(
  sent: Extract<SignalOutcome, { outcome: 'target-not-found' | 'target-terminated' }>,
  target: Addressee,
): HoldfastError {
  if (sent.outcome === 'target-terminated') {
    const { runId, status } = sent
    const message = `Run ${runId} is over: it ${status === 'cancelled' ? 'was' : 'has'} ${status}, and waits for no signal.`
    return new HoldfastError('WRONG_STATUS', message, { details: { runId, status } })
  }
  const which = typeof target === 'string' ? target : `of ${visible(target.type)} with the key ${visible(target.key)}`
  return new HoldfastError('RUN_NOT_FOUND', `There is no run ${which} in this store.`, { details: { target } })
}
