// Whether statements are sent under names, so that the server keeps them prepared. A server that does not know a name, or
// that knows it already, says so: the statements of that connection were dropped (DISCARD ALL, DEALLOCATE), or a pooler gives
// every transaction another connection. The first concerns one connection alone: it goes on without names, and the others
// with them. When several connections say so within a minute, a pooler is likely, and all go without names for a while; then
// names are tried again.

import type { ClientLike } from './connection.ts'

/** This many connections within that time make a pooler. */
const manyConnections = 3
const withinMs = 60_000

/** For how long names are not tried again: the longer, the more often it was in vain. */
const pauseMs = { first: 60_000, most: 3_600_000 }

export class StatementNames {
  private readonly monotonic: () => number
  /** Connections that go without names. */
  private readonly unnamed = new WeakSet<ClientLike>()
  /** When connections were lost for names, the latest last. */
  private lost: number[] = []
  private unnamedUntil = -Infinity
  private pause = pauseMs.first

  constructor(monotonic: () => number) {
    this.monotonic = monotonic
  }

  areAllowed(client: ClientLike): boolean {
    if (this.unnamed.has(client)) return false
    return this.unnamedUntil === -Infinity || this.monotonic() >= this.unnamedUntil
  }

  /** The server is strange to a name that was sent on this connection. */
  refused(client: ClientLike): void {
    if (this.unnamed.has(client)) return
    this.unnamed.add(client)
    const now = this.monotonic()
    this.lost = [...this.lost.filter((at) => now - at < withinMs), now]
    if (this.lost.length < manyConnections) return
    this.lost = []
    this.unnamedUntil = now + this.pause
    this.pause = Math.min(2 * this.pause, pauseMs.most)
  }
}
