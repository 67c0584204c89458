// Hears what other processes tell. A connection of its own listens on the channel of the schema; whether it hears anything is
// tried once, because a pooler may take the LISTEN and never deliver: it is told something over another connection, for
// over its own a pooler would deliver even so. A connection that breaks, or that is silent when it is asked, is replaced;
// until then, and where nothing can be heard at all, work is found by polling.

import { growingPauses } from '../../core/pause.ts'
import { messageOf } from '../../core/error.ts'
import type { Ports } from '../../core/ports.ts'
import type { Hint } from '../../store.ts'
import { hintsOf } from './notice.ts'
import type { NoticeSeal } from './notice-seal.ts'

/** What we use of a client of `pg` that listens. */
export interface ListenClient {
  query(text: string, values?: readonly string[]): Promise<unknown>
  on(event: 'notification', heard: (notice: { readonly channel: string; readonly payload?: string }) => void): unknown
  on(event: 'error' | 'end', gone: (error?: Error) => void): unknown
  /** Lets it go for good. */
  discard(): void
}

export interface ListenerOptions {
  readonly connect: () => Promise<ListenClient>
  /** Tells the channel something, over another connection. */
  readonly send: (notice: string) => Promise<void>
  readonly channel: string
  /** What is told on the channel is sealed. */
  readonly seal: NoticeSeal
  /** Who we are: what we told ourselves is known already. */
  readonly self: string
  readonly ports: Pick<Ports, 'clock' | 'random' | 'logger'>
  readonly onHints: (hints: readonly Hint[]) => void
}

/** How often a connection is asked whether it is still there, and how long it may take to answer. */
const askEveryMs = 5_000
const answerWithinMs = 3_000

export class Listener {
  /** Others are being heard. */
  hears = false
  private readonly options: ListenerOptions
  private client: ListenClient | null = null
  private begun = false
  private closed = false
  private echo: ((heard: boolean) => void) | null = null
  private wakeAsker: () => void = () => undefined

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
    this.wakeAsker()
    this.client?.discard()
  }

  private async keepListening(tried: () => void): Promise<void> {
    const { ports } = this.options
    const pause = growingPauses(ports)
    let told = false
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
          ports.logger.warn(
            'Nothing can be heard of other processes over this connection (a pooler in transaction mode?): their work is ' +
              'found by polling. Give a direct address as `listen` to hear at once.',
          )
          client.discard()
          tried()
          return
        }
        this.hears = true
        if (told) ports.logger.info('Other processes are heard again.')
        told = false
        tried()
        // What was told meanwhile was not heard.
        this.options.onHints([{ kind: 'ready', type: '' }])
        await Promise.race([gone, this.ask(client)])
        client.discard()
      } catch (error) {
        this.client?.discard()
        if (!this.closed && !told) {
          ports.logger.warn('Other processes cannot be heard for now; their work is found by polling.', { error })
          told = true
        }
      }
      this.hears = false
      tried()
      if (!this.closed) await pause()
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
    let isAnswered = false
    const told = client.query(`listen "${channel}"`).then(() => {
      isAnswered = true
      return send(`echo ${self}`)
    })
    if (await this.heardWithin(told)) return true
    if (isAnswered || this.closed) return false
    throw new Error('The connection that should listen does not answer.')
  }

  /** Asks again and again, until there is no answer. */
  private async ask(client: ListenClient): Promise<void> {
    const { channel, seal, self } = this.options
    while (!this.closed) {
      await new Promise<void>((resolve) => {
        const cancel = this.options.ports.clock.after(askEveryMs, resolve)
        this.wakeAsker = () => {
          cancel()
          resolve()
        }
      })
      if (this.closed) return
      const echo = seal.seal(`echo ${self}`)
      const asked = client.query('select pg_catalog.pg_notify($1::text, $2::text)', [channel, echo])
      if (!(await this.heardWithin(asked))) return
    }
  }

  /** Rejected if it cannot even be asked: that is not silence. */
  private heardWithin(asked: Promise<unknown>): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const cancel = this.options.ports.clock.after(answerWithinMs, () => this.echo?.(false))
      this.echo = (heard) => {
        cancel()
        this.echo = null
        resolve(heard)
      }
      asked.catch((error: unknown) => {
        cancel()
        this.echo = null
        reject(error)
      })
    })
  }

  private hear(payload: string): void {
    const { self, seal, onHints } = this.options
    const notice = seal.open(payload)
    if (notice === `echo ${self}`) this.echo?.(true)
    else if (notice !== null) onHints(hintsOf(notice, self))
  }
}
