// The source of the journals against which a build is checked: the runs of a store, or exported runs in files. Each is read
// when its turn comes, so memory does not grow with their number.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Filter, RunPage } from '../../client/read/find.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import { isTerminal, runStatuses } from '../../core/model/run.ts'
import { checkExported, type ExportedRun } from '../../client/read/export-run.ts'
import type { ReplayResult } from '../../engine/replay/replay-run.ts'
import type { Holdfast } from '../../holdfast.ts'
import type { Call } from '../command-call.ts'
import { shownStore } from './store-address.ts'
import { quoted, usage } from '../usage.ts'

/** A run that is about to be replayed. */
export interface RecordedRun {
  readonly id: string
  readonly type: string
  readonly version: number
  readonly replay: () => Promise<ReplayResult>
}

export interface RecordedRuns {
  /** Where they are, as it may be printed. */
  readonly from: string
  readonly count: () => Promise<number>
  readonly all: () => AsyncIterable<RecordedRun>
}

export interface WhichRuns {
  readonly types: readonly string[] | undefined
  /** Also ended runs. Of files, all runs are always replayed. */
  readonly ended: boolean
}

const runsAtOnce = 200
const addressed = /^[a-z][a-z+]+:/

/** Opens the store, exported run or folder that the user names. Nothing is migrated. */
export async function openRecorded(
  call: Call,
  against: string,
  module: string | undefined,
  which: WhichRuns,
): Promise<RecordedRuns> {
  const about = module === undefined ? {} : { workflows: module }
  const path = resolve(call.io.cwd, against)
  if (addressed.test(against) && !existsSync(path)) {
    const need = { store: 'existing', workflows: true, migrate: false } as const
    const { holdfast, store } = await call.open(need, { ...about, store: against })
    return inStore(holdfast, shownStore(store), which)
  }
  const files = filesAt(path, against)
  const { holdfast } = await call.open({ store: 'any', workflows: true }, { ...about, store: 'memory:' })
  return inFiles(holdfast, files, quoted(against), which)
}

function inStore(holdfast: Holdfast, from: string, { types, ended }: WhichRuns): RecordedRuns {
  const status = ended ? runStatuses : runStatuses.filter((one) => !isTerminal(one))
  const filter: Filter = { status, ...(types === undefined ? {} : { type: types }) }
  return {
    from,
    count: async () => (await holdfast.count(filter, { atMost: Number.MAX_SAFE_INTEGER - 1 })).count,
    async *all() {
      for (let after: { readonly after?: string } | null = {}; after !== null;) {
        const { runs, next }: RunPage = await holdfast.find({ ...filter, limit: runsAtOnce, ...after })
        for (const { id, type, version } of runs) yield { id, type, version, replay: () => holdfast.replay(id) }
        after = next === null ? null : { after: next }
      }
    },
  }
}

function inFiles(holdfast: Holdfast, files: readonly string[], from: string, { types }: WhichRuns): RecordedRuns {
  return {
    from,
    count: () => Promise.resolve(files.length),
    async *all() {
      for (const file of files) {
        const exported = readExported(file)
        const { id, type, version } = exported.run
        if (types === undefined || types.includes(type)) {
          yield { id, type, version, replay: () => holdfast.replay(exported) }
        }
      }
    },
  }
}

function filesAt(path: string, named: string): readonly string[] {
  if (!existsSync(path)) {
    throw usage(
      `There is nothing at ${quoted(named)}. --against takes the address of a store such as sqlite:app.db, a file that ` +
        '`holdfast export` wrote, or a folder of those.',
    )
  }
  if (!statSync(path).isDirectory()) return [path]
  const files = readdirSync(path).filter((name) => name.endsWith('.json'))
  if (files.length === 0) throw usage(`There is no .json file in the folder ${quoted(named)}.`)
  return files.toSorted().map((name) => join(path, name))
}

function readExported(file: string): ExportedRun {
  try {
    return checkExported(JSON.parse(readFileSync(file, 'utf8')) as unknown)
  } catch (error) {
    const text = error instanceof HoldfastError ? error.message : `It cannot be read: ${messageOf(error)}.`
    throw usage(`${quoted(file)}: ${text}`, { file }, error)
  }
}
