// `holdfast runs`: lists runs, newest first, by pages.

import type { Command } from 'commander'
import { didYouMean } from '../../../core/text/suggest.ts'
import { examples, type Act, type Opened } from '../../command-call.ts'
import { hintFor } from '../../input/named-run.ts'
import { whole } from '../../input/option-values.ts'
import { addFilterOptions, checkRunId, filterFrom, type FilterOptions } from '../../input/run-filter.ts'
import { runLines } from '../../output/run-lines.ts'
import { quoted } from '../../usage.ts'

interface RunsOptions extends FilterOptions {
  readonly deleted?: boolean
  readonly limit: number
  readonly after?: string
}

/** Why nothing may have been found: the key lacks its field, or the type is misspelt. */
async function hintsFor({ holdfast, module }: Opened, { key, type = [] }: RunsOptions): Promise<readonly string[]> {
  const [only, second] = type
  if (only === undefined || second !== undefined) return []
  const hint = key === undefined ? null : hintFor(module, key, only)
  if (hint !== null) return [hint]
  const recent = (await holdfast.find({ limit: 200 })).runs.map((run) => run.type)
  const types = [...new Set([...(module?.definitions ?? []).map((definition) => definition.type), ...recent])]
  if (types.includes(only)) return []
  const meant = types.find((known) => known.endsWith(`.${only}`))
  const text = meant === undefined ? didYouMean(only, types) : ` Did you mean ${quoted(meant)}?`
  return text === '' ? [] : [text.trim()]
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
    const opened = await call.open({ store: 'existing', onlyLooks: true })
    const { holdfast } = opened
    const { runs, next } = await holdfast.find({ ...filter, ...page })
    if (printer.isJson) return printer.json({ runs, next })
    if (runs.length === 0) return printer.note(['No run matches.', ...(await hintsFor(opened, options))].join(' '))
    await printer.lines(runLines(runs, { width: printer.columns, paint: printer.paint, now: io.now() }))
    if (next !== null) await printer.note(`There are more. The next page: the same with --after ${next}`)
  })
}
