// `holdfast runs`: lists runs, newest first, by pages.

import type { Command } from 'commander'
import { examples, type Act } from '../../command-call.ts'
import { hintFor } from '../../input/named-run.ts'
import { whole } from '../../input/option-values.ts'
import { addFilterOptions, checkRunId, filterFrom, type FilterOptions } from '../../input/run-filter.ts'
import type { WorkflowModule } from '../../input/workflow-module.ts'
import { runLines } from '../../output/run-lines.ts'

interface RunsOptions extends FilterOptions {
  readonly deleted?: boolean
  readonly limit: number
  readonly after?: string
}

function hintsFor(module: WorkflowModule | null, { key, type = [] }: RunsOptions): readonly string[] {
  const [only, second] = type
  const hint = key === undefined || only === undefined || second !== undefined ? null : hintFor(module, key, only)
  return hint === null ? [] : [hint]
}

export function registerRuns(program: Command, act: Act): void {
  const command = program
    .command('runs')
    .summary('list runs')
    .description('Lists runs that match all of the options, newest first.')
  addFilterOptions(command)
    .option('--deleted', 'only runs that were removed')
    .option('--limit <n>', 'how many on one page, at most 200', whole('--limit', 1), 50)
    .option('--after <run>', 'the page after this run')
    .addHelpText(
      'after',
      examples(
        'runs --store sqlite:app.db',
        'runs --status failed --since 1h',
        'runs --prefix billing. --tag vip --json',
        'runs --status running,waiting --limit 200',
      ),
    )
  act(command, async (call) => {
    const options = command.opts<RunsOptions>()
    const { printer, io } = call
    const { limit, after, deleted } = options
    const filter = filterFrom(options, io.now())
    const page = {
      limit,
      ...(after === undefined ? {} : { after: checkRunId(after) }),
      ...(deleted === undefined ? {} : { deleted }),
    }
    const { holdfast, module } = await call.open({ store: 'existing', onlyLooks: true })
    const { runs, next } = await holdfast.find({ ...filter, ...page })
    if (printer.isJson) return printer.json({ runs, next })
    if (runs.length === 0) return printer.note(['No run matches.', ...hintsFor(module, options)].join(' '))
    await printer.lines(runLines(runs, { width: printer.columns, paint: printer.paint, now: io.now() }))
    if (next !== null) await printer.note(`There are more. The next page: the same with --after ${next}`)
  })
}
