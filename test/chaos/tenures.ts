// Keeps a record of the leases of a worker from inside its process, by what passes between engine and store: from when a
// session is a tenure, and until when its leases are surely valid. The store counts a lease from the moment at which a
// heartbeat reaches it, and this record from the moment at which it was sent: who takes over does so later than what is
// reported here, or too early.

import type { BeatRequest, Store } from '../../src/store.ts'

/** What a worker reports of a tenure. */
export interface TenureNews {
  readonly tenure: string
  /** Its leases are valid until then, unless a later word says otherwise. */
  readonly until: number
}

export interface TenuresOptions {
  /** Whose tenures these are. */
  readonly worker: string
  readonly leaseMs: number
  readonly report: (news: TenureNews) => void
}

export class Tenures {
  private readonly options: TenuresOptions
  private session = ''
  private count = 0
  /** Of the current one. */
  private until = 0
  private isOver = true
  private isLeaving = false

  constructor(options: TenuresOptions) {
    this.options = options
  }

  get current(): string {
    return `${this.options.worker}/${this.count}`
  }

  /** The same store, but its heartbeats are recorded. */
  watch(store: Store): Store {
    const watched: Partial<Store> = {
      beat: (request) => this.beat(store, request),
      release: (leases) => {
        if (this.isLeaving) this.end()
        return store.release(leases)
      },
    }
    return new Proxy(store, {
      get(target, key) {
        const own: unknown = Reflect.get(watched, key)
        if (own !== undefined) return own
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }

  /** From now on what is given back is given back for good. */
  leave(): void {
    this.isLeaving = true
  }

  private async beat(store: Store, request: BeatRequest): ReturnType<Store['beat']> {
    const sentAt = Date.now()
    const { session, end = false } = request
    if (end && session === this.session) this.end()
    if (!end && session !== this.session) {
      this.session = session
      this.count += 1
      this.isOver = false
      // It holds nothing yet. The one before is over with this.
      this.extend(sentAt)
    }
    const answer = await store.beat(request)
    if (answer.alive && session === this.session && !this.isOver) this.extend(sentAt + this.options.leaseMs)
    return answer
  }

  private end(): void {
    if (this.isOver) return
    this.isOver = true
    // It may also have been over for long: who stood still says so only when he comes to it.
    this.extend(Math.min(this.until, Date.now()))
  }

  private extend(until: number): void {
    this.until = until
    this.options.report({ tenure: this.current, until })
  }
}
