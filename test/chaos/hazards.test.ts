// What goes wrong with processes, one hazard a test: real workers on one SQLite file, real signals.

import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHoldfast, type JournalEntry } from '../../src/index.ts'
import { WorkerProcesses, type WorkerProcess } from './worker-processes.ts'
import { until } from '../support/until.ts'
import { inspect } from './inspection.ts'
import { pidOf } from './step-log.ts'

let processes: WorkerProcesses

beforeEach(async () => {
  processes = await WorkerProcesses.gather()
})
afterEach(() => processes.dismiss())

const kinds = (journal: readonly JournalEntry[], kind: JournalEntry['kind']): readonly JournalEntry[] =>
  journal.filter((entry) => entry.kind === kind)

const timeout = 60_000

describe('a worker that is stopped past its lease', { timeout }, () => {
  // PEERS 4 and 5.
  it('SW-C2 SW-C3 SW-E5 PQ-C3 cannot write any more: its late result is not recorded, and it says so', async () => {
    const leaseMs = 1_000
    const frozen = await processes.hired({ lease: leaseMs })
    const run = await processes.client.start(processes.programs.two, { ms: 800 })
    await processes.begun(run, 'first', frozen.pid)
    frozen.signal('SIGSTOP')
    const stoppedAt = Date.now()
    const heir = await processes.hired({ lease: leaseMs })
    await processes.begun(run, 'first', heir.pid)
    // Its step is long due: it writes at once, while the heir holds the run.
    frozen.signal('SIGCONT')
    expect(pidOf(await run.result({ timeout: '20s' }))).toBe(heir.pid)
    await until('it says that it lost the run', () => /aborted|is no longer held here/.test(frozen.said))

    const journal = await processes.client.journal(run)
    const crashed = kinds(journal, 'crashed').map(({ at }) => at.getTime())
    // Its lease began with its last heartbeat, at most a third of it before it was stopped.
    expect(crashed[0]).toBeGreaterThan(stoppedAt + leaseMs / 2)
    const goneAt = new Map([[frozen.pid, crashed[0] ?? 0]])
    const runs = [{ id: run.id, status: 'succeeded', journal }]
    expect(inspect({ runs, steps: ['first', 'second'], executions: processes.executions, goneAt }).violations).toEqual(
      [],
    )
    expect(crashed).toHaveLength(1)
    expect(kinds(journal, 'step-succeeded').map(({ data }) => pidOf(data as string))).toEqual([heir.pid, heir.pid])
  })

  it('works again afterwards, as a new session', async () => {
    const frozen = await processes.hired({ lease: '500ms' })
    const run = await processes.client.start(processes.programs.two, { ms: 200 })
    await processes.begun(run, 'first', frozen.pid)
    frozen.signal('SIGSTOP')
    const heir = await processes.hired({ lease: '500ms' })
    await run.result({ timeout: '20s' })
    heir.signal('SIGKILL')
    await heir.exited
    frozen.signal('SIGCONT')
    const next = await processes.client.start(processes.programs.two, { ms: 10 })
    expect(pidOf(await next.result({ timeout: '20s' }))).toBe(frozen.pid)
  })
})

