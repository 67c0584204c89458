// The shell around the states of `holdfast dev`: one worker, one timer, and the watched files. It executes the decisions of
// reload-state.ts, and ends when the state is `over`.

import type { ChildWorker, ChildWorkerOptions, WorkingMessage } from './child-worker.ts'
import { startWorker } from './child-worker.ts'
import {
  begun,
  decide,
  type Decided,
  type DevAction,
  type DevEvent,
  type DevState,
  type DevReport,
} from './reload-state.ts'

export interface DevLoopOptions extends Omit<ChildWorkerOptions, 'onWorking' | 'onEnd'> {
  readonly patienceMs: number
  /** `serves` is the list that the worker reported when it last started. */
  readonly report: (event: DevReport, serves: WorkingMessage | null) => void
}

export class DevLoop {
  private readonly options: DevLoopOptions
  private state: DevState = begun.state
  private isStarted = false
  private worker: ChildWorker | null = null
  private timer: NodeJS.Timeout | null = null
  private serves: WorkingMessage | null = null
  private settle: (isAtOnce: boolean) => void = () => undefined
  /** Settles when it is over: with true if the worker was not awaited. */
  readonly ended = new Promise<boolean>((resolve) => (this.settle = resolve))

  constructor(options: DevLoopOptions) {
    this.options = options
  }

  /** Starts the first worker, unless a signal has arrived before. */
  start(): void {
    if (this.state.phase === 'over') return
    this.isStarted = true
    this.enter(begun)
  }

  changed(file: string): void {
    this.on({ kind: 'changed', file })
  }

  interrupted(): void {
    if (this.isStarted) this.on({ kind: 'interrupted' })
    else this.enter({ state: { phase: 'over', isAtOnce: false }, actions: [] })
  }

  private on(event: DevEvent): void {
    this.enter(decide(this.state, event, this.options.patienceMs))
  }

  private enter({ state, actions }: Decided): void {
    if (state.phase !== this.state.phase && this.timer !== null) {
      clearTimeout(this.timer)
      this.timer = null
    }
    this.state = state
    for (const action of actions) this.act(action)
    if (state.phase === 'over') this.settle(state.isAtOnce)
  }

  private act(action: DevAction): void {
    switch (action.kind) {
      case 'start':
        this.startOne()
        break
      case 'stop':
        this.worker?.stop()
        break
      case 'kill':
        this.worker?.kill()
        break
      case 'wait':
        this.timer = setTimeout(() => this.on({ kind: 'time' }), action.ms)
        break
      case 'report':
        this.options.report(action.event, this.serves)
    }
  }

  private startOne(): void {
    this.worker = startWorker({
      ...this.options,
      onWorking: (message) => {
        this.serves = message
        this.on({ kind: 'working' })
      },
      onEnd: (ended) => {
        this.worker = null
        this.on({ kind: 'ended', ended })
      },
    })
  }
}
