// The options by which runs are chosen, for every command that takes many of them.

import type { Command } from 'commander'
import type { Filter } from '../../client/read/find.ts'
import { isRunId } from '../../core/model/run-id.ts'
import { runStatuses, type RunStatus } from '../../core/model/run.ts'
import { didYouMean } from '../../core/text/suggest.ts'
import { collected, pastTime, whole } from './option-values.ts'
import { quoted, usage } from '../usage.ts'

export interface FilterOptions {
  readonly type?: readonly string[]
  readonly prefix?: string
  readonly status?: readonly string[]
  readonly key?: string
  readonly idempotencyKey?: string
  readonly tag?: string
  readonly version?: number
  readonly parent?: string
  readonly since?: string
  readonly until?: string
}

export function addFilterOptions(command: Command): Command {
  return command
    .optionsGroup('Which runs:')
    .option('--type <type>', 'of this type; may be given again', collected)
    .option('--prefix <prefix>', 'of types that begin like this, such as billing.')
    .option('--status <status>', `in this status; may be given again: ${runStatuses.join(', ')}`, collected)
    .option('--key <key>', 'with this business key')
    .option('--idempotency-key <key>', 'with this idempotency key')
    .option('--tag <tag>', 'with this tag')
    .option('--version <n>', 'of this version of their workflow', whole('--version', 1))
    .option('--parent <run>', 'started by this run')
    .option('--since <time>', 'created at this time or later: 2026-11-16T08:00:00Z, or 1h ago as 1h')
    .option('--until <time>', 'created before this time')
}

export function filterFrom(options: FilterOptions, now: number): Filter {
  const { type, prefix, status, key, idempotencyKey, tag, version, parent, since, until } = options
  return {
    ...(type === undefined ? {} : { type }),
    ...(prefix === undefined ? {} : { typePrefix: prefix }),
    ...(status === undefined ? {} : { status: status.flatMap(statusesOf) }),
    ...(key === undefined ? {} : { key }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(tag === undefined ? {} : { tag }),
    ...(version === undefined ? {} : { version }),
    ...(parent === undefined ? {} : { parent: checkRunId(parent) }),
    ...(since === undefined ? {} : { createdFrom: pastTime(since, '--since', now) }),
    ...(until === undefined ? {} : { createdBefore: pastTime(until, '--until', now) }),
  }
}

/** The id of a run as an argument names it. */
export function checkRunId(text: string): string {
  const id = text.toLowerCase()
  if (isRunId(id)) return id
  if (/^[\da-f]{6,8}(?:-[\da-f-]{0,27})?$/.test(id)) {
    throw usage(`${quoted(text)} is only the beginning of an id. Name the whole of it: \`holdfast runs\` lists them.`)
  }
  throw usage(
    `${quoted(text)} is not the id of a run. An id looks like 019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70; ` +
      '`holdfast runs` lists them, and --key <key> with --type <type> names a run by its key.',
  )
}

function statusesOf(text: string): readonly RunStatus[] {
  return text.split(',').map((one) => {
    const status = runStatuses.find((known) => known === one.trim())
    if (status !== undefined) return status
    const known = runStatuses.join(', ')
    throw usage(`There is no status ${quoted(one)}.${didYouMean(one, runStatuses)} Known: ${known}.`)
  })
}
