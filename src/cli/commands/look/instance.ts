// `holdfast state`, `holdfast events` and `holdfast history`: read one instance of a decider by its id.

import type { Command } from 'commander'
import type { HistoricEvent } from '../../../client/deciders/instance-views.ts'
import { HoldfastError } from '../../../core/errors/error.ts'
import { visible } from '../../../core/text/printable.ts'
import { cut, pointInTime } from '../../output/text.ts'
import { examples, type Act } from '../../command-call.ts'
import { whole } from '../../input/option-values.ts'
import { jsonLine } from '../../output/plain-json.ts'
import { quoted } from '../../usage.ts'

interface PageOptions {
  readonly after: number
  readonly limit?: number
}

export function registerState(program: Command, act: Act): void {
  const command = named(program.command('state'))
    .summary('print the state of an instance')
    .description('Prints the state of an instance of a decider: the fold of all its events.')
    .addHelpText('after', examples('state shop.order 42', 'state shop.order 42 --json | jq .state.status'))
  act(command, async (call) => {
    const [type = '', id = ''] = command.args
    const { holdfast } = await call.open({ store: 'existing', workflows: true, onlyLooks: true })
    const state = await holdfast.state(type, id)
    if (state === undefined) throw noInstance(type, id)
    await call.printer.answer({ type, id, state }, jsonLine(state))
  })
}

export function registerEvents(program: Command, act: Act): void {
  const command = paged(program.command('events'))
    .summary('print the events of an instance')
    .description('Prints the events of an instance of a decider in order, as JSON, one to a line.')
    .addHelpText('after', examples('events shop.order 42', 'events shop.order 42 --limit 10'))
  act(command, async (call) => {
    const [type = '', id = ''] = command.args
    const { holdfast } = await call.open({ store: 'existing', workflows: true, onlyLooks: true })
    const events = await holdfast.events(type, id, pageOf(command.opts<PageOptions>()))
    if (events.length === 0 && (await holdfast.state(type, id)) === undefined) throw noInstance(type, id)
    for (const event of events) await call.printer.json(event)
  })
}

export function registerHistory(program: Command, act: Act): void {
  const command = paged(program.command('history'))
    .summary('print the events of an instance with their times and causes')
    .description('Prints the events of an instance of a decider in order, each with its number, time and cause.')
    .addHelpText('after', examples('history shop.order 42', 'history shop.order 42 --after 100 --json'))
  act(command, async (call) => {
    const [type = '', id = ''] = command.args
    const { printer } = call
    const { holdfast } = await call.open({ store: 'existing', workflows: true, onlyLooks: true })
    const events = await holdfast.history(type, id, pageOf(command.opts<PageOptions>()))
    if (events.length === 0 && (await holdfast.state(type, id)) === undefined) throw noInstance(type, id)
    if (printer.isJson) for (const event of events) await printer.json(event)
    else await printer.lines(events.map((event) => cut(historyLine(event), printer.columns)))
  })
}

function named(command: Command): Command {
  return command
    .argument('<type>', 'the type of the decider')
    .argument('<id>', 'the id of the instance, as its inputs name it')
}

function paged(command: Command): Command {
  return named(command)
    .option('--after <seq>', 'only those after the entry of this number', whole('--after', 0), 0)
    .option('--limit <n>', 'at most this many', whole('--limit', 1))
}

/** The common options stand among those of the command. */
function pageOf({ after, limit }: PageOptions): PageOptions {
  return { after, ...(limit === undefined ? {} : { limit }) }
}

/** `    3  2026-11-16 00:41:45.883Z  {"type":"Paid"}  after Pay, command payment-7` */
function historyLine({ seq, at, event, cause }: HistoricEvent): string {
  const { input, from, commandId } = cause
  const source = input === null ? from.kind : input
  const command = commandId === null ? '' : `, command ${visible(commandId)}`
  return `${String(seq).padStart(5)}  ${pointInTime(at, { isExact: true })}  ${jsonLine(event)}  after ${visible(source)}${command}`
}

function noInstance(type: string, id: string): HoldfastError {
  return new HoldfastError('RUN_NOT_FOUND', `There is no instance ${quoted(id)} of ${quoted(type)} in this store.`, {
    details: { type, id },
  })
}
