// `holdfast projections`: lists projections with their lag and status, or pauses, resumes or skips an event of one.

import type { Command } from 'commander'
import { formatMs } from '../../../core/definition/duration.ts'
import { visible } from '../../../core/text/printable.ts'
import type { Holdfast } from '../../../holdfast.ts'
import { unknownProjection, type ProjectionView } from '../../../projections/projections.ts'
import { examples, type Act, type Call } from '../../command-call.ts'
import { whole } from '../../input/option-values.ts'
import { colourOfStatus } from '../../output/run-lines.ts'
import { table } from '../../output/text.ts'
import { usage } from '../../usage.ts'

interface ProjectionsOptions {
  readonly pause?: boolean
  readonly resume?: boolean
  readonly skip?: number
}

export function registerProjections(program: Command, act: Act): void {
  const command = program
    .command('projections')
    .summary('list projections with their lag; pause, resume or skip an event of one')
    .description(
      'Lists the projections: how far each is behind, whether a process moves it on, and the event at which it is parked. With ' +
        'the name of one, pauses or resumes it, or leaves out the event at which it is parked.',
    )
    .argument('[name]', 'the projection')
    .option('--pause', 'stop it in all processes, until it is resumed')
    .option('--resume', 'let it go on; a parked one tries its event again')
    .option('--skip <position>', 'leave out the event of this position, at which it is parked', whole('--skip', 1))
    .addHelpText(
      'after',
      examples('projections --json', 'projections totals --pause', 'projections totals --skip 4711'),
    )
  act(command, async (call) => {
    const { pause = false, resume = false, skip } = command.opts<ProjectionsOptions>()
    const [name] = command.args
    const wanted = [pause, resume, skip !== undefined].filter(Boolean).length
    if (wanted > 1) throw usage('Only one of --pause, --resume and --skip is possible.')
    if (wanted === 1 && name === undefined) throw usage('Which projection? Name it.')
    const { holdfast } = await call.open({ store: 'existing', onlyLooks: wanted === 0 })
    if (name === undefined || wanted === 0) return list(call, holdfast, name)
    const { projections } = holdfast
    const shown = visible(name)
    if (pause) {
      await projections.pause(name)
      return call.printer.answer(
        { name, status: 'paused' },
        `${shown} is paused. Continue it: holdfast projections ${shown} --resume`,
      )
    }
    if (skip === undefined) {
      await projections.resume(name)
      return call.printer.answer({ name, status: 'active' }, `${shown} goes on in the process that projects it.`)
    }
    await projections.skip(name, skip)
    return call.printer.answer(
      { name, skipped: skip },
      `${shown} leaves out the event of position ${skip}, and goes on.`,
    )
  })
}

export function registerRebuild(program: Command, act: Act): void {
  const command = program
    .command('rebuild')
    .summary('build the read model of a projection anew, while the live one goes on')
    .description(
      'Asks the processes that project it to build a read model anew, from the first event on, and to put it in the place of the ' +
        'live one. holdfast projections shows how far that is.',
    )
    .argument('<name>', 'the projection')
    .option('--abandon', 'give up the rebuild that is under way')
    .addHelpText('after', examples('rebuild totals', 'rebuild totals --abandon'))
  act(command, async (call) => {
    const [name = ''] = command.args
    const { holdfast } = await call.open({ store: 'existing' })
    const { abandon = false } = command.opts<{ readonly abandon?: boolean }>()
    const shown = visible(name)
    if (abandon) {
      await holdfast.projections.abandonRebuild(name)
      return call.printer.answer({ name, rebuild: null }, `The rebuild of ${shown} is given up.`)
    }
    await holdfast.projections.rebuild(name)
    return call.printer.answer(
      { name, rebuild: 'asked' },
      `A process that projects ${shown} builds it anew, if its definition says where (rebuild: { begin, swap }). See how far: ` +
        `holdfast projections ${shown}`,
    )
  })
}

async function list({ printer }: Call, holdfast: Holdfast, name: string | undefined): Promise<void> {
  const all = await holdfast.projections.list()
  if (name !== undefined && !all.some((view) => view.name === name)) {
    throw unknownProjection(
      name,
      all.map((view) => view.name),
    )
  }
  const views = all.filter((view) => name === undefined || view.name === name)
  if (printer.isJson) return printer.json({ projections: views })
  if (views.length === 0) return printer.note('There is no projection here: no process has projected one yet.')
  await printer.lines(viewLines(views, printer.columns, printer.paint))
  for (const { name: parked, failure } of views) {
    if (failure === null) continue
    const { id, type, position, attempts, error } = failure
    const shown = visible(parked)
    await printer.note(
      `${shown} is parked at event ${visible(id)} (${visible(type)}) after ${attempts} attempts: ${visible(error)} ` +
        `Repair the cause and resume it, or leave the event out: holdfast projections ${shown} --skip ${position}`,
    )
  }
}

function viewLines(
  views: readonly ProjectionView[],
  width: number,
  paint: Parameters<typeof table>[3],
): readonly string[] {
  const columns = [
    { title: 'NAME', least: 12 },
    { title: 'STATUS', colour: colourOfStatus },
    { title: 'BEHIND' },
    { title: 'FOR' },
    { title: 'POSITION', dispensable: 2 },
    { title: 'HELD', dispensable: 3 },
    { title: 'REBUILD', dispensable: 1 },
  ]
  const rows = views.map(({ name, status, lag, position, isHeld, rebuild }) => [
    visible(name),
    status,
    String(lag.events),
    formatMs(Math.round(lag.seconds * 1_000)),
    String(position),
    isHeld ? 'yes' : 'no',
    rebuild === null ? '' : rebuildText(rebuild),
  ])
  return table(columns, rows, width, paint)
}

function rebuildText({ position, of, status }: NonNullable<ProjectionView['rebuild']>): string {
  const part = `${Math.floor((100 * position) / Math.max(of, 1))} %`
  return status === 'active' ? part : `${part}, ${status}`
}
