// Bulk operations: the command first prints how many runs match, then asks for confirmation.

import type { Command } from 'commander'
import type { BulkOutcome } from '../../client/control/bulk-pages.ts'
import { type Call } from '../command-call.ts'
import { readLine } from '../io.ts'
import { runLines } from '../output/run-lines.ts'
import { amount } from '../output/text.ts'
import { usage } from '../usage.ts'

export interface ManyOptions {
  readonly yes?: boolean
  readonly preview?: boolean
  readonly dryRun?: boolean
}

export interface Bulk {
  /** `Cancel`, for the question. */
  readonly verb: string
  /** `cancelled`, for the answer. */
  readonly done: string
  /** The matching runs to which it applies: `live`; empty if to any. */
  readonly kind: string
  readonly act: (options: { readonly preview: boolean }) => Promise<BulkOutcome>
}

export function addManyOptions(command: Command): Command {
  return command
    .optionsGroup('With many runs:')
    .option('--yes', 'do not ask')
    .option('--preview', 'change nothing: say how many match, and show the first of them')
    .option('--dry-run', 'change nothing: only say how many match')
}

/** Refuses options that only make sense for many runs. */
export function assertForMany({ preview, dryRun }: ManyOptions): void {
  if (preview !== true && dryRun !== true) return
  const option = preview === true ? '--preview' : '--dry-run'
  throw usage(
    `${option} is about runs that match: choose them with options such as --type or --status. An id or a key names just one.`,
  )
}

export async function actOnMany(call: Call, options: ManyOptions, bulk: Bulk): Promise<void> {
  const { printer } = call
  const preview = await bulk.act({ preview: true })
  const many = `${preview.isCapped ? 'more than ' : ''}${amount(preview.matched, `${bulk.kind} run`.trimStart())}`
  const onlyLooks = options.preview === true || options.dryRun === true
  if (onlyLooks || preview.matched === 0) {
    const matches = `${preview.matched === 1 ? 'matches' : 'match'}.${onlyLooks ? ' Nothing was changed.' : ''}`
    await printer.answer(preview, `${many} ${matches}`, ...(options.preview === true ? shown(call, preview) : []))
    return
  }
  if (options.yes !== true && !(await agrees(call, bulk.verb, many))) return
  const outcome = await bulk.act({ preview: false })
  const skipped =
    outcome.skipped === 0
      ? ''
      : ` ${amount(outcome.skipped, 'run')} were skipped; run the command with the id of one of them to see why.`
  const one = outcome.changed === 1 ? 'was' : 'were'
  await printer.answer(outcome, `${amount(outcome.changed, 'run')} ${one} ${bulk.done}.${skipped}`)
}

/** The first of those that match, and how many more there are. */
function shown({ io, printer }: Call, { matched, isCapped, first = [] }: BulkOutcome): readonly string[] {
  if (first.length === 0) return []
  const lines = runLines(first, { width: printer.columns, paint: printer.paint, now: io.now() })
  const rest = matched - first.length
  return [...lines, ...(rest > 0 || isCapped ? [`and ${isCapped ? 'more than ' : ''}${amount(rest, 'other')}`] : [])]
}

async function agrees({ io, printer }: Call, verb: string, many: string): Promise<boolean> {
  if (!io.isInteractive) {
    throw usage(`This would ${verb.toLowerCase()} ${many}. Add --yes to do it, or --preview to only look.`)
  }
  await printer.aside(`${verb} ${many}? [y/N]`)
  const answer = await readLine(io.stdin)
  if (/^y(?:es)?$/i.test(answer)) return true
  await printer.aside('Nothing was changed.')
  return false
}
