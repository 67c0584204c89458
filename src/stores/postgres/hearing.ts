// Hints on their way: what was committed here is told to listeners here directly, and to other processes by NOTIFY; what
// others tell is passed on.

import type { Ports } from '../../core/ports.ts'
import type { Hint } from '../../store.ts'
import type { Told } from './execution.ts'
import { Listener, type ListenClient } from './listening.ts'
import type { Hearing } from './store.ts'
import { noticesOf } from './notice.ts'
import { Teller } from './telling.ts'
import type { TellWithin } from './within.ts'

export interface HintsOptions {
  readonly channel: string
  readonly self: string
  readonly ports: Pick<Ports, 'clock' | 'random' | 'logger'>
  /** A connection to listen with; null if nobody is to be heard or told. */
  readonly connect: (() => Promise<ListenClient>) | null
  /** Sends a text to the channel. */
  readonly send: (notice: string) => Promise<void>
}

export class Hints implements Hearing {
  private attending: (hints: readonly Told[]) => void = () => undefined
  private readonly listeners = new Set<(hint: Hint) => void>()
  readonly tellWithin: TellWithin
  private readonly listener: Listener | null
  private readonly teller: Teller | null
  private untold: Told[] = []

  constructor({ channel, self, ports, connect, send }: HintsOptions) {
    this.teller = connect === null ? null : new Teller(send, self, ports)
    this.tellWithin =
      connect === null
        ? null
        : async (handle, hints) => {
            for (const notice of noticesOf(hints, 'a transaction')) {
              await handle.query('select pg_notify($1::text, $2::text)::text as told', [channel, notice])
            }
          }
    const onHints = (hints: readonly Hint[]): void => this.pass(hints)
    this.listener = connect === null ? null : new Listener({ connect, send, channel, self, ports, onHints })
  }

  get hears(): boolean {
    return this.listener?.hears ?? false
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    this.listeners.add(onHint)
    await this.listener?.start()
    return () => this.listeners.delete(onHint)
  }

  attend(notice: (hints: readonly Told[]) => void): void {
    this.attending = notice
  }

  /** Something was committed here. */
  readonly committed = (hints: readonly Told[]): void => {
    this.teller?.tell(hints)
    this.pass(hints)
  }

  async close(): Promise<void> {
    this.listeners.clear()
    this.listener?.close()
    await this.teller?.close()
  }

  /** Tells listeners once the present call has its answer, so that nothing that they do or throw gets into it. */
  private pass(hints: readonly Told[]): void {
    this.attending(hints)
    if (this.listeners.size === 0) return
    if (this.untold.length === 0) void Promise.resolve().then(this.tell)
    this.untold.push(...hints)
  }

  private readonly tell = (): void => {
    const hints = this.untold
    this.untold = []
    for (const told of hints) {
      const hint: Hint = told.kind === 'ready' ? { kind: 'ready', type: told.type } : told
      for (const listener of this.listeners) listener(hint)
    }
  }
}
