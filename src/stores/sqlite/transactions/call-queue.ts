// Calls of one store that may have to wait for others, in the order in which they came. SQLite has one writer at a time, and
// its own way of waiting for it stops the whole process, heartbeats and web servers included. So SQLite never waits here (the
// busy timeout is 0): a call that meets somebody else's lock is refused at once, and is tried again after a pause in which the
// event loop turns.
//
//   new     → done      nobody waits, nothing is shut and no lock is met: the call is made in the same turn
//   new     → waiting   otherwise
//   waiting → done      it is the first, nothing is shut, and it met no lock when it was tried
//   waiting → given up  the storage timeout is over (STORE_UNAVAILABLE), its signal was aborted, or the store was closed (CLOSED);
//                       it is never made then, since whoever asked has gone on
//
// Only the first of those who wait is tried, so that many cost no more than one, and none is overtaken. Once the way is free,
// they are made one after the other, and the event loop turns after every 10 ms of that: each may be a whole batch.
//
// Fairness towards other processes: SQLite keeps no queue of those who want its lock. Who asks in an instant in which it is
// free gets it, so what counts is how often one asks. The pauses grow from 1 to 5 ms, each of them drawn at random between a
// half and one and a half of that, so that two processes do not keep missing each other; SQLite's own pauses grow to 100 ms.
// A refused `begin immediate` costs 23 µs, measured: who waits takes less than 1 % of a core. A neighbour that writes without a
// pause leaves the lock free for a fiftieth of the time, so whoever waits long asks up to eight times in a row.

import { HoldfastError } from '../../../core/errors/error.ts'
import { closed, isHeldUp } from '../driver/sqlite-errors.ts'

const firstPauseMs = 1
const longestPauseMs = 5
const growth = 1.25
/** After each so many pauses in a row one more try is made before the next. */
const pausesPerTry = 20
const mostTries = 8
/** How long calls that have waited are made without a turn of the event loop. */
const turnMs = 10

/** The longest delay that the runtime's timer takes; a longer one fires at once instead of late. */
export const longestTimerMs = 2 ** 31 - 1

export interface CallQueueParts {
  /** Settles when what is shut now opens; null if nothing is. */
  readonly shut: () => Promise<void> | null
  /** How long a call may wait that does not say so itself. */
  readonly waitMs: number
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** From when on nobody waits for it any more, by `performance.now()`: from then on it is not made. @default after `waitMs` */
  readonly until?: number | undefined
}

interface Waiting {
  /** Tries once, and says whether that was its last time. */
  readonly isDone: () => boolean
  readonly giveUp: (error: unknown) => void
}

export class CallQueue {
  private readonly parts: CallQueueParts
  private readonly waiting = new Set<Waiting>()
  private isServing = false
  private isClosed = false

  constructor(parts: CallQueueParts) {
    this.parts = parts
  }

  /** Does it at once if it can be done, else when its turn has come. Whatever `work` did must be undone if it is held up. */
  enter<Answer>(work: () => Answer, options: CallOptions = {}): Answer | Promise<Answer> {
    if (this.isClosed) throw closed()
    options.signal?.throwIfAborted()
    if (isOver(options)) throw tooLong()
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

  /** Whoever waits is told that the store is closed, and so is whoever comes later. */
  close(): void {
    this.isClosed = true
    for (const { giveUp } of this.waiting) giveUp(closed())
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
      const giveUp = (error: unknown): void => {
        leave()
        reject(error)
      }
      const abort = (): void => giveUp(signal?.reason)
      const expire = (): void => giveUp(heldUpBy ?? tooLong())
      const isDone = (): boolean => {
        // Its timer may be late, because something else took long.
        if (isOver(options)) {
          expire()
          return true
        }
        try {
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
      const waiting: Waiting = { isDone, giveUp }
      this.waiting.add(waiting)
      if (!this.isServing) void this.serve(met !== null)
    })
  }

  /** Goes on until nobody waits. */
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
