// Real worker processes on one store, a SQLite file unless asked otherwise, the log of what their steps did, and a client that starts and reads runs but
// performs none. Whatever happens, no process outlives the test.

import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHoldfast, type Holdfast, type WorkOptions } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { createPrograms, type Programs } from './programs.ts'
import { readExecutions, type Execution } from './step-log.ts'

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly at: number
}

export interface WorkerProcess {
  readonly pid: number
  /** Settles when it is at work; rejects if it ends before. */
  readonly ready: Promise<{ readonly sessions: number; readonly runs: number }>
  readonly exited: Promise<Exit>
  /** Null while it lives. */
  readonly exit: Exit | null
  readonly isReady: boolean
  /** Everything that it has printed so far. */
  readonly said: string
  signal(signal: NodeJS.Signals): void
}

export class WorkerProcesses {
  /** The store's address. */
  readonly store: string
  readonly client: Holdfast
  readonly programs: Programs
  /** Everyone who ever belonged to it. */
  readonly workers: WorkerProcess[] = []
  private readonly folder: string
  /** The program of its workers. */
  private readonly program: string

  private constructor(folder: string, program: string, store: string, client: Holdfast, programs: Programs) {
    this.folder = folder
    this.program = program
    this.store = store
    this.client = client
    this.programs = programs
  }

  /** Without an address, on a SQLite file that goes with it. */
  static async gather(address?: string): Promise<WorkerProcesses> {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-'))
    const store = address ?? `sqlite:${join(folder, 'runs.db')}`
    const programs = createPrograms(null)
    const client = await createHoldfast({ store, workflows: Object.values(programs) })
    // Only here: everything else of this file is used without vitest, too.
    const { childProgram } = await import('../support/child-program.ts')
    return new WorkerProcesses(folder, await childProgram('test/chaos/worker-child.ts'), store, client, programs)
  }

  /** Starts a worker. It is at work when its `ready` settles. It may reach the store by another way than the client. */
  hire(work: WorkOptions, store = this.store): WorkerProcess {
    const worker = startProcess(this.program, { store, log: this.log, work })
    this.workers.push(worker)
    return worker
  }

  /** Starts a worker and waits until it works. */
  async hired(...task: Parameters<WorkerProcesses['hire']>): Promise<WorkerProcess> {
    const worker = this.hire(...task)
    await worker.ready
    return worker
  }

  get executions(): readonly Execution[] {
    return readExecutions(this.log)
  }

  /** Waits until a body of this step of this run begins in this process, or in any. */
  async begun(run: { readonly id: string }, step: string, pid?: number): Promise<Execution> {
    return until(`step ${step} begins`, () =>
      this.executions.find((one) => one.run === run.id && one.step === step && (pid === undefined || one.pid === pid)),
    )
  }

  private get log(): string {
    return join(this.folder, 'steps.log')
  }

  async dismiss(): Promise<void> {
    for (const worker of this.workers) if (worker.exit === null) worker.signal('SIGKILL')
    await Promise.all(this.workers.map(({ exited }) => exited))
    await this.client.close()
    rmSync(this.folder, { recursive: true })
  }
}

interface Task {
  readonly store: string
  readonly log: string
  readonly work: WorkOptions
}

function startProcess(program: string, task: Task): WorkerProcess {
  // The program itself, not a launcher: a signal must reach what does the work.
  const child = spawn(process.execPath, [program, JSON.stringify(task)], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  let said = ''
  let exit: Exit | null = null
  let isReady = false
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (said += text.toString()))
  const exited = exitOf(child).then((one) => (exit = one))
  const ready = new Promise<{ sessions: number; runs: number }>((resolve, reject) => {
    child.once('message', (message) => {
      isReady = true
      resolve((message as { recovered: { sessions: number; runs: number } }).recovered)
    })
    void exited.then(({ code, signal }) =>
      reject(new Error(`A worker ended with ${signal ?? code} before it worked. It said:\n${said}`)),
    )
  })
  // Not everyone waits for it: some are killed first.
  ready.catch(() => undefined)
  return {
    pid: child.pid ?? 0,
    ready,
    exited,
    get exit() {
      return exit
    },
    get isReady() {
      return isReady
    },
    get said() {
      return said
    },
    signal: (signal) => void child.kill(signal),
  }
}

/** Settles when it has ended. */
export function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal, at: Date.now() }))
    child.once('error', () => resolve({ code: null, signal: null, at: Date.now() }))
  })
}
