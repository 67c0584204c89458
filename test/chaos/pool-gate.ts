// The connections of a worker of a chaos run, and the one who can keep them from it: a pool that answers nobody for a while,
// as one does whose connections are all out, or that waits for a name server.

import pg from 'pg'

/** Stands before every pool of this process. A call that asks for a connection while it is shut waits until it opens. */
export class PoolGate {
  private until: Promise<void> | null = null
  private held = 0

  /** Puts the gate before all pools. Those that call with a callback, as the pool itself does, are let through. */
  static install(): PoolGate {
    const gate = new PoolGate()
    const pools = pg.Pool.prototype
    const connect = Reflect.get(pools, 'connect') as (...given: readonly unknown[]) => unknown
    const gated = new Proxy(connect, {
      apply: (target, pool: pg.Pool, given: unknown[]) => {
        const asked = (): unknown => Reflect.apply(target, pool, given)
        return given.length > 0 ? asked() : gate.pass().then(asked)
      },
    })
    Reflect.set(pools, 'connect', gated)
    return gate
  }

  /** Shuts for so long. Answers how many had to wait. */
  async shut(ms: number): Promise<number> {
    this.held = 0
    this.until = new Promise((resolve) => void setTimeout(resolve, ms))
    await this.until
    this.until = null
    return this.held
  }

  private async pass(): Promise<void> {
    if (this.until === null) return
    this.held += 1
    await this.until
  }
}
