// The sessions. A session opens with its first heartbeat and lives until its time runs out and a rescue notices, or until it
// ends itself. It never comes back: a process that was declared dead must begin anew, under a new id.

import type { BeatRequest } from '../../../store.ts'

interface Session {
  aliveUntil: number
  ended: boolean
}

export class Sessions {
  private readonly sessions = new Map<string, Session>()

  /** Keeps the session alive, or ends it; false if it has ended. */
  beat({ session: id, leaseMs, end = false }: BeatRequest, now: number): boolean {
    let session = this.sessions.get(id)
    if (session === undefined) this.sessions.set(id, (session = { aliveUntil: now, ended: false }))
    if (end) session.ended = true
    else if (!session.ended) session.aliveUntil = now + leaseMs
    return !session.ended
  }

  /** Marks those as ended that did not beat in time; answers how many. */
  endExpired(now: number): number {
    let count = 0
    for (const session of this.sessions.values()) {
      if (session.ended || session.aliveUntil > now) continue
      session.ended = true
      count += 1
    }
    return count
  }

  hasEnded(id: string): boolean {
    return this.sessions.get(id)?.ended ?? false
  }

  isAlive(id: string): boolean {
    return this.sessions.get(id)?.ended === false
  }

  /** When each of those that live runs out. */
  expiries(): readonly number[] {
    return [...this.sessions.values()].filter(({ ended }) => !ended).map(({ aliveUntil }) => aliveUntil)
  }
}