describe('a run that ends its process', { timeout }, () => {
  // PEERS 23.
  it('SW-R5 is paused at its bound of five, and the others are untouched', async () => {
    const work = { lease: '500ms', concurrency: 4 } as const
    const { five, poison } = processes.programs
    const others = await Promise.all(
      Array.from({ length: 12 }, () => processes.client.start(five, [60, 60, 60, 60, 60])),
    )
    const bad = await processes.client.start(poison, undefined)
    // As a supervisor would: a process that dies is replaced.
    const alive = [processes.hire(work), processes.hire(work)]
    await until(
      'every run has ended',
      async () => {
        for (const [index, worker] of alive.entries()) if (worker.exit !== null) alive[index] = processes.hire(work)
        const runs = await Promise.all([bad, ...others].map((run) => processes.client.get(run)))
        return runs.every(({ endedAt, status }) => endedAt !== null || status === 'paused')
      },
      40_000,
    )

    const journal = await processes.client.journal(bad)
    expect(await processes.client.get(bad)).toMatchObject({ status: 'paused' })
    expect(kinds(journal, 'paused').map(({ meta }) => (meta as { reason: string }).reason)).toEqual(['crashes'])
    // A young process that takes a suspect blames nobody when it dies.
    const crashes = kinds(journal, 'crashed').map(({ meta }) => (meta as { crashes: number }).crashes)
    expect([...new Set(crashes)]).toEqual([1, 2, 3, 4, 5])
    expect(processes.executions.filter(({ step }) => step === 'kill')).toHaveLength(crashes.length)

    const runs = await Promise.all(
      others.map(async ({ id }) => ({
        id,
        status: (await processes.client.get(id)).status,
        journal: await processes.client.journal(id),
      })),
    )
    const goneAt = new Map(
      processes.workers.flatMap(({ pid, exit }) => (exit === null ? [] : [[pid, exit.at] as const])),
    )
    expect(
      inspect({ runs, steps: ['a', 'b', 'c', 'd', 'e'], executions: processes.executions, goneAt }).violations,
    ).toEqual([])
    // From its third time on it was alone, so that at most two of its blows hit the others.
    for (const { journal } of runs) expect(kinds(journal, 'crashed').length).toBeLessThanOrEqual(2)
  })
})

describe('a timer', { timeout }, () => {
  // PEERS 9.
  it('WC-P1 that came due while every worker was down fires when one is back, once', async () => {
    const first = await processes.hired({ lease: '500ms' })
    const run = await processes.client.start(processes.programs.nap, { ms: 2_000 })
    const dueAt = await until('it sleeps', async () => {
      const { status, dueAt } = await processes.client.get(run)
      return status === 'waiting' ? dueAt : null
    })
    first.signal('SIGKILL')
    await first.exited
    await setTimeout(Math.max(0, dueAt.getTime() - Date.now()) + 300)
    expect(await run.status()).toBe('waiting')

    const second = await processes.hired({ lease: '500ms' })
    expect(pidOf(await run.result({ timeout: '10s' }))).toBe(second.pid)
    const journal = await processes.client.journal(run)
    expect(kinds(journal, 'woken').map(({ meta }) => meta)).toEqual([
      { winner: 'sleep', trueAt: dueAt.getTime(), seenAt: expect.any(Number) as number },
    ])
    expect(processes.executions.map(({ step, pid }) => [step, pid])).toEqual([
      ['before', first.pid],
      ['after', second.pid],
    ])
  })
})

