// A chaos run: a testbed of real processes, a steady load of runs on it, and nemeses that strike by a seeded schedule. The
// doctor looks on all the time. Then everything is healed, whatever is open must end, and the checker decides.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Holdfast } from '../../src/index.ts'
import { judge, type CheckResult } from './checker.ts'
import { openClient } from './client.ts'
import { Driver } from './driver.ts'
import { dump } from './dump.ts'
import { readDeadLetters, readRuns, type Violation } from './evidence.ts'
import { openTestbed, type Plant, type StoreKind, type OpenTestbed } from './testbed.ts'
import { History, operationsOf } from './history.ts'
import { clockTime, missedGoal, tablesOf, total, type Format } from './report.ts'
import { startStorm, type Storm } from './storm.ts'
import { untilDone, Watch } from './watch.ts'
import { chaosWorkflows } from './workload.ts'

export interface ChaosOptions {
  readonly store: StoreKind
  readonly minutes: number
  readonly seed: number
  readonly workers: number
  readonly plant: Plant
  /** Only these nemeses strike. @default all that the store has */
  readonly only?: readonly string[] | undefined
  /** Everything is written into a folder at the end, also if nothing was wrong. @default false */
  readonly keep?: boolean
  /** How the tables at its end are written. @default 'text' */
  readonly format?: Format
  readonly print: (line: string) => void
  /** Is called with how far it is. */
  readonly onProgress?: (line: string) => void
}

export interface ChaosOutcome {
  readonly violations: readonly Violation[]
  /** Null if it was broken off before its end. */
  readonly result: CheckResult | null
  /** How often something struck. */
  readonly faults: number
  /** By how much recoveries missed their goal; null if they met it, or if nothing can be said. */
  readonly missedGoal: string | null
  /** What repeats it. */
  readonly command: string
  /** The folder with everything about its violations; null if there are none. */
  readonly dumped: string | null
}

const customers = 24
const progressMs = 5_000
const stormMs = 5_000
/** Nothing in the workload takes nearly so long once everything works again. */
const stuckMs = 45_000

export async function performChaos(options: ChaosOptions): Promise<ChaosOutcome> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-history-'))
  const path = join(folder, 'history.ndjson')
  const history = new History(path)
  const { store, workers, plant, print } = options
  const testbed = await openTestbed({ store, workers, plant, onEvent: (event) => history.happened(event) })
  const command = commandOf(options)
  const chaos = new Chaos(options, testbed, history)
  try {
    const outcome = await chaos.perform()
    const { violations } = outcome
    if (violations.length === 0 && options.keep !== true) return { ...outcome, command, dumped: null }
    for (const { name, text } of violations.slice(0, 30)) print(`  ✗ ${name}: ${text}`)
    const dumped = await dump({ testbed, violations, history: { path, events: history.events }, command })
    const found = violations.length === 0 ? 'Nothing was wrong.' : `${violations.length} violations.`
    print(`  ${found} Everything about it: ${dumped}`)
    print(`  Again: ${command}`)
    return { ...outcome, command, dumped }
  } finally {
    await chaos.end()
    await testbed.close()
    history.close()
    rmSync(folder, { recursive: true })
  }
}

type Judged = Omit<ChaosOutcome, 'command' | 'dumped'>

/** What is still at work when everything has been healed. */
interface Settling {
  readonly storm: Storm
  readonly driver: Driver
  readonly watch: Watch
  readonly clients: readonly Holdfast[]
  /** Settles when every task is done. */
  readonly ends: Promise<void>
}

class Chaos {
  private readonly options: ChaosOptions
  private readonly testbed: OpenTestbed
  private readonly history: History
  private readonly began = Date.now()
  private readonly open: { close(): Promise<void> }[] = []

  constructor(options: ChaosOptions, testbed: OpenTestbed, history: History) {
    this.options = options
    this.testbed = testbed
    this.history = history
  }

