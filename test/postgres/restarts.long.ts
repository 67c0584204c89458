// Postgres is restarted in the middle of a thousand runs, in good order and not; and it dies again and again while a worker
// takes over from one that was killed.

import { describe, expect, it, onTestFinished } from 'vitest'
import { WorkerProcesses } from '../chaos/worker-processes.ts'
import { until } from '../support/until.ts'
import { inspect } from '../chaos/inspection.ts'
import { startWireProxy } from '../support/wire-proxy.ts'
import { restartAmid, startOwnPostgres } from './restarts.ts'

describe('restarts of Postgres in the middle of a thousand runs', { timeout: 600_000 }, () => {
  it('SW-E1 lose nothing, and the worker goes on by itself', async () => {
    const report = await restartAmid(1_000, ['fast', 'immediate', 'kill', 'fast', 'kill'])
    console.log(`restarts: ${report.blows} amid ${report.runs} runs, ${report.bodies} bodies of steps`)
    expect(report).toEqual({ blows: 5, runs: 1_000, bodies: 3_000, errors: [], violations: [] })
  })
})

/** What a takeover consists of: sessions are declared dead, what they held is found, locked, and taken. */
const moments = [
  /update \S+sessions as session set ended_at/,
  /order by run\.session, run\.id limit/,
  /picked\.session and run\.token = picked\.token/,
  /update \S+runs as run set type = given\.type/,
]

describe('a database that dies while a worker takes over from one that was killed', { timeout: 300_000 }, () => {
  it('IF-C3 PQ-E4 forgets no run, at whatever moment of the takeover', async () => {
    const cluster = await startOwnPostgres()
    const address = (url: string): string => `${url}?schema=takeover`
    const proxy = await startWireProxy(cluster.url)
    onTestFinished(() => proxy.close())
    const processes = await WorkerProcesses.gather(address(cluster.url))
    onTestFinished(() => processes.dismiss())
    // The worker that takes over keeps its own lease meanwhile: only the victim's runs are at stake.
    const heirs = { lease: '6s', heartbeat: '500ms', concurrency: 12 } as const
    const [victim, heir] = await Promise.all([
      processes.hired({ lease: '1s', concurrency: 12 }),
      processes.hired(heirs, address(proxy.url)),
    ])
    const times = [0, 0, 0, 0, 2_000]
    const runs = await Promise.all(
      Array.from({ length: 24 }, () => processes.client.start(processes.programs.five, times)),
    )
    const held = (): number => processes.executions.filter(({ pid, step }) => pid === victim.pid && step === 'e').length
    await until('one holds some of them', () => held() > 2)
    const goneAt = new Map([[victim.pid, Date.now()]])
    victim.signal('SIGKILL')
    let isUp = true
    for (const on of moments) {
      // Armed while the database is away, or nobody has been declared dead yet: so it cannot come too late. The answer is
      // held back until the database is gone.
      const struck = proxy.strike({ on, how: 2_000 })
      if (!isUp) await cluster.start()
      isUp = false
      await struck
      await cluster.kill()
    }
    await cluster.start()
    for (const run of runs) await run.result({ timeout: '60s' })
    expect(heir.exit).toBeNull()
    const ended = await Promise.all(
      runs.map(async ({ id }) => ({
        id,
        status: await processes.client.run(id).status(),
        journal: await processes.client.journal(id),
      })),
    )
    const evidence = { runs: ended, steps: ['a', 'b', 'c', 'd', 'e'], executions: processes.executions, goneAt }
    expect(inspect(evidence).violations).toEqual([])
    expect((await processes.client.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
})