describe('SIGTERM', { timeout }, () => {
  /** Ended as the signal says, by itself: 128 + 15, or the signal itself. */
  const asReported = (worker: WorkerProcess) =>
    worker.exited.then(({ code, signal }) => expect(signal ?? code).toBe(signal === null ? 143 : 'SIGTERM'))

  it('IF-P1 SW-P6 during a step lets that end and be recorded, begins no other, and ends the process', async () => {
    const worker = await processes.hired({ lease: '30s' })
    const run = await processes.client.start(processes.programs.two, { ms: 400 })
    await processes.begun(run, 'first')
    worker.signal('SIGTERM')
    await asReported(worker)
    expect(await run.status()).toBe('pending')
    const journal = await processes.client.journal(run)
    expect(journal.map(({ kind }) => kind)).toEqual(['started', 'step-succeeded'])
  })

  it('IF-P1 gives a step back that takes too long, and another worker has it at once', async () => {
    const worker = await processes.hired({ lease: '30s', shutdownTimeout: '200ms' })
    const run = await processes.client.start(processes.programs.two, { ms: 4_000 })
    await processes.begun(run, 'first')
    const heir = await processes.hired({ lease: '30s' })
    worker.signal('SIGTERM')
    await asReported(worker)
    await processes.begun(run, 'first', heir.pid)
    expect(pidOf(await run.result({ timeout: '20s' }))).toBe(heir.pid)
    const journal = await processes.client.journal(run)
    // Nobody had to take it over: it was given back.
    expect(kinds(journal, 'crashed')).toEqual([])
    expect(kinds(journal, 'step-succeeded')).toHaveLength(2)
  })

  it('twice ends the process at once; the run goes on elsewhere', async () => {
    const worker = await processes.hired({ lease: '1s', shutdownTimeout: '30s' })
    const run = await processes.client.start(processes.programs.two, { ms: 3_000 })
    await processes.begun(run, 'first')
    worker.signal('SIGTERM')
    await setTimeout(300)
    expect(worker.exit).toBe(null)
    worker.signal('SIGTERM')
    await asReported(worker)
    expect(processes.executions.map(({ ended }) => ended ?? 'cut off')).toEqual(['cut off'])
    const heir = await processes.hired({ lease: '1s' })
    await processes.begun(run, 'first', heir.pid)
    expect(kinds(await processes.client.journal(run), 'crashed')).toHaveLength(1)
  })

  it('WC-P4 does not wait for a run that sleeps', async () => {
    const worker = await processes.hired({ lease: '30s' })
    const run = await processes.client.start(processes.programs.nap, { ms: 60_000 })
    await until('it sleeps', async () => (await run.status()) === 'waiting')
    worker.signal('SIGTERM')
    await asReported(worker)
    expect(await run.status()).toBe('waiting')
  })

  // PEERS 7.
  it('SW-P6 makes a worker drain: what is started or given back meanwhile goes to the new one', async () => {
    const old = await processes.hired({ lease: '30s' })
    // Longer than it takes to hire a worker, on a busy machine, too.
    const long = await processes.client.start(processes.programs.two, { ms: 4_000 })
    await processes.begun(long, 'first', old.pid)
    const young = await processes.hired({ lease: '30s' })
    old.signal('SIGTERM')
    await setTimeout(400)
    const late = await Promise.all(
      Array.from({ length: 10 }, () => processes.client.start(processes.programs.two, { ms: 10 })),
    )
    const results = await Promise.all(late.map((run) => run.result({ timeout: '20s' })))
    expect(new Set(results.map(pidOf))).toEqual(new Set([young.pid]))
    expect(pidOf(await long.result({ timeout: '20s' }))).toBe(young.pid)
    expect(processes.executions.filter(({ run, step }) => run === long.id && step === 'first')).toHaveLength(1)
    await asReported(old)
  })
})

describe('processes on one file', { timeout }, () => {
  // PEERS 8.
  it('SW-C1 never take the same run', async () => {
    await Promise.all([
      processes.hired({ concurrency: 5 }),
      processes.hired({ concurrency: 5 }),
      processes.hired({ concurrency: 5 }),
    ])
    const runs = await Promise.all(
      Array.from({ length: 100 }, () => processes.client.start(processes.programs.two, { ms: 5 })),
    )
    await Promise.all(runs.map((run) => run.result({ timeout: '30s' })))
    const bodies = processes.executions.map(({ run, step }) => `${run} ${step}`)
    expect(bodies).toHaveLength(200)
    expect(new Set(bodies).size).toBe(200)
    expect(new Set(processes.executions.map(({ pid }) => pid)).size).toBeGreaterThan(1)
  })

  // PEERS 21.
  it('SW-S6 that all start at once on a missing file make one schema and work', async () => {
    const store = `${processes.store}.fresh`
    await Promise.all(Array.from({ length: 5 }, () => processes.hired({}, store)))
    const client = await createHoldfast({ store, workflows: Object.values(processes.programs) })
    const runs = await Promise.all(Array.from({ length: 10 }, () => client.start(processes.programs.two, { ms: 5 })))
    const results = await Promise.all(runs.map((run) => run.result({ timeout: '20s' })))
    expect(results).toHaveLength(10)
    await client.close()
  })
})
