// Decides over a chaos run when everything is over. Every check is linear, or nearly, in what it reads, has a name that
// a report shows, and looks at one promise; what must be true of every state of the store is the doctor's business.

import { exclusive, founded, keyed, owned, resting, timely, undone } from './checker-effects.ts'
import { answered, cancelled, growing, keyedOnce, retried, started, reported } from './checker-runs.ts'
import { queued, signalled } from './checker-signals.ts'
import { entries, grouped, isBlamed, type Evidence, type Violation } from './evidence.ts'
import { unknownOutcomes } from './history.ts'
import { recoveries, type Recovery } from './recovery.ts'

export interface CheckResult {
  readonly violations: readonly Violation[]
  readonly counts: Counts
}

export interface Counts {
  readonly runs: number
  readonly steps: number
  /** Signals and broadcasts that were acknowledged. */
  readonly signals: number
  readonly effects: number
  /** Executions of a body beyond the first of their attempt. */
  readonly repeatedEffects: number
  readonly takeovers: number
  /** Runs that were paused or given up because their holders died five times in a row. */
  readonly givenUp: number
  /** Runs that were paused because the other build had performed them. */
  readonly drifted: number
  readonly lost: number
  readonly doubled: number
  readonly unknown: number
  /** From the loss of a holder until another holder went on with the run, each with its causes. */
  readonly recoveries: readonly Recovery[]
}

const checks: readonly ((evidence: Evidence) => Iterable<Violation>)[] = [
  started,
  keyedOnce,
  answered,
  cancelled,
  reported,
  growing,
  retried,
  signalled,
  queued,
  exclusive,
  keyed,
  owned,
  founded,
  timely,
  undone,
  resting,
  blameless,
  struck,
]

const lost = new Set(['start_not_lost', 'signal_not_lost', 'item_not_lost', 'ends_after_heal', 'effect_has_run'])
const doubled = new Set(['effect_exclusive', 'step_recorded_once', 'signal_once', 'item_once', 'child_once'])

export function judge(evidence: Evidence): CheckResult {
  const violations = checks.flatMap((check) => [...check(evidence)])
  const { runs, effects, operations } = evidence
  const isSent = (f: string): boolean => f === 'signal' || f === 'broadcast'
  const count = (names: ReadonlySet<string>): number => violations.filter(({ name }) => names.has(name)).length
  const executions = grouped(effects, ({ run, step, attempt }) => `${run} ${step} ${attempt}`)
  return {
    violations,
    counts: {
      runs: runs.length,
      steps: sum(runs.map((run) => entries(run, 'step-succeeded').length)),
      signals: operations.filter(({ f, type }) => isSent(f) && type === 'ok').length,
      effects: effects.length,
      repeatedEffects: effects.length - executions.size,
      takeovers: sum(runs.map((run) => entries(run, 'crashed').length)),
      givenUp: runs.filter(isBlamed).length,
      drifted: runs.filter((run) => entries(run, 'paused').some(({ meta }) => meta.reason === 'drift')).length,
      lost: count(lost),
      doubled: count(doubled),
      unknown: unknownOutcomes(operations).length,
      recoveries: recoveries(evidence),
    },
  }
}

/** Nothing in the workload ends its process: whatever killed a worker, no run is blamed for it. */
function* blameless({ runs }: Evidence): Iterable<Violation> {
  for (const run of runs) {
    if (!isBlamed(run)) continue
    yield { name: 'crashes_not_blamed', text: `${run.id} was stopped for the deaths of others`, runs: [run.id] }
  }
}

/** What the testbed itself has seen go wrong, such as a worker that did not stop when it was asked to. */
function* struck({ happened }: Evidence): Iterable<Violation> {
  for (const { proc, f } of happened) if (proc === 'violation') yield { name: 'testbed', text: f, runs: [] }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
