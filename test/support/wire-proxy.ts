// Stands between a client and Postgres, understands what passes, and does what networks do, at a moment that is named by
// counting: the connection breaks before a COMMIT arrives, or after it was obeyed and before the client hears of it; all
// falls silent while both sides believe that they are connected; the answer is late; what the server sends unasked is lost.
// What was struck once is left alone afterwards: who connects again gets through.

import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { Listener, Messages, withStatementTimeout, type Statement } from './wire-messages.ts'

export interface WireProxyOptions {
  /** Whether `statements` are kept. Where they come for minutes, nobody can. @default true */
  readonly remembers?: boolean
}

export interface Strike {
  /**
   * What is counted, over all connections from now on: the COMMITs of transactions; writes that are no part of one; both,
   * which is every moment at which something lasts; or statements with such a text.
   */
  readonly on: 'commit' | 'autocommit' | 'either' | RegExp
  /** The how manieth, from 1. @default 1 */
  readonly nth?: number
  /**
   * `drop-request`: the server never hears of it. `drop-reply`: the server has done it, the client hears a broken
   * connection. `blackhole`: this connection passes nothing from here on, in neither direction, and stays open. A number:
   * the answer comes so many milliseconds late.
   */
  readonly how: 'drop-request' | 'drop-reply' | 'blackhole' | number
  /** Withdraws it, if it has not come to that by then. */
  readonly until?: AbortSignal
}

export interface WireProxy {
  /** As the server's, but through the proxy. */
  readonly url: string
  /** Every statement that clients asked to execute, in the order of arrival, and those too that were struck. */
  readonly statements: readonly Statement[]
  /** How many connections are open. */
  readonly connections: number
  /** The ports from which the server is spoken to: by these it knows whose connection is whose. */
  readonly ports: readonly number[]
  /** Fulfilled with true when it has struck, with false when it was withdrawn. */
  strike(strike: Strike): Promise<boolean>
  /** Those who have executed a statement like this one, or all, hear nothing more. Says how many these are. */
  blackhole(text?: RegExp, atMost?: number): number
  /** The network is back, and does not know the connections any more that fell silent: they are broken off. */
  mend(): void
  /** From now on connections lead to the server at this port. Those that are open are broken off. */
  aim(port: number): void
  /** From now on everything takes so much longer, each way. */
  delay(ms: number): void
  /** From now on notifications get lost, or no longer. */
  muffle(isMuffled: boolean): void
  /** Who connects from now on and asks for a statement timeout gets this one; null for what they ask for. */
  hurry(ms: number | null): void
  close(): Promise<void>
}

export async function startWireProxy(url: string, { remembers = true }: WireProxyOptions = {}): Promise<WireProxy> {
  const target = new URL(url)
  let port = Number(target.port || 5432)
  const lines = new Set<Line>()
  const statements: Statement[] = []
  const state: State = {
    strikes: new Set(),
    heard: (statement) => remembers && statements.push(statement),
    latencyMs: 0,
    isMuffled: false,
    timeoutMs: null,
  }
  const server = createServer((client) => {
    const line = new Line(client, connect(port, target.hostname), state)
    lines.add(line)
    line.onEnd = () => lines.delete(line)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const own = new URL(url)
  own.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: own.href,
    statements,
    get connections() {
      return lines.size
    },
    get ports() {
      return [...lines].flatMap(({ port }) => port ?? [])
    },
    strike: ({ on, nth = 1, how, until }) =>
      new Promise((resolve) => {
        const armed: Armed = { on, how, left: nth, struck: () => resolve(true) }
        state.strikes.add(armed)
        until?.addEventListener('abort', () => {
          state.strikes.delete(armed)
          // Also if it is about to strike an answer: that may never come.
          resolve(false)
        })
      }),
    blackhole(text, atMost = Infinity) {
      const isMeant = ({ isSilent, executed }: Line): boolean =>
        !isSilent && (text === undefined || [...executed].some((one) => text.test(one)))
      const hit = [...lines].filter(isMeant).slice(0, atMost)
      for (const line of hit) line.isSilent = true
      return hit.length
    },
    mend() {
      for (const line of lines) if (line.isSilent) line.break()
    },
    aim(other) {
      port = other
      for (const line of lines) line.break()
    },
    delay: (ms) => void (state.latencyMs = ms),
    muffle: (isMuffled) => void (state.isMuffled = isMuffled),
    hurry: (ms) => void (state.timeoutMs = ms),
    close: () => close(server, lines),
  }
}

function close(server: Server, lines: ReadonlySet<Line>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    for (const line of lines) line.break()
  })
}

interface Armed {
  readonly on: Strike['on']
  readonly how: Strike['how']
  left: number
  readonly struck: () => void
}