  async perform(): Promise<Judged> {
    const { testbed, history, options } = this
    const { seed, minutes, only } = options
    const clients = [await this.client(), await this.client()]
    const watch = await Watch.begin(testbed.url)
    this.open.push({ close: () => watch.end() })
    const driver = new Driver({ history, clients, workflows: chaosWorkflows(null, 1), seed, customers })
    this.open.push({ close: () => driver.abandon() })
    const storm = startStorm(testbed, { seed, only })
    // Where it was broken off, what has struck is not waited for: nobody needs the testbed any more.
    this.open.push({ close: () => Promise.race([storm.stop(), setTimeout(stormMs)]) })
    this.reportProgress(storm, driver, watch)
    const broken = await Promise.race([watch.alarm, setTimeout(minutes * 60_000, null, { ref: false })])
    if (broken !== null) {
      return { violations: broken, result: null, faults: total(storm.counts), missedGoal: null }
    }
    const ends = driver.stop()
    await storm.stop()
    await testbed.heal()
    await finishDeploy(testbed)
    return this.settle({ storm, driver, watch, clients, ends })
  }

  /** Whatever holds on to the store lets go of it, in the reverse order. */
  async end(): Promise<void> {
    for (const one of this.open.toReversed()) await one.close()
  }

  /** Everything works again: what is open ends, and everything is judged. */
  private async settle({ storm, driver, watch, clients, ends }: Settling): Promise<Judged> {
    const { testbed, history, options } = this
    const faults = total(storm.counts)
    const state = await Promise.race([watch.alarm, untilDone(ends, () => driver.open, stuckMs)])
    if (typeof state !== 'string') return { violations: state, result: null, faults, missedGoal: null }
    const stuck = state === 'stuck' ? [stuckAt(driver.open)] : []
    if (state === 'done') await driver.sweep()
    await driver.abandon()
    // What was given up waiting for may still be on its way: it arrives now, or never.
    await Promise.all(clients.map((client) => client.close()))
    const found = await watch.look()
    const reader = await this.client()
    const result = judge({
      operations: operationsOf(history.events),
      effects: testbed.effects(),
      goneAt: testbed.goneAt,
      runs: await readRuns(reader),
      deadLetters: await readDeadLetters(reader),
      happened: history.events.filter(({ type }) => type === 'info'),
      calls: testbed.calls(),
      leaseMs: testbed.leaseMs,
    })
    const { looks, skipped } = watch
    const seconds = (Date.now() - this.began) / 1000
    const { leaseMs } = testbed
    const report = { seconds, faults: storm.counts, counts: result.counts, looks, skippedLooks: skipped, leaseMs }
    options.print(tablesOf(report, options.format ?? 'text'))
    const missed = missedGoal(result.counts.recoveries, leaseMs)
    return { violations: [...stuck, ...found, ...result.violations], result, faults, missedGoal: missed }
  }

  private async client(): Promise<Holdfast> {
    const client = await openClient(this.testbed.url)
    this.open.push(client)
    return client
  }

  private reportProgress(storm: Storm, driver: Driver, watch: Watch): void {
    const { onProgress = () => undefined } = this.options
    const timer = setInterval(() => {
      const { done, open } = driver
      onProgress(
        `  ${clockTime(Date.now() - this.began)}  ${total(storm.counts)} faults, ${done} tasks done, ` +
          `${open} tasks and ${watch.open} runs open, ${watch.looks} looks`,
      )
    }, progressMs)
    this.open.push({ close: async () => clearInterval(timer) })
  }
}

function stuckAt(open: number): Violation {
  return { name: 'tasks_end', text: `${open} tasks did not become fewer for ${stuckMs} ms`, runs: [] }
}

/** All workers have the new build: what one has begun with it can end. */
async function finishDeploy({ supervisor }: OpenTestbed): Promise<void> {
  for (const post of supervisor.posts) post.version = 2
  const old = supervisor.posts.map(({ worker }) => worker).filter(({ version }) => version === 1)
  for (const worker of old) worker.signal('SIGTERM')
  await Promise.all(old.map(({ exited }) => exited))
  await supervisor.complete()
}

function commandOf({ minutes, seed, store, workers, plant, only }: ChaosOptions): string {
  const rest = [
    ...(only === undefined ? [] : [only.includes('restarts') ? '--restarts' : `--only ${only.join(',')}`]),
    ...(plant === 'none' ? [] : [`--plant ${plant}`]),
  ]
  return [`npm run chaos -- --minutes ${minutes} --seed ${seed} --store ${store} --workers ${workers}`, ...rest].join(
    ' ',
  )
}
