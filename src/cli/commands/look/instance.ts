// `holdfast state`, `holdfast events` and `holdfast history`: read one instance of a decider by its id.

import type { Command } from 'commander'
import { HoldfastError } from '../../../core/errors/error.ts'
import { eventLine } from '../../output/event-line.ts'
import { cut } from '../../output/text.ts'
import { examples, type Act } from '../../command-call.ts'
import { pointInTime, whole } from '../../input/option-values.ts'
import { jsonLine } from '../../output/plain-json.ts'
import { quoted } from '../../usage.ts'

interface PageOptions {
  readonly after: number
  readonly limit?: number
}

export function registerState(program: Command, act: Act): void {
  const command = instanceArguments(program.command('state'))
    .summary('print the state of an instance')
    .description('Prints the state of an instance of a decider: the fold of all its events.')
    .option(
      '--at <when>',
      'the state at an earlier time: the number of an entry, or a time such as 2026-11-16T08:00:00Z',
    )
    .addHelpText(
      'after',
      examples('state shop.order 42', 'state shop.order 42 --json | jq .state.status', 'state shop.order 42 --at 17'),
    )
  act(command, async (call) => {
    const [type = '', id = ''] = command.args
    const { holdfast } = await call.open({ store: 'existing', workflows: true, onlyLooks: true })
    const at = momentOf(command.opts<{ readonly at?: string }>().at)
    const state = await holdfast.state(type, id, at === undefined ? {} : { at })
    if (state === undefined) throw noInstance(type, id, at)
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
    else await printer.lines(events.map((event) => cut(eventLine(event), printer.columns)))
  })
}

export function instanceArguments(command: Command): Command {
  return command
    .argument('<type>', 'the type of the decider')
    .argument('<id>', 'the id of the instance, as its inputs name it')
}

function paged(command: Command): Command {
  return instanceArguments(command)
    .option('--after <seq>', 'only those after the entry of this number', whole('--after', 0), 0)
    .option('--limit <n>', 'at most this many', whole('--limit', 1))
}

/** The common options stand among those of the command. */
function pageOf({ after, limit }: PageOptions): PageOptions {
  return { after, ...(limit === undefined ? {} : { limit }) }
}

/** Entries are named by their numbers, times as everywhere. */
function momentOf(text: string | undefined): number | Date | undefined {
  if (text === undefined) return undefined
  return /^\d{1,15}$/.test(text)
    ? Number(text)
    : pointInTime(text, '--at', 'the number of an entry, as holdfast history gives it')
}

export function noInstance(type: string, id: string, at?: number | Date): HoldfastError {
  const then = at === undefined ? '' : ' that had begun by then'
  return new HoldfastError(
    'RUN_NOT_FOUND',
    `There is no instance ${quoted(id)} of ${quoted(type)} in this store${then}.`,
    {
      details: { type, id },
    },
  )
}
