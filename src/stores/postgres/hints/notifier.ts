// Sends hints of the commits of this process to other processes: gathered for a moment and sent from a loop of its own,
// because a NOTIFY inside the write makes that write three to six times as expensive.

import type { Cancel, Ports } from '../../../core/runtime/ports.ts'
import type { Hint } from '../../../store.ts'
import { noticesOf } from './notice.ts'

/** For how long hints gather. */
const gatherMs = 10

/** More than this are not sent one by one: a process that waits for an end polls in any case. */
const mostHints = 2_000

export class Notifier {
  private readonly send: (notice: string) => Promise<void>
  private readonly self: string
  private readonly ports: Pick<Ports, 'clock' | 'logger'>
  private hints: Hint[] = []
  private cancel: Cancel | null = null
  private closed = false
  private flushing: Promise<void> = Promise.resolve()

  constructor(send: (notice: string) => Promise<void>, self: string, ports: Pick<Ports, 'clock' | 'logger'>) {
    this.send = send
    this.self = self
    this.ports = ports
  }

  notify(hints: readonly Hint[]): void {
    if (this.closed) return
    // One by one: as the arguments of one call, a hundred thousand of them would not fit on the stack.
    if (this.hints.length < mostHints) for (const hint of hints) this.hints.push(hint)
    this.cancel ??= this.ports.clock.after(gatherMs, () => void (this.flushing = this.flush()))
  }

  /** Sends the gathered hints. Hints that cannot be sent are lost: polling is the truth. */
  async flush(): Promise<void> {
    this.cancel?.()
    const { hints } = this
    this.hints = []
    try {
      for (const notice of noticesOf(hints, this.self)) await this.send(notice)
    } catch (error) {
      this.ports.logger.debug('Could not notify other processes of new work; they find it by polling.', { error })
    }
    this.cancel = null
    if (this.hints.length > 0) this.notify([])
  }

  async close(): Promise<void> {
    this.closed = true
    await this.flushing
    await this.flush()
  }
}
