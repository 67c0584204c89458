// Judges what is left after processes died: the journals, by what really happened. It knows when each process died, or
// when the lease of one that was stopped had run out; nothing that a process did afterwards was under a valid lease.

import type { JournalEntry } from '../../src/index.ts'
import type { Execution } from './step-log.ts'

export interface Evidence {
  readonly runs: readonly { readonly id: string; readonly status: string; readonly journal: readonly JournalEntry[] }[]
  readonly steps: readonly string[]
  readonly executions: readonly Execution[]
  /** Until when a process could hold a valid lease, by its pid. */
  readonly goneAt: ReadonlyMap<number, number>
}

export interface Findings {
  /** What must not be, each as a sentence. */
  readonly violations: readonly string[]
  readonly steps: number
  /** Steps whose body began more than once. */
  readonly repeated: number
  /** How often a run was taken from a holder that was gone. */
  readonly takeovers: number
  /** From the end of a process to the next beginning of a body in each run that it was working on, sorted. */
  readonly recoveryMs: readonly number[]
}

export function inspect({ runs, steps, executions, goneAt }: Evidence): Findings {
  const violations: string[] = []
  const byRun = grouped(executions, ({ run }) => run)
  let recorded = 0
  let takeovers = 0
  for (const { id, status, journal } of runs) {
    const done = byRun.get(id) ?? []
    if (status !== 'succeeded') violations.push(`${id} is ${status}`)
    if (journal.some(({ seq }, index) => seq !== index + 1)) violations.push(`${id} has a gap in its journal`)
    const endings = journal.filter(({ kind }) => kind === 'succeeded' || kind === 'failed').length
    if (endings !== 1) violations.push(`${id} ended ${endings} times`)
    for (const step of steps) violations.push(...judgeStep(id, step, journal, done))
    violations.push(...overlaps(id, done, goneAt))
    recorded += journal.filter(({ kind }) => kind === 'step-succeeded').length
    takeovers += journal.filter(({ kind }) => kind === 'crashed').length
  }
  const bodies = grouped(executions, ({ run, step }) => `${run} ${step}`)
  const repeated = [...bodies.values()].filter(({ length }) => length > 1).length
  return { violations, steps: recorded, repeated, takeovers, recoveryMs: recoveries(byRun, goneAt) }
}

/** A step has one recorded result, and a body that really ran to its end made it. */
function judgeStep(
  run: string,
  step: string,
  journal: readonly JournalEntry[],
  done: readonly Execution[],
): readonly string[] {
  const results = journal.filter(({ kind, name }) => kind === 'step-succeeded' && name === step)
  if (results.length !== 1) return [`${run} has ${results.length} results of step ${step}`]
  const maker = done.find(({ mark }) => mark === results[0]?.data)
  if (maker?.step !== step) return [`${run} has a result of step ${step} that no body of it made`]
  return maker.ended === null ? [`${run} has a result of step ${step} although its body never ended`] : []
}

/** Bodies of one step that ran at the same time, each under a lease that was valid. */
function overlaps(run: string, done: readonly Execution[], goneAt: ReadonlyMap<number, number>): readonly string[] {
  const found: string[] = []
  for (const group of grouped(done, ({ step }) => step).values()) {
    for (const [index, later] of group.entries()) {
      for (const earlier of group.slice(0, index)) {
        const over = Math.min(earlier.ended ?? Infinity, goneAt.get(earlier.pid) ?? Infinity)
        if (over <= later.began) continue
        found.push(`${run} began step ${later.step} in ${later.pid} while ${earlier.pid} was still performing it`)
      }
    }
  }
  return found
}

function recoveries(
  byRun: ReadonlyMap<string, readonly Execution[]>,
  goneAt: ReadonlyMap<number, number>,
): readonly number[] {
  const found: number[] = []
  for (const done of byRun.values()) {
    const cut = new Set(done.filter(({ ended }) => ended === null).map(({ pid }) => pid))
    for (const pid of cut) {
      const gone = goneAt.get(pid) ?? Infinity
      const next = done.find((one) => one.pid !== pid && one.began >= gone)
      if (next !== undefined) found.push(next.began - gone)
    }
  }
  return found.sort((a, b) => a - b)
}

function grouped(executions: readonly Execution[], keyOf: (one: Execution) => string): Map<string, Execution[]> {
  const groups = new Map<string, Execution[]>()
  for (const one of executions) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one])
  return groups
}
