// The sessions. A session opens with its first heartbeat and lives until its time runs out and a rescue notices, or until it
// ends itself. It never comes back: a process that was declared dead must begin anew, under a new id. The row of a session
// that ended long ago goes, and then only a first heartbeat would open it.

import { endedSessionKeptMs, sessionsForgottenAtOnce } from '../../../core/model/heartbeat.ts'
import type { BeatRequest } from '../../../store.ts'

interface Session {
  readonly id: string
  aliveUntil: number
  endedAt: number | null
}

export class Sessions {
  private readonly sessions = new Map<string, Session>()

  /** Keeps the session alive, or ends it; false if it has ended. */
  beat({ session: id, leaseMs, opens = true, end = false }: BeatRequest, now: number): boolean {
    let session = this.sessions.get(id)
    if (session === undefined && !opens && !end) return false
    if (session === undefined) this.sessions.set(id, (session = { id, aliveUntil: now, endedAt: null }))
    if (end) session.endedAt ??= now
    else if (session.endedAt === null) session.aliveUntil = now + leaseMs
    return session.endedAt === null
  }

  /** Marks those as ended that did not beat in time; answers how many. */
  endExpired(now: number): number {
    let count = 0
    for (const session of this.sessions.values()) {
      if (session.endedAt !== null || session.aliveUntil > now) continue
      session.endedAt = now
      count += 1
    }
    return count
  }

  /** Some of the rows go whose sessions ended long ago, unless a run still names them. */
  forget(now: number, isNamed: (id: string) => boolean): void {
    const old = [...this.sessions.values()]
      .filter(({ id, endedAt }) => endedAt !== null && endedAt <= now - endedSessionKeptMs && !isNamed(id))
      .sort((a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0) || (a.id < b.id ? -1 : 1))
    for (const { id } of old.slice(0, sessionsForgottenAtOnce)) this.sessions.delete(id)
  }

  hasEnded(id: string): boolean {
    const session = this.sessions.get(id)
    return session !== undefined && session.endedAt !== null
  }

  isAlive(id: string): boolean {
    return this.sessions.get(id)?.endedAt === null
  }

  /** When each of those that live runs out. */
  expiries(): readonly number[] {
    return [...this.sessions.values()].filter(({ endedAt }) => endedAt === null).map(({ aliveUntil }) => aliveUntil)
  }
}
