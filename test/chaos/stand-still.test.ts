// A process that stands still loses its leases, and lives. The run that it performed in isolation did not end it.

import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { WorkerProcesses } from './worker-processes.ts'
import { until } from '../support/until.ts'

let processes: WorkerProcesses

beforeEach(async () => {
  processes = await WorkerProcesses.gather()
})
afterEach(() => processes.dismiss())

/** Two losses make a run a suspect. With those that follow it was performed in isolation, and three of them were enough to pause it. */
const stops = 2 + 8
const leaseMs = 500

it(
  'a process that is stopped past its lease again and again blames no run for that',
  { timeout: 400_000 },
  async () => {
    const only = await processes.hired({ lease: leaseMs })
    // Long enough that it is stopped during the step, however late a busy machine notices that the step has begun.
    const run = await processes.client.start(processes.programs.two, { ms: 1_000 })
    const begun = (): number =>
      processes.executions.filter(({ run: id, step }) => id === run.id && step === 'first').length
    for (let stop = 1; stop <= stops; stop += 1) {
      await until(`the first step begins for the ${stop}. time`, () => begun() >= stop, 60_000)
      only.signal('SIGSTOP')
      await setTimeout(2 * leaseMs)
      only.signal('SIGCONT')
    }
    await run.result({ timeout: '30s' })
    const journal = await processes.client.journal(run)
    const kinds = journal.map(({ kind }) => kind)
    // A machine that is busy otherwise may stop it once more.
    expect(kinds.filter((kind) => kind === 'crashed').length).toBeGreaterThanOrEqual(stops)
    expect(kinds).not.toContain('paused')
    const most = Math.max(...journal.map((entry) => (entry.kind === 'crashed' ? entry.meta.crashes : 0)))
    expect(most).toBeLessThan(5)
  },
)
