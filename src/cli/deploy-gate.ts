// The deploy gate: replays recorded runs against the workflows of a module, several at a time, and says which of them this
// build would harm. Nothing is begun, written or sent.

import { HoldfastError, isHoldfastError } from '../core/errors/error.ts'
import type { ReplayResult } from '../engine/replay/replay-run.ts'
import type { Call } from './command-call.ts'
import { findingLines, Findings, type FindingKind } from './output/findings.ts'
import { Progress } from './output/progress.ts'
import { openRecorded, type RecordedRun, type RecordedRuns } from './input/recorded-runs.ts'
import { amount } from './output/text.ts'
import { adviseModule } from './unknown-workflow.ts'

/** A body that waits costs this process no CPU, so many may wait at once. */
const runsAtOnce = 100

export interface GateOptions {
  /** How many are replayed. @default all */
  readonly sample?: number
  readonly type?: readonly string[]
  readonly ended?: boolean
}

/** The store, file or folder that the user named. */
export interface Compared {
  readonly module: string | undefined
  readonly against: string
}

const oldWay =
  'Let live runs go the old way with ctx.patched, or keep the old code under its version and give the new code another.'
const noCode =
  'Export the workflow from the module, under the type and the version of its runs, until these runs have ended.'

const newFold =
  'Read what earlier code of a decider wrote: with upcast, renamed and retired its events, with upcastState its snapshots. Raise ' +
  'stateVersion where another state is meant.'
const ofDeciders: ReadonlySet<FindingKind> = new Set(['unreadable-event', 'folds-otherwise'])

/** A line for each kind of remedy: `ctx.patched` does not help a run whose workflow is missing. */
function remedies(kinds: readonly FindingKind[]): readonly string[] {
  const isMissing = kinds.includes('unknown-workflow')
  const isOfDecider = kinds.some((kind) => ofDeciders.has(kind))
  const differs = kinds.some((kind) => kind !== 'unknown-workflow' && !ofDeciders.has(kind))
  return [...(isMissing ? ['', noCode] : []), ...(isOfDecider ? ['', newFold] : []), ...(differs ? ['', oldWay] : [])]
}

/** Prints the findings. Throws DRIFT if a run disagrees. */
export async function checkAgainst(call: Call, { module, against }: Compared, options: GateOptions): Promise<void> {
  const { printer } = call
  const which = { types: options.type, ended: options.ended === true }
  const recorded = await openRecorded(call, against, module, which)
  const runs = await recorded.count()
  const sample = Math.min(options.sample ?? runs, runs)
  const progress = new Progress(call.io, printer, sample)
  const { replayed, findings } = await replayAll(
    recorded,
    { sample, of: runs, module: call.moduleName(module) },
    progress,
  )
  await progress.end()
  const { all, unlisted, runs: disagree } = findings
  const sampled = sample < runs ? ` (sampled ${number(sample)} of ${number(runs)})` : ''
  const summary = disagree === 0 ? 'this build agrees with every one' : `this build disagrees with ${number(disagree)}`
  const line = `Replayed ${amount(replayed, 'run')} from ${recorded.from}${sampled}, and ${summary}.`
  await printer.answer(
    { against: recorded.from, runs, replayed, disagree, findings: all, unlisted },
    replayed === 0 ? `There is nothing to replay in ${recorded.from}.` : line,
    ...all.flatMap((finding) => ['', ...findingLines(finding)]),
    ...(unlisted === 0 ? [] : ['', `${amount(unlisted, 'run')} in yet other ways.`]),
    ...remedies(all.map(({ kind }) => kind)),
  )
  if (disagree === 0) return
  const message = `This build would harm ${number(disagree)} of the ${amount(replayed, 'run that was', 'runs that were')} replayed.`
  throw new HoldfastError('DRIFT', message, { details: { replayed, disagree } })
}

async function replayAll(
  recorded: RecordedRuns,
  { sample, of, module }: { readonly sample: number; readonly of: number; readonly module: string | undefined },
  progress: Progress,
): Promise<{ readonly replayed: number; readonly findings: Findings }> {
  const findings = new Findings()
  const runs = spread(recorded.all(), sample, of)
  let replayed = 0
  const oneByOne = async (): Promise<void> => {
    for (let next = await runs.next(); next.done !== true; next = await runs.next()) {
      const result = await outcomeOf(next.value, module)
      // It was removed after it was listed.
      if (isHoldfastError(result, 'RUN_NOT_FOUND')) continue
      findings.add(next.value, result)
      replayed += 1
      await progress.at(replayed, findings.runs === 0 ? '' : `${number(findings.runs)} disagree`)
    }
  }
  await Promise.all(Array.from({ length: runsAtOnce }, oneByOne))
  return { replayed, findings }
}

/** An even sample: as many of the first half as of the second. Runs that were added after the count are included. */
async function* spread(runs: AsyncIterable<RecordedRun>, sample: number, count: number): AsyncGenerator<RecordedRun> {
  let seen = 0
  for await (const run of runs) {
    seen += 1
    if (sample >= count || Math.floor((seen * sample) / count) > Math.floor(((seen - 1) * sample) / count)) yield run
  }
}

function number(count: number): string {
  return count.toLocaleString('en-GB')
}

async function outcomeOf(run: RecordedRun, module: string | undefined): Promise<ReplayResult | HoldfastError> {
  try {
    return await run.replay()
  } catch (error) {
    const isOfRun = isHoldfastError(error, 'WORKFLOW_UNKNOWN') || isHoldfastError(error, 'RUN_NOT_FOUND')
    if (isOfRun) return adviseModule(error, module)
    throw error
  }
}
