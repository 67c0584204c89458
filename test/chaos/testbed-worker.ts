// A worker process, as the testbed sees it: what it is called, what it has logged, and until when it held what.

import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { readOrNothing } from '../support/server-folder.ts'
import { readCalls, type StoreCall } from './store-call-log.ts'
import { exitOf, type Exit } from './worker-processes.ts'
import type { WorkerInfo, Plant, Version } from './testbed.ts'
import type { TenureNews } from './tenures.ts'

/** What a worker process is given. */
export interface WorkerTask {
  readonly id: string
  readonly name: string
  readonly version: Version
  /** The store, by the way that may be struck. */
  readonly url: string
  readonly sinkUrl: string
  readonly leaseMs: number
  readonly plant: Plant
  /** How many runs it moves at once. */
  readonly concurrency: number
  /** Whether its store opens its connections itself, or is lent a pool. */
  readonly pool: 'own' | 'lent'
  /** Where it writes down what it asks of its store. */
  readonly calls: string
}

/** What it is ordered while it works: its pool gives no connection for so long. */
export interface WorkerOrder {
  readonly withholdMs: number
}

/** What it reports. */
export type WorkerNews =
  | TenureNews
  | { readonly working: true }
  /** So many of its calls had to wait for a connection that was withheld. */
  | { readonly withheld: number }

const tailLines = 200

export class TestbedWorker implements WorkerInfo {
  readonly id: string
  readonly name: string
  readonly version: Version
  readonly pid: number
  /** Settles when it is at work; with false if it ended before. */
  readonly began: Promise<boolean>
  readonly exited: Promise<Exit>
  /** Null while it lives. */
  exit: Exit | null = null
  isWorking = false
  /** It was made to end, or asked to. */
  isDismissed = false
  /** A nemesis strikes it right now: others look for another one. */
  isTaken = false
  private onWithheld: (count: number) => void = () => undefined
  private killedAt: number | null = null
  /** Until when its leases were valid, tenure by tenure. The last is the one that it is in. */
  private readonly tenures = new Map<string, number>()
  private readonly log: string
  private readonly callsPath: string
  private readonly kill: (signal: NodeJS.Signals) => boolean
  private readonly order: (order: WorkerOrder) => void

  constructor(
    task: Omit<WorkerTask, 'calls'>,
    { program, folder }: { readonly program: string; readonly folder: string },
  ) {
    this.id = task.id
    this.name = task.name
    this.version = task.version
    this.log = join(folder, `${task.id}.log`)
    this.callsPath = join(folder, `${task.id}.calls`)
    const log = openSync(this.log, 'a')
    // The program itself, not a launcher: a signal must reach what does the work.
    const child = spawn(
      process.execPath,
      [program, JSON.stringify({ ...task, calls: this.callsPath } satisfies WorkerTask)],
      {
        stdio: ['ignore', log, log, 'ipc'],
      },
    )
    closeSync(log)
    this.pid = child.pid ?? 0
    this.kill = (signal) => child.kill(signal)
    this.order = (order) => void (child.connected && child.send(order))
    this.exited = exitOf(child).then((exit) => {
      this.isWorking = false
      return (this.exit = exit)
    })
    this.began = new Promise((resolve) => {
      child.on('message', (news) => {
        this.hear(news as WorkerNews)
        if (this.isWorking) resolve(true)
      })
      void this.exited.then(() => resolve(false))
    })
  }

  get tail(): readonly string[] {
    return readOrNothing(this.log).trimEnd().split('\n').slice(-tailLines)
  }

  /** What it has asked of its store so far. */
  get calls(): readonly StoreCall[] {
    return readCalls(this.callsPath)
  }

  /** Its pool gives no connection for so long. Answers how many of its calls had to wait for one. */
  async withhold(ms: number): Promise<number> {
    const withheld = new Promise<number>((resolve) => (this.onWithheld = resolve))
    this.order({ withholdMs: ms })
    return Promise.race([withheld, this.exited.then(() => 0)])
  }

  /** Whether it is there to be struck. */
  get isFree(): boolean {
    return this.isWorking && !this.isTaken
  }

  /** The tenures that are over, and when their leases were. */
  get goneAt(): readonly (readonly [tenure: string, at: number])[] {
    const reported = [...this.tenures]
    // A dead process does nothing any more, though its leases may still be valid.
    const diedAt = this.exit === null ? null : Math.min(this.exit.at, this.killedAt ?? Infinity)
    return diedAt === null
      ? reported.slice(0, -1)
      : reported.map(([tenure, until]) => [tenure, Math.min(until, diedAt)] as const)
  }

  signal(signal: NodeJS.Signals): void {
    this.isDismissed ||= signal === 'SIGKILL' || signal === 'SIGTERM'
    this.kill(signal)
    if (signal === 'SIGKILL') this.killedAt ??= Date.now()
  }

  private hear(news: WorkerNews): void {
    if ('working' in news) this.isWorking = this.exit === null
    else if ('withheld' in news) this.onWithheld(news.withheld)
    else this.tenures.set(news.tenure, news.until)
  }
}