interface State {
  readonly strikes: Set<Armed>
  readonly heard: (statement: Statement) => void
  latencyMs: number
  isMuffled: boolean
  timeoutMs: number | null
}

/** One client's connection, and ours to the server on its behalf. */
class Line {
  isSilent = false
  onEnd = (): void => undefined
  /** The texts that its client asked to execute. */
  readonly executed = new Set<string>()
  private readonly client: Socket
  private readonly server: Socket
  private readonly state: State
  private readonly listener = new Listener()
  private readonly toServer: Lane
  private readonly toClient: Lane
  /** The turns whose answer is struck. */
  private readonly doomed = new Map<number, Armed>()
  /** How many turns the server has answered. */
  private answered = 0

  constructor(client: Socket, server: Socket, state: State) {
    this.client = client
    this.server = server
    this.state = state
    this.toServer = new Lane(server)
    this.toClient = new Lane(client)
    const asked = new Messages('client')
    const answered = new Messages('server')
    client.on('data', (chunk) => this.ask(asked, chunk))
    server.on('data', (chunk) => this.answer(answered, chunk))
    for (const [socket, other] of [
      [client, this.toServer],
      [server, this.toClient],
    ] as const) {
      socket.setNoDelay(true)
      // The end is reported by `close`, which follows.
      socket.on('error', () => undefined)
      socket.on('close', () => {
        // Nothing notifies the other side when the network is gone.
        if (this.isSilent) return
        other.end()
        this.onEnd()
      })
    }
  }

  /** Ours, on the server's side. */
  get port(): number | undefined {
    return this.server.localPort
  }

  break(): void {
    this.client.destroy()
    this.server.destroy()
    this.onEnd()
  }

  private ask(messages: Messages, chunk: Buffer): void {
    if (this.isSilent) return
    for (const message of messages.push(chunk)) {
      if (message.type === 'encrypt') {
        this.client.write('N')
        continue
      }
      for (const statement of this.listener.hear(message)) {
        this.state.heard(statement)
        this.executed.add(statement.text)
        if (!this.survives(statement)) return
      }
      const { timeoutMs, latencyMs } = this.state
      const isHurried = message.type === 'startup' && timeoutMs !== null
      this.toServer.send(isHurried ? withStatementTimeout(message.bytes, timeoutMs) : message.bytes, latencyMs)
    }
  }

  /** False if the request goes no further. */
  private survives(statement: Statement): boolean {
    for (const strike of this.state.strikes) {
      if (!isMeant(strike.on, statement) || --strike.left > 0) continue
      this.state.strikes.delete(strike)
      if (strike.how === 'drop-request' || strike.how === 'blackhole') {
        if (strike.how === 'blackhole') this.isSilent = true
        else this.break()
        strike.struck()
        return false
      }
      this.doomed.set(statement.turn, strike)
    }
    return true
  }

  private answer(messages: Messages, chunk: Buffer): void {
    if (this.isSilent) return
    for (const { type, bytes } of messages.push(chunk)) {
      if (type === 'A' && this.state.isMuffled) continue
      const strike = this.doomed.get(this.answered)
      if (type === 'Z') this.answered += 1
      if (strike === undefined) {
        this.toClient.send(bytes, this.state.latencyMs)
      } else if (strike.how === 'drop-reply') {
        // Nothing of the answer is passed on; and only when all of it is there has the server done what it was asked.
        if (type !== 'Z') continue
        this.break()
        strike.struck()
        return
      } else {
        this.toClient.send(bytes, this.state.latencyMs + Number(strike.how))
        if (type === 'Z') strike.struck()
      }
    }
  }
}

function isMeant(on: Strike['on'], { role, text, writes }: Statement): boolean {
  if (on instanceof RegExp) return on.test(text)
  const isAutocommit = role === 'autocommit' && writes
  if (on === 'either') return role === 'commit' || isAutocommit
  return on === 'commit' ? role === 'commit' : isAutocommit
}

/** One direction. Everything may be late, and nothing overtakes. */
class Lane {
  private readonly socket: Socket
  private last: Promise<void> | null = null

  constructor(socket: Socket) {
    this.socket = socket
  }

  send(bytes: Buffer, lateMs: number): void {
    if (lateMs === 0 && this.last === null) return void this.socket.write(bytes)
    this.queue(Date.now() + lateMs, () => void this.socket.write(bytes))
  }

  end(): void {
    this.queue(0, () => this.socket.destroySoon())
  }

  private queue(due: number, act: () => void): void {
    const turn = (this.last ?? Promise.resolve())
      .then(() => (due > Date.now() ? setTimeout(due - Date.now()) : undefined))
      .then(act)
    this.last = turn
    void turn.then(() => {
      if (this.last === turn) this.last = null
    })
  }
}
