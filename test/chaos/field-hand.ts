// A worker process, as the field sees it: what it is called, what it has logged, and until when it held what.

import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { readOrNothing } from '../support/server-folder.ts'
import { exitOf, type Exit } from './crew.ts'
import type { Hand, Plant, Version } from './field.ts'
import type { TenureNews } from './tenures.ts'

/** What a worker process is told. */
export interface HandTask {
  readonly id: string
  readonly name: string
  readonly version: Version
  /** The store, by the way that may be struck. */
  readonly url: string
  readonly sinkUrl: string
  readonly leaseMs: number
  readonly plant: Plant
}

/** What it tells. */
export type HandNews = TenureNews | { readonly working: true }

const tailLines = 200

export class FieldHand implements Hand {
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
  /** Somebody strikes it right now: others look for somebody else. */
  isTaken = false
  private killedAt: number | null = null
  /** Until when its leases were valid, tenure by tenure. The last is the one that it is in. */
  private readonly tenures = new Map<string, number>()
  private readonly log: string
  private readonly kill: (signal: NodeJS.Signals) => boolean

  constructor(task: HandTask, { program, folder }: { readonly program: string; readonly folder: string }) {
    this.id = task.id
    this.name = task.name
    this.version = task.version
    this.log = join(folder, `${task.id}.log`)
    const log = openSync(this.log, 'a')
    // The program itself, not a launcher: a signal must reach what does the work.
    const child = spawn(process.execPath, [program, JSON.stringify(task)], {
      stdio: ['ignore', log, log, 'ipc'],
    })
    closeSync(log)
    this.pid = child.pid ?? 0
    this.kill = (signal) => child.kill(signal)
    this.exited = exitOf(child).then((exit) => {
      this.isWorking = false
      return (this.exit = exit)
    })
    this.began = new Promise((resolve) => {
      child.on('message', (news) => {
        this.hear(news as HandNews)
        if (this.isWorking) resolve(true)
      })
      void this.exited.then(() => resolve(false))
    })
  }

  get tail(): readonly string[] {
    return readOrNothing(this.log).trimEnd().split('\n').slice(-tailLines)
  }

  /** Whether it is there for somebody to strike. */
  get isFree(): boolean {
    return this.isWorking && !this.isTaken
  }

  /** The tenures that are over, and when their leases were. */
  get goneAt(): readonly (readonly [tenure: string, at: number])[] {
    const told = [...this.tenures]
    // A dead process does nothing any more, though its leases may still be valid.
    const diedAt = this.exit === null ? null : Math.min(this.exit.at, this.killedAt ?? Infinity)
    return diedAt === null
      ? told.slice(0, -1)
      : told.map(([tenure, until]) => [tenure, Math.min(until, diedAt)] as const)
  }

  signal(signal: NodeJS.Signals): void {
    this.isDismissed ||= signal === 'SIGKILL' || signal === 'SIGTERM'
    this.kill(signal)
    if (signal === 'SIGKILL') this.killedAt ??= Date.now()
  }

  private hear(news: HandNews): void {
    if ('working' in news) this.isWorking = this.exit === null
    else this.tenures.set(news.tenure, news.until)
  }
}
