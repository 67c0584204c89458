// `holdfast inspect`: one instance of a decider as a whole, for a person who asks what it is doing.

import type { Command } from 'commander'
import type { Inspection } from '../../../client/deciders/instance-views.ts'
import { visible } from '../../../core/text/printable.ts'
import { examples, type Act } from '../../command-call.ts'
import { whole } from '../../input/option-values.ts'
import { eventLine } from '../../output/event-line.ts'
import { jsonLine } from '../../output/plain-json.ts'
import { amount, cut, pointInTime } from '../../output/text.ts'
import { instanceArguments, noInstance } from './instance.ts'

export function registerInspect(program: Command, act: Act): void {
  const command = instanceArguments(program.command('inspect'))
    .summary('show all of an instance: state, pending effects and timers, history')
    .description(
      'Shows an instance of a decider as a whole: its state, what may follow, its pending effects, timers and inputs, and its ' +
        'last events. If the module cannot read an event, it shows the instance as it was before that event.',
    )
    .option('--limit <n>', 'how many of its last events', whole('--limit', 0), 10)
    .addHelpText('after', examples('inspect shop.order 42', 'inspect shop.order 42 --limit 100 --json'))
  act(command, async (call) => {
    const [type = '', id = ''] = command.args
    const { printer } = call
    const { holdfast } = await call.open({ store: 'existing', workflows: true, onlyLooks: true })
    const seen = await holdfast.inspect(type, id, { limit: command.opts<{ readonly limit: number }>().limit })
    if (seen === undefined) throw noInstance(type, id)
    const { unreadable, ...rest } = seen
    const error = unreadable === null ? null : { code: unreadable.code, message: unreadable.message }
    await printer.answer({ ...rest, unreadable: error }, ...linesOf(seen).map((line) => cut(line, printer.columns)))
  })
}

function linesOf(seen: Inspection): readonly string[] {
  const { type, version, id, status, info, state, transitions, timers, effects, backlog, unreadable } = seen
  const line = (title: string, text: string): string => `  ${title.padEnd(12)}${text}`
  const next = transitions.map(({ input, to }) => `${visible(input)} → ${visible(to)}`).join(', ')
  return [
    `${visible(type)} v${version}  ${visible(id)}  ${info === null ? status : `${visible(info.status)}, ${status}`}`,
    line('run', seen.runId),
    line('created', pointInTime(seen.createdAt)),
    ...(seen.endedAt === null ? [] : [line('ended', pointInTime(seen.endedAt))]),
    line('state', state === undefined ? 'none: its first input is not accepted' : jsonLine(state)),
    ...Object.entries(info?.fields ?? {}).map(([name, value]) => line(visible(name), jsonLine(value))),
    ...(next === '' ? [] : [line('may follow', next)]),
    ...(backlog.inputs === 0
      ? []
      : [line('backlog', `${amount(backlog.inputs, 'input')}${backlog.isCapped ? ' or more' : ''}`)]),
    ...effects.map(({ name, run }) =>
      line('effect', `${visible(name)}  ${run === null ? 'waits for its turn' : `${run.status}, run ${run.id}`}`),
    ),
    ...timers.map(({ key, dueAt, failures }) => {
      const failed = failures === 0 ? '' : `, failed ${amount(failures, 'time')}`
      return line(
        'timer',
        `${visible(key ?? 'without a key')}  ${dueAt === null ? 'not committed' : `due ${pointInTime(dueAt)}`}${failed}`,
      )
    }),
    ...(seen.history.length === 0 ? [] : ['']),
    ...seen.history.map(eventLine),
    ...(unreadable === null ? [] : ['', `unreadable: ${visible(unreadable.message)}`]),
  ]
}
