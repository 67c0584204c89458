// Which processes get hints of the ends of runs: none, as long as no other process waits for one. Every notice wakes every
// process that listens, and its backend: with 16 workers that drained a backlog, hints of ends for which no process
// waited were two fifths of the CPU time of a run.
//
//   this process waits      it announces that at once, again every five seconds, and for a minute after its last wait, so that
//                           a caller that waits for one run after another announces it before the runs end
//   another process waits   its announcement counts for twelve seconds: ends are sent
//   this process listens    it asks which processes wait. For the next second it sends every end: answers are on their way
//   another process asks    a process that waits answers with its announcement. One that has just announced itself waits for a
//                           quarter of a second, and answers all who ask meanwhile at once: after a restart of the database
//                           every process asks, and the answers would be as many as the square of their number
//   it hears nothing        it knows of no other process, and sends every end
//
// An announcement may come after the end that it asks for, and notices may be lost: a process that waits also polls, often
// until its own announcement has come back to it.

import type { Cancel, Clock } from '../../../core/runtime/ports.ts'

/** How often a process that waits announces it, and for how long that counts: one announcement may be lost. */
const announceEveryMs = 5_000
const announcedMs = 12_000

/** For how long a process announces itself after its last wait. */
const lingerMs = 60_000

/** For how long the answers of others may be on their way. */
const answeredWithinMs = 1_000

/** How long after its last announcement a process answers. Shorter than the time for which every end is sent. */
const answerPauseMs = 250

/** When an announcement has come back to its sender, the other processes have it at the latest so much later. */
const deliveredWithinMs = 1_000

export interface AwaitedEndsOptions {
  readonly self: string
  readonly clock: Pick<Clock, 'monotonic' | 'after' | 'background'>
  /** Sends a text to all processes that listen. */
  readonly send: (notice: string) => Promise<void>
  /** Whether other processes are being heard. */
  readonly isListening: () => boolean
}

export class AwaitedEnds {
  private readonly options: AwaitedEndsOptions
  /** Until when ends are sent. */
  private sentUntil = Number.NEGATIVE_INFINITY
  private isWaiting = false
  /** Until when this process announces itself, if it does not wait any more. */
  private announcedUntil = Number.NEGATIVE_INFINITY
  /** Cancels the next announcement; null if this process does not announce itself. */
  private cancel: Cancel | null = null
  /** Cancels the answer to processes that ask; null if none is due. */
  private cancelAnswer: Cancel | null = null
  private announcedAt = Number.NEGATIVE_INFINITY
  /** When the first announcement came back here. */
  private echoedAt = Number.POSITIVE_INFINITY

  constructor(options: AwaitedEndsOptions) {
    this.options = options
  }

  /** Whether another process may wait for an end. */
  get shouldSendEnds(): boolean {
    return !this.options.isListening() || this.options.clock.monotonic() < this.sentUntil
  }

  /**
   * This process waits for ends, or does not wait any more. Returns whether other processes may not know that yet. If nothing is
   * heard here, hints will not come, and that is not a matter of time.
   */
  setWaiting(isWaiting: boolean): boolean {
    const now = this.options.clock.monotonic()
    if (this.isWaiting && !isWaiting) this.announcedUntil = now + lingerMs
    this.isWaiting = isWaiting
    if (isWaiting && this.cancel === null) this.announceAnew()
    return isWaiting && this.options.isListening() && now < this.echoedAt + deliveredWithinMs
  }

  /** Other processes are heard from now on. */
  onListening(): void {
    const { clock, self } = this.options
    this.sentUntil = Math.max(this.sentUntil, clock.monotonic() + answeredWithinMs)
    this.send(`asks ${self}`)
    if (this.cancel !== null) this.announceAnew()
  }

  /** Takes a notice of a process; false if it is about something else. */
  onNotice(notice: string): boolean {
    const [word, from] = notice.split(' ', 2)
    if (word !== 'asks' && word !== 'awaits') return false
    const { clock, self } = this.options
    const isOurs = from === self
    if (word === 'asks' && !isOurs) this.answer()
    if (word === 'awaits' && isOurs) this.echoedAt = Math.min(this.echoedAt, clock.monotonic())
    if (word === 'awaits' && !isOurs) this.sentUntil = clock.monotonic() + announcedMs
    return true
  }

  close(): void {
    this.isWaiting = false
    this.cancel?.()
    this.cancel = null
    this.cancelAnswer?.()
    this.cancelAnswer = null
  }

  /** Processes that listen from now on have not heard earlier announcements. */
  private answer(): void {
    if (this.cancel === null || this.cancelAnswer !== null) return
    const leftMs = this.announcedAt + answerPauseMs - this.options.clock.monotonic()
    if (leftMs <= 0) return this.announce()
    this.cancelAnswer = this.later(leftMs, () => {
      this.cancelAnswer = null
      if (this.cancel !== null) this.announce()
    })
  }

  /** Other processes may not have heard the last announcement. */
  private announceAnew(): void {
    this.echoedAt = Number.POSITIVE_INFINITY
    this.announce()
  }

  private announce(): void {
    const { clock, self } = this.options
    this.cancel?.()
    this.cancelAnswer?.()
    this.cancelAnswer = null
    this.announcedAt = clock.monotonic()
    this.cancel = this.later(announceEveryMs, () => {
      if (this.isWaiting || clock.monotonic() < this.announcedUntil) this.announce()
      else this.cancel = null
    })
    this.send(`awaits ${self}`)
  }

  private later(ms: number, then: () => void): Cancel {
    const { clock } = this.options
    return clock.background?.(ms, then) ?? clock.after(ms, then)
  }

  /** One that is lost costs the processes that wait the time until they poll. */
  private send(notice: string): void {
    this.options.send(notice).catch(() => undefined)
  }
}
