// Which calls may take a connection, so that no call that keeps this process alive waits behind a long one. All connections
// of a store are counted here before they are taken from the pool:
//
//   heartbeat   goes first, and one connection is kept for it
//   commit      goes next, and one connection is kept for it
//   general     everything else of ours: claims, starts, reads; short, and in the order in which it came
//   lent        transactions of users, which last as long as the user's code does. At most `total − 3`: a heartbeat, a commit
//               and one call of any other kind find a connection however many are lent. The others wait, in the order in
//               which they came, and hold nothing meanwhile
//
// With fewer than four connections some of these share one. 3: a heartbeat has its own, commits and the rest share. 2: one may be
// lent, everything else shares the other.

import { formatMs } from '../../../core/definition/duration.ts'
import { HoldfastError } from '../../../core/errors/error.ts'

export type ConnectionUse = 'heartbeat' | 'commit' | 'general' | 'lent'

export interface WaitLimit {
  /** @default for ever */
  readonly ms?: number | undefined
  /** Rejects with its reason when it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** Gives the place of a connection back. Calling it again does nothing. */
export type GiveBack = () => void

interface Waiter {
  readonly ticket: number
  readonly admit: () => void
}

/** How many of that many connections are kept for which purpose. */
export function keptFor(total: number): Readonly<Record<'heartbeat' | 'commit', number>> {
  return { heartbeat: total >= 3 ? 1 : 0, commit: total >= 4 ? 1 : 0 }
}

export class ConnectionBudget {
  private readonly total: number
  private readonly mostLent: number
  private readonly kept: ReturnType<typeof keptFor>
  private readonly used = { heartbeat: 0, commit: 0, general: 0, lent: 0 }
  private readonly waiting: Readonly<Record<ConnectionUse, Waiter[]>> = {
    heartbeat: [],
    commit: [],
    general: [],
    lent: [],
  }
  private tickets = 0

  constructor(total: number) {
    this.total = total
    this.mostLent = Math.max(1, total - 3)
    this.kept = keptFor(total)
  }

  /** Takes the place of one connection: at once if there is one and no other caller waits for it, else in turn. */
  take(use: ConnectionUse, limit: WaitLimit): GiveBack | Promise<GiveBack> {
    if (limit.signal?.aborted === true) return Promise.reject(limit.signal.reason as Error)
    if (this.waiting[use].length === 0 && this.hasRoom(use)) return this.admit(use)
    return this.wait(use, limit)
  }

  private wait(use: ConnectionUse, { ms, signal }: WaitLimit): Promise<GiveBack> {
    const queue = this.waiting[use]
    return new Promise((resolve, reject) => {
      const leave = (error: unknown): void => {
        queue.splice(queue.indexOf(waiter), 1)
        settle()
        reject(error)
      }
      const onAbort = (): void => leave(signal?.reason)
      const timer = ms === undefined ? undefined : setTimeout(() => leave(allInUse(ms, this.total)), ms)
      const settle = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      const waiter: Waiter = {
        ticket: (this.tickets += 1),
        admit: () => {
          settle()
          resolve(this.admit(use))
        },
      }
      signal?.addEventListener('abort', onAbort)
      queue.push(waiter)
    })
  }

  private admit(use: ConnectionUse): GiveBack {
    this.used[use] += 1
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.used[use] -= 1
      this.serve()
    }
  }

  /** Admits the next callers, as long as there is room. */
  private serve(): void {
    for (let use = this.next(); use !== null; use = this.next()) this.waiting[use].shift()?.admit()
  }

  private next(): ConnectionUse | null {
    for (const use of ['heartbeat', 'commit'] as const) if (this.isNext(use)) return use
    const { general, lent } = this.waiting
    const isOlder = (lent[0]?.ticket ?? Infinity) < (general[0]?.ticket ?? Infinity)
    const inOrder = isOlder ? (['lent', 'general'] as const) : (['general', 'lent'] as const)
    return inOrder.find((use) => this.isNext(use)) ?? null
  }

  private isNext(use: ConnectionUse): boolean {
    return this.waiting[use].length > 0 && this.hasRoom(use)
  }

  private hasRoom(use: ConnectionUse): boolean {
    const { heartbeat, commit, general, lent } = this.used
    if (use === 'lent' && lent >= this.mostLent) return false
    const forHeartbeat = use === 'heartbeat' ? 0 : Math.max(0, this.kept.heartbeat - heartbeat)
    const forCommit = use === 'commit' ? 0 : Math.max(0, this.kept.commit - commit)
    return heartbeat + commit + general + lent + forHeartbeat + forCommit < this.total
  }
}

function allInUse(ms: number, total: number): HoldfastError {
  const message =
    `All ${total} connections of this store were in use for ${formatMs(ms)}. Raise \`connections\`, or keep transactions ` +
    'short.'
  return new HoldfastError('STORE_UNAVAILABLE', message, { details: { connections: total, waitedMs: ms } })
}
