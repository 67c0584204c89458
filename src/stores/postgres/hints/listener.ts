// Receives the hints of other processes. A separate connection listens on the channel of the schema; whether it receives
// anything is tested, because a pooler may accept the LISTEN and never deliver: a test notice is sent over another
// connection, because over its own a pooler would deliver even so. A connection that breaks, or that is silent when it is
// tested, is replaced; until then work is found by polling. Where nothing is received at all, that is tried again, but
// seldom: a server that was only busy looks like a pooler.

import { createBackoffDelays, type BackoffBounds } from '../../../core/runtime/backoff.ts'
import { messageOf } from '../../../core/errors/error.ts'
import type { Ports } from '../../../core/runtime/ports.ts'
import type { Hint } from '../../../store.ts'
import { hintsOf } from './notice.ts'
import type { NoticeSeal } from './notice-seal.ts'

/** The part of a listening client of `pg` that we use. */
export interface ListenClient {
  query(text: string, values?: readonly string[]): Promise<unknown>
  on(event: 'notification', heard: (notice: { readonly channel: string; readonly payload?: string }) => void): unknown
  on(event: 'error' | 'end', gone: (error?: Error) => void): unknown
  /** Lets it go for good. */
  discard(): void
}

export interface ListenerOptions {
  readonly connect: () => Promise<ListenClient>
  /** Sends a text on the channel, over another connection. */
  readonly send: (notice: string) => Promise<void>
  readonly channel: string
  /** Notices on the channel are sealed. */
  readonly seal: NoticeSeal
  /** The id of this process: its own notices are known already. */
  readonly self: string
  readonly ports: Pick<Ports, 'clock' | 'random' | 'logger'>
  readonly onHints: (hints: readonly Hint[]) => void
  /** Called when others are heard, for the first time or again. */
  readonly onHearing?: () => void
  /** Takes a notice that is no hint; false if it is one. */
  readonly takeNotice?: (notice: string) => boolean
}

/** How often a connection is asked whether it is still there, and how long it may take to answer. */
const askEveryMs = 5_000
const answerWithinMs = 3_000

/** How long to wait before a way is tried again that took the LISTEN and did not deliver. */
const deafPauses: BackoffBounds = { firstMs: 30_000, longestMs: 600_000 }

const deaf =
  'This connection delivers no notices from other processes (a pooler in transaction mode?): their work is found by ' +
  'polling. Give a direct address as `listen` to receive notices at once.'

export class Listener {
  /** Others are being heard. */
  hears = false
  private readonly options: ListenerOptions
  private client: ListenClient | null = null
  private begun = false
  private closed = false
  private echo: ((heard: boolean) => void) | null = null
  /** Ends the sleep under way. */
  private wake: () => void = () => undefined

  constructor(options: ListenerOptions) {
    this.options = options
  }

  /** Begins to listen; settles when it hears, or when the first try has failed. */
  async start(): Promise<void> {
    if (this.begun) return
    this.begun = true
    let first: () => void = () => undefined
    const tried = new Promise<void>((resolve) => (first = resolve))
    void this.keepListening(first)
    await tried
  }

  close(): void {
    this.closed = true
    this.hears = false
    this.echo?.(false)
    this.wake()
    this.client?.discard()
  }

  private async keepListening(tried: () => void): Promise<void> {
    const { ports } = this.options
    const breakDelay = createBackoffDelays(ports.random)
    const deafDelay = createBackoffDelays(ports.random, deafPauses)
    let hasWarned = false
    let hasWarnedDeaf = false
    while (!this.closed) {
      try {
        const client = await this.options.connect()
        this.client = client
        const gone = new Promise<string>((resolve) => {
          client.on('error', (error) => resolve(messageOf(error)))
          client.on('end', () => resolve('the connection ended'))
        })
        const isHeard = await this.listen(client)
        if (this.closed) break
        if (!isHeard) {
          if (!hasWarnedDeaf) ports.logger.warn(deaf)
          hasWarnedDeaf = true
          client.discard()
          tried()
          await this.sleep(deafDelay())
          continue
        }
        this.hears = true
        if (hasWarned || hasWarnedDeaf) ports.logger.info('Notices from other processes arrive again.')
        hasWarned = hasWarnedDeaf = false
        tried()
        // Notices that were sent meanwhile were missed.
        this.options.onHints([{ kind: 'ready', type: '' }])
        this.options.onHearing?.()
        await Promise.race([gone, this.ask(client)])
        client.discard()
      } catch (error) {
        this.client?.discard()
        if (!this.closed && !hasWarned) {
          ports.logger.warn('Notices from other processes do not arrive for now; their work is found by polling.', {
            error,
          })
          hasWarned = true
        }
      }
      this.hears = false
      tried()
      await this.sleep(breakDelay())
    }
    this.client?.discard()
    tried()
  }

  /** Listens, and answers whether it hears. Fails if there is no answer at all: that says nothing about the way. */
  private async listen(client: ListenClient): Promise<boolean> {
    const { channel, self, send } = this.options
    client.on('notification', (notice) => {
      if (notice.channel === channel) this.hear(notice.payload ?? '')
    })
    let isSent = false
    const listening = client.query(`listen "${channel}"`).then(async () => {
      await send(`echo ${self}`)
      isSent = true
    })
    if (await this.heardWithin(listening)) return true
    if (isSent || this.closed) return false
    throw new Error('The connection that should listen does not answer.')
  }

  /** Asks again and again, until there is no answer. */
  private async ask(client: ListenClient): Promise<void> {
    const { channel, seal, self } = this.options
    while (!this.closed) {
      await this.sleep(askEveryMs)
      if (this.closed) return
      const echo = seal.seal(`echo ${self}`)
      const requested = client.query('select pg_catalog.pg_notify($1::text, $2::text)', [channel, echo])
      if (!(await this.heardWithin(requested))) return
    }
  }

  private async sleep(ms: number): Promise<void> {
    if (this.closed) return
    await new Promise<void>((resolve) => {
      const cancel = this.options.ports.clock.after(ms, resolve)
      this.wake = () => {
        cancel()
        resolve()
      }
    })
  }

  /** Rejected if it cannot even be asked: that is not silence. */
  private heardWithin(requested: Promise<unknown>): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const cancel = this.options.ports.clock.after(answerWithinMs, () => this.echo?.(false))
      this.echo = (heard) => {
        cancel()
        this.echo = null
        resolve(heard)
      }
      requested.catch((error: unknown) => {
        cancel()
        this.echo = null
        reject(error)
      })
    })
  }

  private hear(payload: string): void {
    const { self, seal, onHints, takeNotice } = this.options
    const notice = seal.open(payload)
    if (notice === `echo ${self}`) this.echo?.(true)
    else if (notice !== null && takeNotice?.(notice) !== true) onHints(hintsOf(notice, self))
  }
}
