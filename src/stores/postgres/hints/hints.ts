// The path of hints: commits of this process are reported to listeners here directly, and to other processes by NOTIFY; hints
// of other processes are passed on, at a bounded rate. Both are sealed with the key of the schema. A process that may not
// read the key neither sends nor receives hints: its work, and that of others, is found by polling.

import { isHoldfastError } from '../../../core/errors/error.ts'
import type { Ports } from '../../../core/runtime/ports.ts'
import type { Hint } from '../../../store.ts'
import type { DetailedHint } from '../execution.ts'
import { AwaitedEnds } from './awaited-ends.ts'
import { HintGate } from './hint-gate.ts'
import { Listener, type ListenClient } from './listener.ts'
import type { HintChannel } from '../store.ts'
import { noticesOf } from './notice.ts'
import { noticeSeal, type NoticeSeal } from './notice-seal.ts'
import { Notifier } from './notifier.ts'
import { transactionIdOf, transactionIdRead } from '../transaction-guard.ts'
import type { NotifyInTransaction } from '../transaction-store.ts'

export interface HintsOptions {
  readonly channel: string
  readonly self: string
  readonly ports: Pick<Ports, 'clock' | 'random' | 'logger'>
  /** A connection to listen with; null if hints are neither sent nor received. */
  readonly connect: (() => Promise<ListenClient>) | null
  /** Sends a text to the channel. */
  readonly send: (notice: string) => Promise<void>
  /** Reads the key that notices are sealed with. */
  readonly key: () => Promise<string>
}

export class Hints implements HintChannel {
  private attending: (hints: readonly DetailedHint[]) => void = () => undefined
  private readonly listeners = new Set<(hint: Hint) => void>()
  readonly notifyInTransaction: NotifyInTransaction
  private listener: Listener | null = null
  private readonly notifier: Notifier | null
  private readonly awaitedEnds: AwaitedEnds
  private undelivered: DetailedHint[] = []
  private readonly options: HintsOptions
  private sealing: Promise<NoticeSeal | null> | null = null
  private closed = false

  constructor(options: HintsOptions) {
    const { channel, self, ports, connect } = options
    this.options = options
    this.notifier = connect === null ? null : new Notifier(this.send, self, ports)
    const sendAwaited = connect === null ? () => Promise.resolve() : this.send
    this.awaitedEnds = new AwaitedEnds({ self, clock: ports.clock, send: sendAwaited, isListening: () => this.hears })
    this.notifyInTransaction =
      connect === null
        ? null
        : async (handle, hints) => {
            const seal = await this.sealed()
            let id: string | undefined
            for (const notice of seal === null ? [] : noticesOf(hints, 'a transaction')) {
              const text = `select pg_catalog.pg_notify($1::text, $2::text)::text as notified, ${transactionIdRead}`
              id = transactionIdOf((await handle.query(text, [channel, seal?.seal(notice) ?? '']))[0])
            }
            return id
          }
  }

  get hears(): boolean {
    return this.listener?.hears ?? false
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    this.listeners.add(onHint)
    await this.hear()
    return () => {
      if (this.listeners.delete(onHint) && this.listeners.size === 0) this.rest()
    }
  }

  /** No one listens any more: the pool gets its connection back, so that its owner can end it. */
  private rest(): void {
    this.listener?.close()
    this.listener = null
  }

  attend(notice: (hints: readonly DetailedHint[]) => void): void {
    this.attending = notice
  }

  /** A transaction was committed here. */
  readonly committed = (hints: readonly DetailedHint[]): void => {
    const sent = this.awaitedEnds.shouldSendEnds ? hints : hints.filter(({ isByHolder }) => isByHolder !== true)
    if (sent.length > 0) this.notifier?.notify(sent)
    this.pass(hints)
  }

  expectEnds(isExpecting: boolean): boolean {
    return !this.closed && this.awaitedEnds.setWaiting(isExpecting)
  }

  /** Begins to listen to others, if that is possible. */
  private async hear(): Promise<void> {
    const { connect, channel, self, ports } = this.options
    const seal = connect === null ? null : await this.sealed()
    if (connect === null || seal === null || this.closed) return
    const onHints = new HintGate(ports.clock, (hints) => this.pass(hints)).take
    this.listener ??= new Listener({
      connect,
      send: this.send,
      channel,
      seal,
      self,
      ports,
      onHints,
      onHearing: () => this.awaitedEnds.onListening(),
      takeNotice: (notice) => this.awaitedEnds.onNotice(notice),
    })
    await this.listener.start()
  }

  /** Null for a process that may not read the key, and while the database does not answer. */
  private sealed(): Promise<NoticeSeal | null> {
    const { channel, key, ports } = this.options
    this.sealing ??= key().then(
      (found) => noticeSeal(found, channel),
      (error: unknown) => {
        // A missing right stays missing; any other error may be over soon.
        if (!isHoldfastError(error) || error.details['sqlState'] !== '42501') this.sealing = null
        ports.logger.debug(
          'The key for notices cannot be read: this process neither notifies other processes nor hears them.',
          {
            error,
          },
        )
        return null
      },
    )
    return this.sealing
  }

  private readonly send = async (notice: string): Promise<void> => {
    const seal = await this.sealed()
    if (seal !== null) await this.options.send(seal.seal(notice))
  }

  async close(): Promise<void> {
    this.closed = true
    this.listeners.clear()
    this.awaitedEnds.close()
    this.listener?.close()
    await this.notifier?.close()
  }

  /** Notifies listeners once the present call has its answer, so that nothing that they do or throw gets into it. */
  private pass(hints: readonly DetailedHint[]): void {
    this.attending(hints)
    if (this.listeners.size === 0) return
    if (this.undelivered.length === 0) void Promise.resolve().then(this.notifyListeners)
    // One by one: as the arguments of one call, a hundred thousand of them would not fit on the stack.
    for (const hint of hints) this.undelivered.push(hint)
  }

  private readonly notifyListeners = (): void => {
    const hints = this.undelivered
    this.undelivered = []
    for (const sealed of hints) {
      const hint = plain(sealed)
      for (const listener of this.listeners) listener(hint)
    }
  }
}

/** The hint without what only this store knows. */
function plain(hint: DetailedHint): Hint {
  if (hint.kind === 'ready') return { kind: 'ready', type: hint.type }
  return hint.kind === 'ended' ? { kind: 'ended', runId: hint.runId } : hint
}
