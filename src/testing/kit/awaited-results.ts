// The results of runs that a test awaits. Time stands still in a test, so one that awaits a run which only time or a message can
// move would wait forever: a runner stops it without a reason, and a script ends without a word. Such a wait is rejected once
// nothing has happened for the patience of the test, in real time: no call of the test is pending, no function of a step is
// under way, and nothing was read or written.
//
// Only a wait counts, not a promise that the test keeps: `const result = run.result(); await t.advance('1h'); await result`.

import { RunHandle, type ResultOptions } from '../../client/run-handle.ts'
import type { HoldfastError } from '../../core/errors/error.ts'
import type { Holdfast } from '../../holdfast.ts'

export interface Patience {
  readonly ms: number
  /** Whether real work is under way that may still move a run. */
  readonly isBusy: () => boolean
  /** Lets everything happen that needs no time. */
  readonly settle: () => Promise<unknown>
  /** Why a run does not end; null if it has ended. */
  readonly explain: (runId: string) => Promise<HoldfastError | null>
}

/** The patience is over after so many looks in a row between which nothing has happened: it counts from the last event. */
const looksOfPatience = 8

type Method = (...given: readonly unknown[]) => unknown

/** The methods that return handles of runs. */
const starting = ['start', 'run', 'instance', 'startMany', 'submit', 'submitBatch'] as const

export class AwaitedResults {
  private readonly patience: Patience
  private readonly waits = new Set<Wait>()
  private timer: NodeJS.Timeout | null = null
  private moves = 0
  private events = 0

  constructor(patience: Patience) {
    this.patience = patience
  }

  /** Something has happened in the world. */
  notice(): void {
    this.events += 1
  }

  /** The world is moved by a call of the test. */
  async during<Result>(move: () => Promise<Result>): Promise<Result> {
    this.moves += 1
    try {
      return await move()
    } finally {
      this.moves -= 1
      this.notice()
    }
  }

  /** The same Holdfast. The results of its runs are waited for with patience, and not forever. */
  of(holdfast: Holdfast): Holdfast {
    const methods = starting.map((name) => {
      const method = holdfast[name] as Method
      const patient: Method = (...given) => {
        const answer = method(...given)
        return answer instanceof Promise ? answer.then((value: unknown) => this.patient(value)) : this.patient(answer)
      }
      return [name, patient]
    })
    return { ...holdfast, ...(Object.fromEntries(methods) as Partial<Holdfast>) }
  }

  /** An answer of a Holdfast with a handle in it, or with many. */
  private patient(answer: unknown): unknown {
    if (Array.isArray(answer)) {
      for (const one of answer as readonly { readonly value?: unknown }[]) this.patient(one.value)
    }
    if (!(answer instanceof RunHandle)) return answer
    const handle: RunHandle<unknown> = answer
    const result = (options?: ResultOptions): Promise<unknown> => this.resultOf(handle, options)
    Object.defineProperty(handle, 'result', { value: result, configurable: true, writable: true })
    return handle
  }

  private resultOf(handle: RunHandle<unknown>, options: ResultOptions | undefined): Promise<unknown> {
    const ended = RunHandle.prototype.result.call(handle, options)
    const wait: Wait = { runId: handle.id, isOver: false, giveUp: () => undefined }
    const over = (): void => {
      wait.isOver = true
      this.waits.delete(wait)
      if (this.waits.size === 0) this.cancel()
    }
    ended.then(over, over)
    const result = new AwaitedResult((resolve, reject) => {
      ended.then(resolve, reject)
      wait.giveUp = reject
    })
    result.onAwait = () => {
      if (wait.isOver) return
      this.waits.add(wait)
      this.expect()
    }
    return result
  }

  /** Looks again soon. The timer keeps the process alive, so that a test gets the error and does not just end. */
  private expect(quietLooks = 0): void {
    if (this.waits.size === 0) return
    const before = this.events
    this.timer ??= setTimeout(() => {
      this.timer = null
      this.look(before, quietLooks).catch((error: unknown) => {
        for (const wait of this.waits) wait.giveUp(error)
      })
    }, this.patience.ms / looksOfPatience)
  }

  private isIdleSince(before: number): boolean {
    return this.moves === 0 && this.events === before && !this.patience.isBusy()
  }

  private async look(before: number, quietLooks: number): Promise<void> {
    if (!this.isIdleSince(before)) return this.expect()
    if (quietLooks + 1 < looksOfPatience) return this.expect(quietLooks + 1)
    // On a slow machine the timer may come before the turns that are due.
    await this.patience.settle()
    if (!this.isIdleSince(before)) return this.expect()
    for (const wait of this.waits) {
      const error = await this.patience.explain(wait.runId)
      if (error !== null) wait.giveUp(error)
      this.waits.delete(wait)
    }
  }

  private cancel(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }
}

interface Wait {
  readonly runId: string
  isOver: boolean
  giveUp: (error: unknown) => void
}

/** A promise that says when it is awaited. A subclass, because `await` does not call `then` of a plain promise. */
class AwaitedResult extends Promise<unknown> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  onAwait: () => void = () => undefined

  // oxlint-disable-next-line unicorn/no-thenable -- it is a promise, and this is how it learns that it is awaited
  override then<Fulfilled = unknown, Rejected = never>(
    onFulfilled?: ((value: unknown) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    this.onAwait()
    return super.then(onFulfilled, onRejected)
  }
}
