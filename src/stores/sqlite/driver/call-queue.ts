// Calls of one store that may have to wait for other writers, in the order in which they came. SQLite has one writer at a
// time, and its own way of waiting for it stops the whole process, heartbeats and web servers included. So SQLite never waits
// here (the busy timeout is 0): a call that meets the lock of another transaction is refused at once, and is tried again
// after a pause in which the event loop turns.
//
//   new     → done      no call waits, no gate is shut and no lock is met: the call is made in the same turn
//   new     → waiting   otherwise
//   waiting → done      it is the first, no gate is shut, and it met no lock when it was tried
//   waiting → given up  the storage timeout is over (STORE_UNAVAILABLE), its signal was aborted, or the store was closed (CLOSED);
//                       it is never made then, since its caller has gone on
//
// Only the first of the waiting calls is tried, so that many cost no more than one, and none is overtaken. Once the lock is
// free, they are made one after the other, and the event loop turns after every 10 ms of that: each may be a whole batch.
//
// Fairness towards other processes: SQLite keeps no queue for its lock. A process that asks at a moment in which it is free
// gets it, so the frequency of requests counts. The pauses grow from 1 to 5 ms, each of them drawn at random between a half
// and one and a half of that, so that two processes do not keep missing each other; SQLite's own pauses grow to 100 ms. A
// refused `begin immediate` costs 23 µs, measured: a waiting process takes less than 1 % of a core. A neighbour that writes
// without a pause leaves the lock free for a fiftieth of the time, so a call that has waited long asks up to eight times in a
// row.

import { HoldfastError } from '../../../core/errors/error.ts'
import { closed, isHeldUp } from './sqlite-errors.ts'

const firstPauseMs = 1
const longestPauseMs = 5
const growth = 1.25
/** After every this many pauses in a row one more try is made before the next. */
const pausesPerTry = 20
const mostTries = 8
/** How long calls that have waited are made without a turn of the event loop. */
const turnMs = 10

/** The longest delay that the runtime's timer takes; a longer one fires at once instead of late. */
export const longestTimerMs = 2 ** 31 - 1

export interface CallQueueParts {
  /** Settles when a gate that is shut now opens; null if none is. */
  readonly shut: () => Promise<void> | null
  /** Throws if no call can be made any more. */
  readonly check?: () => void
  /** How long a call may wait that does not say so itself. */
  readonly waitMs: number
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** From when on its caller has given up, by `performance.now()`: from then on it is not made. @default after `waitMs` */
  readonly until?: number | undefined
}

interface Waiting {
  /** Tries once, and says whether that was its last time. */
  readonly isDone: () => boolean
  readonly fail: (error: unknown) => void
}

export class CallQueue {
  private readonly parts: CallQueueParts
  private readonly waiting = new Set<Waiting>()
  private isServing = false
  private isClosed = false

  constructor(parts: CallQueueParts) {
    this.parts = parts
  }

  /**
   * Makes the call at once if it can be made, else when its turn has come. `work` must leave nothing behind if it is held up.
   */
  enter<Answer>(work: () => Answer, options: CallOptions = {}): Answer | Promise<Answer> {
    if (this.isClosed) throw closed()
    options.signal?.throwIfAborted()
    if (isOver(options)) throw tooLong()
    this.parts.check?.()
    let heldUpBy: unknown = null
    if (this.waiting.size === 0 && this.parts.shut() === null) {
      try {
        return work()
      } catch (error) {
        if (!isHeldUp(error)) throw error
        heldUpBy = error
      }
    }
    return this.wait(work, heldUpBy, options)
  }

  /** Waiting and later calls are rejected, because the store is closed. */
  close(): void {
    this.isClosed = true
    for (const { fail } of this.waiting) fail(closed())
  }

  private wait<Answer>(work: () => Answer, met: unknown, options: CallOptions): Promise<Answer> {
    const { signal, until } = options
    return new Promise((resolve, reject) => {
      let heldUpBy = met
      const leave = (): void => {
        this.waiting.delete(waiting)
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
      }
      const fail = (error: unknown): void => {
        leave()
        reject(error)
      }
      const abort = (): void => fail(signal?.reason)
      const expire = (): void => fail(heldUpBy ?? tooLong())
      const isDone = (): boolean => {
        // Its timer may be late, because other work took long.
        if (isOver(options)) {
          expire()
          return true
        }
        try {
          this.parts.check?.()
          resolve(work())
        } catch (error) {
          if (isHeldUp(error)) {
            heldUpBy = error
            return false
          }
          reject(error)
        }
        leave()
        return true
      }
      const waitMs = until === undefined ? this.parts.waitMs : until - performance.now()
      const timer = setTimeout(expire, Math.min(waitMs, longestTimerMs))
      signal?.addEventListener('abort', abort)
      const waiting: Waiting = { isDone, fail }
      this.waiting.add(waiting)
      if (!this.isServing) void this.serve(met !== null)
    })
  }

  /** Goes on until no call waits. */
  private async serve(isHeldUp: boolean): Promise<void> {
    this.isServing = true
    let pauses = 0
    if (isHeldUp) await pause(pauses)
    let turned = performance.now()
    for (let [first] = this.waiting; first !== undefined; [first] = this.waiting) {
      const shut = this.parts.shut()
      if (shut !== null) await shut
      else if (isDoneWithin(Math.min(1 + Math.floor(pauses / pausesPerTry), mostTries), first)) {
        pauses = 0
        if (performance.now() - turned < turnMs) continue
        await turn()
      } else await pause((pauses += 1))
      turned = performance.now()
    }
    this.isServing = false
  }
}

function isDoneWithin(tries: number, { isDone }: Waiting): boolean {
  for (let made = 0; made < tries; made += 1) if (isDone()) return true
  return false
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function pause(before: number): Promise<void> {
  const ms = Math.min(firstPauseMs * growth ** before, longestPauseMs)
  return new Promise((resolve) => setTimeout(resolve, ms * (0.5 + Math.random())))
}

function isOver({ until }: CallOptions): boolean {
  return until !== undefined && performance.now() > until
}

function tooLong(): HoldfastError {
  return new HoldfastError(
    'STORE_UNAVAILABLE',
    'A call has waited for as long as it may, while a transaction was open in this process or others were writing. Inside a ' +
      'transaction, reach Holdfast only through holdfast.using(tx), and keep it short.',
  )
}
