// What is done to many runs at once: first it is said how many that are, then somebody must agree.

import type { BulkOutcome } from '../client/bulk.ts'
import type { Filter } from '../client/finding.ts'
import { type Call } from './call.ts'
import { readLine } from './io.ts'
import { amount } from './text.ts'
import { usage } from './usage.ts'

export interface ManyOptions {
  readonly yes?: boolean
  readonly dryRun?: boolean
}

export interface Bulk {
  /** `Cancel`, for the question. */
  readonly verb: string
  /** `cancelled`, for the answer. */
  readonly done: string
  /** Which of those that match it can be done to: `live`. */
  readonly kind: string
  readonly act: (options: { readonly preview: boolean }) => Promise<BulkOutcome>
}

export async function actOnMany(call: Call, filter: Filter, options: ManyOptions, bulk: Bulk): Promise<void> {
  const { printer } = call
  if (Object.keys(filter).length === 0) {
    throw usage(`${bulk.verb} what? Name a run by its id, or choose runs with options such as --type or --status.`)
  }
  const preview = await bulk.act({ preview: true })
  const many = `${preview.isCapped ? 'more than ' : ''}${amount(preview.matched, `${bulk.kind} run`)}`
  if (options.dryRun === true || preview.matched === 0) {
    const matches = preview.matched === 1 ? 'matches' : 'match'
    await printer.answer(preview, `${many} ${matches}.${options.dryRun === true ? ' Nothing was changed.' : ''}`)
    return
  }
  if (options.yes !== true && !(await agrees(call, bulk.verb, many))) return
  const outcome = await bulk.act({ preview: false })
  const skipped =
    outcome.skipped === 0 ? '' : ` ${amount(outcome.skipped, 'run')} could not be; asking for one by its id tells why.`
  const one = outcome.changed === 1 ? 'was' : 'were'
  await printer.answer(outcome, `${amount(outcome.changed, 'run')} ${one} ${bulk.done}.${skipped}`)
}

async function agrees({ io, printer }: Call, verb: string, many: string): Promise<boolean> {
  if (!io.isInteractive) {
    throw usage(`This would ${verb.toLowerCase()} ${many}. Add --yes to do it, or --dry-run to only count.`)
  }
  await printer.aside(`${verb} ${many}? [y/N]`)
  const answer = await readLine(io.stdin)
  if (/^y(?:es)?$/i.test(answer)) return true
  await printer.aside('Nothing was changed.')
  return false
}
