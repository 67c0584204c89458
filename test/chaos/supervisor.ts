// Keeps the workers of a testbed running: so many places, and in each a worker process. A worker that ends, by a blow or by itself, is replaced, as
// a supervisor would; also again and again, while there is no store to work on.

import { setTimeout } from 'node:timers/promises'
import type { Draw } from '../simulation/draw.ts'
import { until } from '../support/until.ts'
import type { TestbedEvent, Version } from './testbed.ts'
import { TestbedWorker, type WorkerTask } from './testbed-worker.ts'

export interface SupervisorOptions {
  readonly places: number
  /** What they are to run. */
  readonly program: string
  /** Where they log. */
  readonly folder: string
  readonly task: Omit<WorkerTask, 'id' | 'name' | 'version' | 'calls' | 'concurrency' | 'pool'>
  readonly report: (event: Omit<TestbedEvent, 'at'>) => void
}

/** Where one worker works: the name stays the same, whichever process it is. */
export interface Post {
  readonly name: string
  /** Of the next one. */
  version: Version
  worker: TestbedWorker
}

const pauseMs = 100

/** Not all are alike: the second has a single slot, and the third a pool that its operator has opened. */
function variantOf(name: string): Pick<WorkerTask, 'concurrency' | 'pool'> {
  return { concurrency: name === 'w2' ? 1 : 20, pool: name === 'w3' ? 'lent' : 'own' }
}

export class Supervisor {
  /** Everyone who ever belonged to it. */
  readonly workers: TestbedWorker[] = []
  readonly posts: readonly Post[]
  private readonly options: SupervisorOptions
  private isClosed = false

  constructor(options: SupervisorOptions) {
    this.options = options
    // Who stands still does not notice that his parent is gone.
    process.once('exit', this.kill)
    this.posts = Array.from({ length: options.places }, (_, index) => {
      const name = `w${index + 1}`
      const post: Post = { name, version: 1, worker: this.hire(name, 1) }
      void this.keepFilled(post)
      return post
    })
  }

  /** Starts a process that belongs to the testbed and to no post. */
  hire(name: string, version: Version): TestbedWorker {
    const { task, report } = this.options
    const id = `${name}.${this.workers.filter((worker) => worker.name === name).length + 1}`
    const worker = new TestbedWorker({ ...task, ...variantOf(name), id, name, version }, this.options)
    this.workers.push(worker)
    const details = { worker: id, pid: worker.pid, version }
    report({ kind: 'worker', text: `${id} starts`, details: { ...details, state: 'starts' } })
    void worker.began.then(
      (began) => began && report({ kind: 'worker', text: `${id} works`, details: { ...details, state: 'works' } }),
    )
    void this.ended(worker)
    return worker
  }

  /** Takes a worker that is at work, and keeps others from striking it until that is over. False if there is nobody. */
  async withWorker(draw: Draw, strike: (worker: TestbedWorker, post: Post) => Promise<void>): Promise<boolean> {
    const free = this.posts.filter(({ worker }) => worker.isFree)
    if (free.length === 0) return false
    await this.taken(draw.pick(free), strike)
    return true
  }

  /** Takes the worker that has this post. */
  async taken(post: Post, strike: (worker: TestbedWorker, post: Post) => Promise<void>): Promise<void> {
    const { worker } = post
    worker.isTaken = true
    try {
      await strike(worker, post)
    } finally {
      worker.isTaken = false
    }
  }

  /** Settles when every post has a worker that works. */
  async complete(ms = 60_000): Promise<void> {
    for (const { worker } of this.posts) if (worker.exit === null) worker.signal('SIGCONT')
    await until('every worker works', () => this.posts.every(({ worker }) => worker.isWorking), ms).catch((error) => {
      const idle = this.posts.filter(({ worker }) => !worker.isWorking)
      const said = idle.map(({ worker }) => `${worker.id}: ${worker.tail.slice(-5).join('\n')}`)
      throw new Error(`A worker does not come to work:\n${said.join('\n')}`, { cause: error })
    })
  }

  async dismiss(): Promise<void> {
    this.isClosed = true
    this.kill()
    await Promise.all(this.workers.map(({ exited }) => exited))
    process.off('exit', this.kill)
  }

  private readonly kill = (): void => {
    for (const worker of this.workers) if (worker.exit === null) worker.signal('SIGKILL')
  }

  private async ended(worker: TestbedWorker): Promise<void> {
    const { report } = this.options
    const { code, signal } = await worker.exited
    const details = { worker: worker.id, pid: worker.pid, version: worker.version, code, signal, state: 'ends' }
    report({ kind: 'worker', text: `${worker.id} ends with ${signal ?? code}`, details })
    // Who never came to work had no store to work on. Who did must bear everything.
    if (worker.isDismissed || !(await worker.began)) return
    const said = worker.tail.slice(-20)
    report({
      kind: 'violation',
      text: `${worker.id} ended by itself with ${signal ?? code}`,
      details: { ...details, said },
    })
  }

  private async keepFilled(post: Post): Promise<void> {
    for (;;) {
      await post.worker.exited
      // Who ends again and again without having worked must not take the machine for himself.
      await setTimeout(pauseMs)
      if (this.isClosed) return
      post.worker = this.hire(post.name, post.version)
    }
  }
}
